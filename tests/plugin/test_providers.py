"""Judges, embedders and retrievers of other packages, found by their entry points."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

PACKAGE = """
import json
from pytest_ragbench.embeddings import callable_embedder
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.rag import CallableRetriever

def judge(spec):
    def grade(messages):
        return json.dumps({"grade": float(spec.rest), "reason": "as told"})

    return callable_judge(grade, f"fixed:{spec.rest}", spec.engine)

class Embedder:
    name = "lengths"

    def __init__(self, spec):
        self.size = int(spec.rest)

    async def embed(self, texts):
        import numpy
        return numpy.ones((len(texts), self.size))

def retriever(spec):
    return CallableRetriever(lambda question: f"{spec.rest} {question}", spec.engine, name=spec.text)
"""
ENTRY_POINTS = """
[ragbench.judges]
fixed = fixed_provider:judge
[ragbench.embedders]
lengths = fixed_provider:Embedder
[ragbench.retrievers]
echo = fixed_provider:retriever
"""
TEST = """
from pytest_ragbench import assert_answer_relevancy_holistic, assert_semantic_similarity, RagSample

def test_judge():
    sample = RagSample(question="Open?", answer="Yes.")
    score = assert_answer_relevancy_holistic(sample, ">=0.7")
    assert (score.value, score.judge) == (0.75, "fixed:0.75")

def test_embedder():
    assert_semantic_similarity(RagSample(question="q", answer="a", reference="b"), ">=0.99")

def test_retriever(retriever, rag_answer=None):
    assert retriever.name == "echo:you said"
"""


@pytest.fixture
def package(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package on the path of processes started here, with metadata as an installer writes it."""
    site = pytester.mkdir("site")
    (site / "fixed_provider.py").write_text(PACKAGE, "utf-8")
    info = site / "fixed_provider-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fixed-provider\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.setenv("PYTHONPATH", str(site), prepend=os.pathsep)
    return site


def config(judge: str) -> str:
    return f'judge = "{judge}"\nembedder = "lengths:3"\n[rag]\nretriever = "echo:you said"\n'


@pytest.mark.usefixtures("package")
def test_one_file_and_an_entry_point(pytester: pytest.Pytester) -> None:
    Path("ragbench.toml").write_text(config("fixed:0.75"))
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["*judge fixed:0.75, embedder lengths*"])


@pytest.mark.parametrize(
    ("judge", "source", "message"),
    [
        ("fixd:1", PACKAGE, "did you mean 'fixed'"),
        ("fixed:1", "import no_such_module", "judge 'fixed' (fixed_provider:judge) can't be loaded"),
        ("fixed:1", "judge = 3", "judge 'fixed' (fixed_provider:judge) is a int"),
    ],
    ids=["misspelt", "import", "shape"],
)
def test_a_provider_that_is_wrong(
    pytester: pytest.Pytester, package: Path, judge: str, source: str, message: str
) -> None:
    (package / "fixed_provider.py").write_text(source, "utf-8")
    Path("ragbench.toml").write_text(config(judge))
    pytester.makepyfile(TEST)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-k", "test_judge")
    assert result.ret == 4
    printed = f"{result.stdout}{result.stderr}".replace(
        "\nE    ", ""
    )  # where the terminal's width cuts a line
    assert message in printed
