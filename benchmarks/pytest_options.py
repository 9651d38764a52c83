"""Runs one small project under pytest's own options, with several Pythons and versions of pytest.

    python benchmarks/pytest_options.py                                       # this environment
    python benchmarks/pytest_options.py --pytest 8.3 9.0 newest               # this Python
    python benchmarks/pytest_options.py --pytest 8.3 9.0 newest -- python3.12 python3.13

With ``--pytest``, each Python gets an environment of its own, into which the package and each version of pytest in turn
are installed; without, a Python has to have both. Whatever the options, a run has to end with the exit code of a
quality failure and to report the same outcomes; under ``--collect-only`` and the like it has to leave the report alone.
Prints a row of a Markdown table for each Python and pytest, and the runs that went wrong.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONFTEST = """\
import pytest

@pytest.fixture
def retriever():
    return lambda question: ("It takes 30 days.", ["It takes 30 days."])
"""
TESTS = """\
import pytest
import pytest_ragbench as rb

SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], id="long")

def says(grade):
    return lambda messages: '{"answer_correctness": %s, "groundedness": %s, "error_message": "no"}' % (grade, grade)

def down(messages):
    raise ConnectionError("the judge is down")

@pytest.mark.rag_questions("questions.csv")
def test_passes(rag_sample):
    rb.assert_search_rag(rag_sample, judge=says(0.9))

def test_quality():
    rb.assert_search_rag(SAMPLE, judge=says(0.2))

def test_judge():
    rb.assert_search_rag(SAMPLE, judge=down)

def test_usage():
    rb.assert_search_rag(SAMPLE, "<=0.7", judge=says(0.9))
"""
WANTED = {"test_passes[q1]": None, "test_quality": "quality", "test_judge": "judge", "test_usage": "usage"}
FILES = {
    "pytest.ini": "[pytest]\n",
    "tests/conftest.py": CONFTEST,
    "tests/test_a.py": TESTS,
    "tests/questions.csv": "id,question\nq1,How long?\n",
    "elsewhere/other.ini": "[pytest]\n",
}

STYLES = ("auto", "long", "short", "line", "native", "no")
CAPTURES = ("fd", "sys", "no", "tee-sys")
GROUPS = {
    "--tb": [f"--tb={style}{workers}" for style in STYLES for workers in ("", " -n 2")] + ["--full-trace"],
    "-p no:": [
        "-p no:terminal",
        "-p no:terminal -n 2",
        *(
            f"-p no:{name}"
            for name in ("cacheprovider", "xdist", "logging", "warnings", "junitxml", "debugging")
        ),
        *(f"-p no:{name}" for name in ("faulthandler", "unraisableexception", "threadexception")),
    ],
    "--capture": [f"--capture={way}" for way in CAPTURES] + ["-s -n 2"],
    "--setup-show": ["--setup-show", "--setup-show -n 2", "--setup-only"],
    "--pdb": ["--pdb", "--pdb --tb=native", "--pdb -s"],
    "-W error": ["-W error", "-W error -n 2", "-W error::pytest.PytestWarning"],
    "--import-mode": [
        f"--import-mode={way}{workers}"
        for way in ("prepend", "append", "importlib")
        for workers in ("", " -n 2")
    ],
    "rootdir": [
        "--rootdir=..",
        "--rootdir=. -n 2",
        "--rootdir=tests",
        "--rootdir=elsewhere",
        "--rootdir=elsewhere -n 2",
        "-c elsewhere/other.ini",
        "-c elsewhere/other.ini --rootdir=. -n 2",
    ],
    "confcutdir": ["--confcutdir=.", "--confcutdir=..", "--confcutdir=tests", "--confcutdir=tests -n 2"],
    "output": [
        *("-n 2", "-vv", "-qq", "-q -q -q -n 2", "-rA"),
        *("--color=yes", "--durations=3", "--no-header", "--no-summary"),
    ],
    "others": [
        "--strict-markers --strict-config",
        "--assert=plain",
        "--junitxml=j.xml -o junit_family=xunit1",
        "-o console_output_style=times",
        "--showlocals",
        "-p no:randomly --ff",
    ],
}  # fmt: skip
NOTHING = ["--collect-only", "--collect-only -q", "--setup-plan", "--fixtures", "--fixtures-per-test", "--markers",
           "--version", "--help", "--cache-show", "-k nothing", "tests/test_a.py::mistyped"]  # fmt: skip
BY_WORD = {re.sub(r"^-+|:$", "", name).replace(" ", "-"): name for name in (*GROUPS, "nothing")}
"""What ``--groups`` takes, since an argument must not begin with a hyphen."""
PROMPTED = "p 'in the test with ' + SAMPLE.id\nc\n"
"""What is typed at each prompt of ``--pdb``: says where it is, and goes on."""


def main(arguments: list[str]) -> int:
    """Prints a row for each environment; the number of wrong runs."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pytest", nargs="+", metavar="VERSION", help="such as 8.3, 9.0.2, newest")
    parser.add_argument(
        "--groups", nargs="+", choices=[*BY_WORD], metavar="GROUP", help=f"only these: {', '.join(BY_WORD)}"
    )
    parser.add_argument("pythons", nargs="*", default=[sys.executable])
    given = parser.parse_args(arguments)
    groups = [BY_WORD[word] for word in given.groups or BY_WORD]
    print(
        "| Python | pytest |",
        *(f"`{name}` |" if name[0] == "-" else f"{name} |" for name in groups),
        flush=True,
    )
    print("|---|---|" + "---|" * len(groups), flush=True)
    wrong = 0
    for asked in given.pythons:
        with tempfile.TemporaryDirectory() as folder:
            try:
                for python in _environments(asked, given.pytest, Path(folder)):
                    wrong += _tried(python, groups)
            except subprocess.CalledProcessError as error:  # the other Pythons can still be tried
                wrong += 1
                print(f"  {asked}: {' '.join(map(str, error.cmd))} ended with {error.returncode}", flush=True)
    return wrong


def _environments(python: str, versions: list[str] | None, folder: Path) -> Iterator[str]:
    """The Python as it is, or one environment of it with each version of pytest in turn."""
    if versions is None:
        yield python
        return
    subprocess.run([python, "-m", "venv", folder], check=True)
    made = next(
        path for path in (folder / "bin" / "python", folder / "Scripts" / "python.exe") if path.exists()
    )
    install: list[str | Path] = [made, "-m", "pip", "--disable-pip-version-check", "install", "-q", "-U"]
    subprocess.run([*install, ROOT], check=True)
    for version in versions:
        wanted = "pytest" if version == "newest" else f"pytest=={version}.*"
        subprocess.run([*install, wanted, "pytest-xdist"], check=True)
        yield str(made)


def _tried(python: str, groups: list[str]) -> int:
    """Prints the row of one environment and its wrong runs; how many these are."""
    told = "import sys, pytest; print('.'.join(map(str, sys.version_info[:3])), pytest.__version__)"
    versions = subprocess.run([python, "-c", told], capture_output=True, text=True, check=True).stdout.split()
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder, "project")
        for name, text in FILES.items():
            (project / name).parent.mkdir(parents=True, exist_ok=True)
            (project / name).write_text(text, encoding="utf-8")
        found = {
            name: [
                *(_written(python, project) if name == "nothing" else _wrong(python, project, GROUPS[name]))
            ]
            for name in groups
        }
    sizes = {name: len(NOTHING if name == "nothing" else GROUPS[name]) for name in groups}
    cells = [f"{sizes[name] - len(wrong)} of {sizes[name]}" for name, wrong in found.items()]
    print("| " + " | ".join([*versions, *cells]) + " |", flush=True)
    told_wrong = [text for wrong in found.values() for text in wrong]
    print(*(f"  {text}" for text in told_wrong), sep="\n", end="\n" if told_wrong else "", flush=True)
    return len(told_wrong)


def _wrong(python: str, project: Path, runs: list[str]) -> Iterator[str]:
    """Those runs that end otherwise, or report other outcomes."""
    report = project / "out.json"
    for options in runs:
        report.unlink(missing_ok=True)
        done = _run(python, project, options)
        if options == "--setup-only":  # builds fixtures and calls no test
            if report.exists() or done.returncode not in (0, 5):
                yield f"{options}: exit code {done.returncode}, {'a' if report.exists() else 'no'} report"
            continue
        kinds = {}
        if report.exists():
            results = json.loads(report.read_text(encoding="utf-8"))["results"]
            kinds = {each["test"].rpartition("::")[2]: each["kind"] for each in results}
        if done.returncode != 1 or kinds != WANTED or "INTERNALERROR" in done.stdout + done.stderr:
            yield f"{options}: exit code {done.returncode}, {kinds}"
        elif "--pdb" in options and done.stdout.count("'in the test with long'") != 3:
            yield f"{options}: the prompt is not in the test"


def _written(python: str, project: Path) -> Iterator[str]:
    """Those runs of nothing that touched the report of the run before."""
    report = project / "out.json"
    _run(python, project, "-q")
    before = report.read_bytes()
    for options in NOTHING:
        done = _run(python, project, options)
        if not report.exists() or report.read_bytes() != before:
            yield f"{options}: the report has changed"
            report.write_bytes(before)
        elif "INTERNALERROR" in done.stdout + done.stderr:
            yield f"{options}: INTERNALERROR"


def _run(python: str, project: Path, options: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "pytest", f"--ragbench-json={project / 'out.json'}", *options.split()]
    # Where the ini-file lies elsewhere, its folder would be what is collected.
    command += ["tests"] if "::" not in options else []
    return subprocess.run(
        command, cwd=project, input=PROMPTED * 9, capture_output=True, text=True, timeout=600, check=False
    )


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
