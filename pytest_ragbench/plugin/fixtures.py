"""The fixtures. Each can be overridden in a conftest, a module or a class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.plugin.asking import ask_all, ask_one
from pytest_ragbench.plugin.collected import collected_of, has_questions
from pytest_ragbench.plugin.state import STATE
from pytest_ragbench.plugin.support import support_of
from pytest_ragbench.runtime import using

if TYPE_CHECKING:
    from pytest_ragbench.model.sample_sets import RagSamples
    from pytest_ragbench.model.samples import RagSample


@pytest.fixture(autouse=True)
def _ragbench(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lets the assertion helpers find the fixtures that this test sees."""
    __tracebackhide__ = True
    if (why := request.config.stash[STATE].refused) and collected_of(request.config).asks(request.node):
        raise UsageError(why)
    if has_questions(request.node):
        from pytest_ragbench.plugin.upcoming import wrong_with

        if why := wrong_with(request.node):
            raise UsageError(why)
    with using(support_of(request.config).runtime(request)):
        yield


@pytest.fixture(scope="session")
def judge(request: pytest.FixtureRequest) -> Any:
    """The judge of generated answers: as configured (an LLM), else the embedded local one.

    Override it to return a judge, a spec such as "openai:gpt-4o-mini", or a function
    `(messages) -> reply text`.
    """
    __tracebackhide__ = True
    return request.config.stash[STATE].coerce("judge", None)


@pytest.fixture(scope="session")
def embedder(request: pytest.FixtureRequest) -> Any:
    """The embedder of texts: as configured, else the local one (extra "local").

    Override it to return an embedder, a spec such as "sentence-transformers:MODEL", or a function
    `(texts) -> vectors`.
    """
    __tracebackhide__ = True
    return request.config.stash[STATE].coerce("embedder", None)


@pytest.fixture(scope="session")
def retriever(request: pytest.FixtureRequest) -> Any:
    """The RAG system under test: by default GET {--rag-url}/llm/search-rag?questions=TEXT.

    Override it to return a URL, or a function `(question) -> answer`, sync or async, that may also
    return `{"answer": ..., "contexts": [...]}` or a RagSample.
    """
    __tracebackhide__ = True
    # In a run of several systems, one of them.
    return request.config.stash[STATE].coerce("retriever", getattr(request, "param", None))


@pytest.fixture
def rag_question(request: pytest.FixtureRequest) -> Any:
    """One question of the file that the test's rag_questions mark (or the configuration) names."""
    __tracebackhide__ = True
    raise UsageError(
        f"{request.node.nodeid} uses rag_sample, but there are no questions for it: mark it with "
        '@pytest.mark.rag_questions("questions.csv"), set ragbench_questions, or parametrize "rag_question"'
    )


@pytest.fixture
def rag_sample(request: pytest.FixtureRequest, rag_question: Any, retriever: Any) -> RagSample:
    """One question, asked of the RAG system: answer, contexts, and the question's own columns."""
    __tracebackhide__ = True
    return ask_one(request, rag_question, retriever)


@pytest.fixture
def rag_samples(request: pytest.FixtureRequest, retriever: Any) -> RagSamples:
    """All questions of the file, asked of the RAG system concurrently; for metrics over the whole set."""
    __tracebackhide__ = True
    return ask_all(request, retriever)


@pytest.fixture
def rag_session(request: pytest.FixtureRequest) -> Any:
    """The questions of one session of the file that the test's rag_questions mark names."""
    __tracebackhide__ = True
    raise UsageError(
        f"{request.node.nodeid} uses rag_conversation, but there are no questions for it: mark it with "
        '@pytest.mark.rag_questions("dialogues.jsonl"), or set ragbench_questions'
    )


@pytest.fixture
def rag_conversation(request: pytest.FixtureRequest, rag_session: Any, retriever: Any) -> RagSamples:
    """One session's questions, asked of the RAG system one after the other; one test for each session."""
    __tracebackhide__ = True
    return ask_all(request, retriever, rag_session)


__all__ = [
    "_ragbench",
    "embedder",
    "judge",
    "rag_conversation",
    "rag_question",
    "rag_sample",
    "rag_samples",
    "rag_session",
    "retriever",
]
