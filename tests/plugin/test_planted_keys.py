"""Keys that are in use, and that every service echoes, are in nothing that a run leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.servers.openai_server import OpenAIServer, Reply, error
from tests.servers.rag_server import RagServer, rag_server

JUDGE_KEY = "sk-test-FAKE-judge-0001"
RAG_KEY = "sk-test-FAKE-rag-0002"
HEADER_KEY = "sk-test-FAKE-header-0003"
QUERY_KEY = "sk-test-FAKE-query-0004"
KEYS = (JUDGE_KEY, RAG_KEY, HEADER_KEY, QUERY_KEY)
ARGS = (
    "-l",
    "-vv",
    "--log-level=DEBUG",
    "--log-file=log.txt",
    "--junitxml=j.xml",
    "--ragbench-json=out.json",
    "-n",
    "2",
)

TESTS = """
import pytest
import pytest_ragbench as rb

SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], reference="30 days")


@pytest.mark.parametrize("rag_question", ["How long?", "And how much?"])
def test_answer(rag_sample, judge, retriever):
    rb.assert_search_rag(rag_sample, ">=0.95")


def test_similar(embedder):
    rb.assert_semantic_similarity(SAMPLE, ">=0.5")


def test_locals(judge, retriever, embedder, request):
    things = [judge, retriever, embedder, repr(vars(judge)), repr(vars(retriever))]
    assert not things
"""


def config(rag_url: str) -> str:
    return f"""
judge = "openai:m"
embedder = "openai:e"
[rag]
url = "{rag_url}/ask?api_key={QUERY_KEY}&lang=en"
path = ""
auth_env = "RAG_KEY"
headers = {{ X-Api-Key = "{HEADER_KEY}" }}
retry = {{ attempts = 1 }}
[providers.openai]
headers = {{ X-Access-Token = "{HEADER_KEY}" }}
retry = {{ attempts = 1 }}
"""


def echo(question: str) -> dict[str, Any]:
    return {
        "answer": f"Your keys: {' '.join(KEYS)}",
        "chunks": [f"chunk {RAG_KEY}"],
        "metadata": {"key": QUERY_KEY},
    }


def refuse(question: str) -> tuple[int, str, str]:
    return 403, "text/plain", f"bad keys: {' '.join(KEYS)}"


def low(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Reply:
    grades = {"answer_correctness": 0.9, "groundedness": 0.9, "error_message": f"saw {JUDGE_KEY}"}
    return Reply(json.dumps(grades), body=None)


@pytest.fixture(params=["echoing", "refusing"])
def services(request: pytest.FixtureRequest) -> Iterator[tuple[OpenAIServer, RagServer]]:
    echoing = request.param == "echoing"
    refusal = error(401, f"Incorrect API key provided: {JUDGE_KEY}. Bearer {JUDGE_KEY}")
    with (
        OpenAIServer(low if echoing else [refusal]) as openai,
        rag_server(echo if echoing else refuse) as rag,
    ):
        yield openai, rag


def test_keys_are_nowhere(
    project: Project, services: tuple[OpenAIServer, RagServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    openai, rag = services
    project.write(test_a_py=TESTS, ragbench_toml=config(rag.url))
    monkeypatch.setenv("OPENAI_API_KEY", JUDGE_KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", openai.url)
    monkeypatch.setenv("RAG_KEY", RAG_KEY)
    result = project.run(*ARGS)
    assert result.ret == 1  # test_locals fails by itself
    assert {"log.txt", "j.xml", "out.json"} <= {path.name for path in project.files()}
    written = {str(path.relative_to(project.path)): path.read_bytes() for path in project.files()}
    written |= {"stdout": str(result.stdout).encode(), "stderr": str(result.stderr).encode()}
    own = {"ragbench.toml"}
    found = [
        (name, key)
        for name, text in written.items()
        for key in KEYS
        if key.encode() in text and name not in own
    ]
    assert found == []
    assert any("sqlite" in name for name in written)
