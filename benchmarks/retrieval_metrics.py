"""Time and memory of the retrieval metrics, beside ranx and pytrec_eval, on the same Python objects.

    python benchmarks/retrieval_metrics.py [--queries 100000] [--results 100] [--relevant 10]

Each tool runs in a process of its own on the same data, made from a seed: rankings as lists for us,
and as ``{id: score}`` for us and for the peers, which take nothing else. The time goes from these
objects to the mean of each metric. Peers that are not installed are left out. ranx compiles itself, so
each tool is warmed up on 20 queries first.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MEASURES = ["ndcg@10", "map", "mrr", "recall@10", "precision@10"]
RANX = MEASURES
TREC = ["ndcg_cut.10", "map", "recip_rank", "recall.10", "P.10"]
TREC_KEYS = [name.replace(".", "_") for name in TREC]

Run = dict[str, Any]


def data(queries: int, results: int, relevant: int, scores: bool) -> tuple[dict[str, dict[str, int]], Run]:
    """Half of a query's relevant documents are among its results, at random ranks."""
    rng = random.Random(7)
    pool = [f"doc{number:07d}" for number in range(max(100_000, 10 * results))]
    qrels, run = {}, {}
    for number in range(queries):
        ranking = rng.sample(pool, results)
        found = rng.sample(ranking, min(relevant // 2, results))
        missed = rng.sample(pool, relevant - len(found))
        qrels[f"q{number}"] = {doc: rng.randint(1, 3) for doc in [*found, *missed]}
        run[f"q{number}"] = (
            {doc: float(results - rank) for rank, doc in enumerate(ranking)} if scores else ranking
        )
    return qrels, run


def ours(qrels: dict[str, dict[str, int]], run: Run) -> list[float]:
    from pytest_ragbench.metrics.formulas.many_queries import evaluate

    done = evaluate(qrels, run, MEASURES)
    return [done[name].mean for name in MEASURES]


def ranx(qrels: dict[str, dict[str, int]], run: Run) -> list[float]:
    from ranx import Qrels, Run, evaluate

    found = evaluate(Qrels(qrels), Run(run), RANX)
    return [float(found[name]) for name in RANX]


def pytrec_eval(qrels: dict[str, dict[str, int]], run: Run) -> list[float]:
    import pytrec_eval as trec

    found = trec.RelevanceEvaluator(qrels, set(TREC)).evaluate(run)
    return [sum(values[key] for values in found.values()) / len(found) for key in TREC_KEYS]


TOOLS: dict[str, tuple[Callable[..., list[float]], bool, str]] = {
    "pytest-ragbench, lists": (ours, False, "numpy"),
    "pytest-ragbench, {id: score}": (ours, True, "numpy"),
    "ranx, {id: score}": (ranx, True, "ranx"),
    "pytrec_eval, {id: score}": (pytrec_eval, True, "pytrec_eval"),
}


def arrays(queries: int, results: int, relevant: int) -> None:
    """The array entry point, and numpy's search for the hits in the same matrix as its limit."""
    from pytest_ragbench.metrics.formulas.many_queries import evaluate_grades

    qrels, run = data(queries, results, relevant, False)
    grades = np.zeros((queries, results), dtype=np.float32)
    every = np.zeros((queries, relevant), dtype=np.float32)
    for row, (query, judged) in enumerate(qrels.items()):
        grades[row] = [judged.get(doc, 0) for doc in run[query]]
        every[row, : len(judged)] = list(judged.values())
    del qrels, run
    start, cpu, before = time.perf_counter(), time.process_time(), peak()
    found = evaluate_grades(grades, every, MEASURES)
    means = [float(found[name].mean()) for name in MEASURES]
    took, cpu, memory = time.perf_counter() - start, time.process_time() - cpu, peak() - before
    start = time.process_time()
    np.flatnonzero(grades > 0)
    np.flatnonzero(every > 0)
    limit = time.process_time() - start
    report(
        f"pytest-ragbench, matrix of grades (numpy finding the hits: {limit:.2f})", took, cpu, memory, means
    )


def child(tool: str, queries: int, results: int, relevant: int) -> None:
    if tool == "arrays":
        arrays(queries, results, relevant)
        return
    function, scores, _ = TOOLS[tool]
    function(*data(20, results, relevant, scores))
    qrels, run = data(queries, results, relevant, scores)
    start, cpu, before = time.perf_counter(), time.process_time(), peak()
    means = function(qrels, run)
    report(tool, time.perf_counter() - start, time.process_time() - cpu, peak() - before, means)


def report(label: str, seconds: float, cpu: float, megabytes: float, means: list[float]) -> None:
    shown = " ".join(f"{mean:.6f}" for mean in means)
    print(f"| {label} | {seconds:.2f} | {cpu:.2f} | {megabytes:.0f} | {shown} |", flush=True)


def peak() -> float:
    """Most memory of this process so far, in MB (Linux counts in kB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=100_000)
    parser.add_argument("--results", type=int, default=100)
    parser.add_argument("--relevant", type=int, default=10)
    parser.add_argument("--tool", help=argparse.SUPPRESS)
    options = parser.parse_args()
    sizes = (options.queries, options.results, options.relevant)
    if options.tool:
        child(options.tool, *sizes)
        return
    print(
        f"{sizes[0]} queries x {sizes[1]} results, {sizes[2]} relevant each; {', '.join(MEASURES)}\n",
        flush=True,
    )
    print(
        "| tool | seconds | CPU seconds | MB on top of the data | means |\n|---|---|---|---|---|", flush=True
    )
    for tool in [*TOOLS, "arrays"]:
        if tool in TOOLS and importlib.util.find_spec(TOOLS[tool][2]) is None:
            print(f"| {tool} | not installed | | | |", flush=True)
            continue
        command = [sys.executable, __file__, "--tool", tool]
        for name, size in zip(("--queries", "--results", "--relevant"), sizes, strict=True):
            command += [name, str(size)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        print(done.stdout or f"| {tool} | failed, exit code {done.returncode} | | | |\n", end="", flush=True)


if __name__ == "__main__":
    main()
