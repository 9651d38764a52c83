"""What ``pytest --collect-only`` of a RAG project takes beside an equal project without one: what an editor waits for.

    python benchmarks/collecting.py [--questions 20] [--rounds 15] [--beside CHECKOUT]

Both have one test function and as many tests; pytest loads no other plugin. Medians of interleaved runs, so that the
machine's mood is the same for all; CPU tells more than wall time where other programs run. ``--beside`` measures
another checkout of this project in the same rounds. Ends with exit code 1 where more than ``--most`` seconds of CPU
come on top.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from speed import HERE, cpu, environment

PLAIN = """
import pytest

@pytest.mark.parametrize("number", range({}))
def test_answer(number):
    assert number >= 0
"""
RAG = """
from pytest_ragbench import assert_faithfulness

def test_answer(rag_sample):
    assert_faithfulness(rag_sample, ">=0.8")
"""
PLUGIN = ["-p", "pytest_ragbench.plugin"]


def projects(where: Path, questions: int) -> tuple[Path, Path]:
    """The one without RAG tests, and the one with them."""
    plain, rag = where / "plain", where / "rag"
    plain.mkdir()
    rag.mkdir()
    (plain / "test_plain.py").write_text(PLAIN.format(questions))
    (rag / "test_rag.py").write_text(RAG)
    (rag / "ragbench.toml").write_text('judge = "local"\nquestions = "questions.csv"\n')
    rows = [f"q{number},What is {number}?,It is {number}." for number in range(questions)]
    (rag / "questions.csv").write_text("\n".join(["id,question,reference", *rows, ""]))
    return plain, rag


def collected(where: Path, package: Path, options: list[str]) -> tuple[float, float]:
    """Seconds of wall time and of CPU."""
    environ = environment(package)
    del environ["PYTEST_PLUGINS"]  # an equal project without us has none
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options]
    before, began = cpu(), time.perf_counter()
    subprocess.run(command, cwd=where, env=environ, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began, cpu() - before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--most", type=float, default=0.3)
    parser.add_argument("--beside", type=Path, help="Another checkout to measure in the same rounds.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        plain, rag = projects(Path(folder), given.questions)
        here = HERE.parent
        runs: dict[str, tuple[Path, Path, list[str]]] = {"plain": (plain, here, [])}
        if given.beside is not None:
            runs["beside"] = (rag, given.beside.resolve(), PLUGIN)
        runs["this"] = (rag, here, PLUGIN)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        for number in range(given.rounds + 1):
            for name, run in runs.items():
                seconds = collected(*run)
                if number:  # the first round compiles
                    taken[name].append(seconds)
    print("| project | wall | CPU | more than plain |\n|---|---|---|---|")
    floor = median(used for _, used in taken["plain"])
    more = 0.0
    for name, all_of_it in taken.items():
        wall, used = (median(each) for each in zip(*all_of_it, strict=True))
        more = used - floor
        print(f"| {name} | {wall:.2f} s | {used:.2f} s | {more:.2f} s |")
    return 1 if more > given.most else 0


if __name__ == "__main__":
    raise SystemExit(main())
