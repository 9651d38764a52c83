"""CPU of a test with three calls, beside bare aiohttp making the same calls: where the number of hops shows.

    python benchmarks/cpu.py [--questions 1000] [--latency 0.02] [--beside CHECKOUT]

One RAG call and two judged one-call metrics a question, 200 slots, replies after 20 ms: the CPU is the limit. Rows:
one process; again, with the judge's replies stored; ``-n 2``. ``empty`` is the same number of tests that ask
nothing, so that what pytest itself takes can be told. CPU is that of all processes of a run, start included; the
server's is not counted. ``--beside`` measures another checkout of this project in the same run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from speed import HERE, call, cpu, measured, project, serving

EMPTY = """
import pytest

@pytest.mark.parametrize("number", range({0}))
def test_nothing(number):
    pass
"""


def run(command: list[str], where: Path, package: Path) -> tuple[float, float, int, int]:
    """Wall and CPU seconds, memory (MB), exit code."""
    before = cpu()
    seconds, megabytes, code = measured(command, where, package)
    return seconds, cpu() - before, megabytes, code


def rows(url: str, questions: int, label: str, package: Path, floor: float) -> None:
    command = [sys.executable, "-m", "pytest", "-q"]
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        (where / "pytest.ini").write_text("[pytest]\n")
        (where / "test_empty.py").write_text(EMPTY.format(questions))
        show(label, "empty", questions, run(command, where, package), floor, "")
    for first, again in ((command, command), ([*command, "-n", "2"], None)):
        with tempfile.TemporaryDirectory() as directory:
            where = Path(directory)
            project(where, url, "grades", 200, questions)
            for name, chosen in (("n2" if "-n" in first else "plain", first), ("again", again)):
                if chosen is None:
                    continue
                call(f"{url}/stats")
                found = run(chosen, where, package)
                stats = call(f"{url}/stats")
                calls = f"{stats['calls'].get('rag', 0)} + {stats['calls'].get('judge', 0)}"
                show(label, name, questions, found, floor, f"{calls}, {stats['repeated']} repeated")


def show(
    label: str, name: str, questions: int, found: tuple[float, float, int, int], floor: float, calls: str
) -> None:
    seconds, computed, megabytes, code = found
    per_test = 1000 * computed / questions
    cells = [label, name, f"{seconds:.1f} s", f"{computed:.1f} s", f"{per_test:.2f} ms"]
    cells += [f"{computed / floor:.1f}", calls, f"{megabytes} MB", str(code)]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--latency", type=float, default=0.02)
    parser.add_argument("--beside", type=Path, help="Another checkout to measure in the same run.")
    given = parser.parse_args()
    packages = {"this": HERE.parent}
    if given.beside is not None:
        packages = {"beside": given.beside.resolve(), **packages}
    with serving(given.latency) as url:
        bare = [sys.executable, str(HERE / "speed.py"), "--floor", url, "--questions", str(given.questions)]
        print("| checkout | run | wall | CPU | CPU a test | of bare aiohttp | calls | memory | exit |")
        print("|---|---|---|---|---|---|---|---|---|")
        with tempfile.TemporaryDirectory() as directory:
            found = run(bare, Path(directory), HERE.parent)
        floor = found[1]
        show("bare", "aiohttp", given.questions, found, floor, f"{given.questions} + {2 * given.questions}")
        for label, package in packages.items():
            rows(url, given.questions, label, package, floor)


if __name__ == "__main__":
    main()
