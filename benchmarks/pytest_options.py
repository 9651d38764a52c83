"""Runs one small project under pytest's own options, in one or more Python environments.

    python benchmarks/pytest_options.py                                  # with this Python
    python benchmarks/pytest_options.py ~/py312/bin/python ~/py313/bin/python

Each environment needs this package. Whatever the options, a run has to end with the exit code of a quality failure and
report the same outcomes; under ``--collect-only`` and the like it has to leave the report alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS = """\
import pytest
import pytest_ragbench as rb

SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], id="long")

def says(grade):
    return lambda messages: '{"answer_correctness": %s, "groundedness": %s, "error_message": "no"}' % (grade, grade)

def down(messages):
    raise ConnectionError("the judge is down")

def test_passes():
    rb.assert_search_rag(SAMPLE, judge=says(0.9))

def test_quality():
    rb.assert_search_rag(SAMPLE, judge=says(0.2))

def test_judge():
    rb.assert_search_rag(SAMPLE, judge=down)

def test_usage():
    rb.assert_search_rag(SAMPLE, "<=0.7", judge=says(0.9))
"""
WANTED = {"test_passes": None, "test_quality": "quality", "test_judge": "judge", "test_usage": "usage"}

RUNS = [
    *(f"--tb={style}" for style in ("auto", "long", "short", "line", "native", "no")),
    "--tb=native -n 2",
    "--full-trace",
    "-p no:terminal",
    "-p no:cacheprovider",
    "-p no:xdist",
    *(f"--capture={way}" for way in ("fd", "sys", "no", "tee-sys")),
    "--setup-show",
    "-W error",
    *(f"--import-mode={way}" for way in ("prepend", "append", "importlib")),
    "--rootdir=..",
    "--confcutdir=.",
    "-n 2",
    "-vv",
    "-qq",
    "-rA",
    "--color=yes",
    "--durations=3",
    "--strict-markers --strict-config",
    "--pdb",
]
NOTHING = ["--collect-only", "--setup-plan", "--fixtures", "-k nothing", "test_a.py::mistyped"]


def main(pythons: list[str]) -> int:
    """Prints a line for each run that went wrong; the number of these."""
    wrong = 0
    for python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder, "project")
            project.mkdir()
            (project / "test_a.py").write_text(TESTS, encoding="utf-8")
            (project / "conftest.py").touch()
            (project / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
            found = [*_wrong(python, project)]
        wrong += len(found)
        version = subprocess.run(
            [python, "-m", "pytest", "--version"], capture_output=True, text=True, check=True
        )
        print(
            f"{python}, {version.stdout.strip()}: {len(RUNS) + len(NOTHING)} runs, {len(found)} wrong",
            *found,
            sep="\n  ",
        )
    return wrong


def _wrong(python: str, project: Path) -> list[str]:
    report, found = project / "out.json", []
    for options in RUNS:
        report.unlink(missing_ok=True)
        done = _run(python, project, options)
        kinds = {}
        if report.exists():
            results = json.loads(report.read_text(encoding="utf-8"))["results"]
            kinds = {each["test"].rpartition("::")[2]: each["kind"] for each in results}
        if done.returncode != 1 or kinds != WANTED or "INTERNALERROR" in done.stdout + done.stderr:
            found.append(f"{options}: exit code {done.returncode}, {kinds}")
    before = report.read_bytes() if report.exists() else b""
    for options in NOTHING:
        _run(python, project, options)
        if not report.exists() or report.read_bytes() != before:
            found.append(f"{options}: the report has changed")
    return found


def _run(python: str, project: Path, options: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "pytest", "--ragbench-json=out.json", *options.split()]
    # --pdb asks at each failure and error: "c" goes on.
    return subprocess.run(
        command, cwd=project, input="c\n" * 9, capture_output=True, text=True, timeout=120, check=False
    )


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:] or [sys.executable])))
