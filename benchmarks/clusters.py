"""Time and memory of the cluster metrics, beside scikit-learn.

    python benchmarks/clusters.py [--vectors 100000] [--dimensions 384] [--clusters 50] [--peer-vectors N]

Each computation runs in a process of its own on the same float32 vectors. ``--peer-vectors`` gives
scikit-learn fewer vectors where its time (quadratic for both distances) would be too long.
"""

from __future__ import annotations

import argparse
import importlib.util
import resource
import subprocess
import sys
import time

import numpy as np

JOBS = (
    "ours cosine",
    "ours euclidean",
    "ours intra",
    "ours inter",
    "scikit-learn cosine",
    "scikit-learn euclidean",
)


def data(vectors: int, dimensions: int, clusters: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    centres = rng.normal(size=(clusters, dimensions)).astype(np.float32)
    labels = rng.integers(0, clusters, vectors)
    rows = centres[labels]
    for start in range(0, vectors, 10_000):
        part = rows[start : start + 10_000]
        part += rng.normal(scale=2.0, size=part.shape).astype(np.float32)
    return rows, labels


def run(job: str, rows: np.ndarray, labels: np.ndarray) -> float:
    tool, what = job.split()
    if tool == "scikit-learn":
        from sklearn.metrics import silhouette_score

        return float(silhouette_score(rows, labels, metric=what))
    from pytest_ragbench.metrics.formulas import clusters

    if what == "intra":
        return clusters.intra_cluster_similarity(rows, labels).value
    if what == "inter":
        return clusters.inter_cluster_distance(rows, labels)
    return clusters.silhouette(rows, labels, distance=what).value


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--vectors", type=int, default=100_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--peer-vectors", type=int)
    parser.add_argument("--only", help="run only the jobs whose name holds this")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        rows, labels = data(options.vectors, options.dimensions, options.clusters)
        run(options.job, rows[:500], labels[:500])  # imports and threads
        before = peak()
        start, cpu = time.perf_counter(), time.process_time()
        value = run(options.job, rows, labels)
        took, cpu = time.perf_counter() - start, time.process_time() - cpu
        print(
            f"| {options.job} | {options.vectors} | {took:.1f} | {cpu:.1f} "
            f"| {peak():.0f} | {peak() - before:.0f} | {value:.9f} |"
        )
        return
    print("| job | vectors | seconds | CPU seconds | peak MB | of them on top of the data | value |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for job in JOBS:
        if options.only and options.only not in job:
            continue
        peer = job.startswith("scikit-learn")
        if peer and importlib.util.find_spec("sklearn") is None:
            print(f"| {job} | not installed | | | | |")
            continue
        vectors = options.peer_vectors or options.vectors if peer else options.vectors
        command = [sys.executable, __file__, "--job", job, "--vectors", str(vectors)]
        command += ["--dimensions", str(options.dimensions), "--clusters", str(options.clusters)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        print(
            done.stdout or f"| {job} | {vectors} | failed, exit code {done.returncode} | | | |\n",
            end="",
            flush=True,
        )


if __name__ == "__main__":
    main()
