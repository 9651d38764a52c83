"""Asks the system under test: what the fixtures rag_sample, rag_samples and rag_conversation do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pytest_ragbench import rag
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.plugin.collecting import as_question, questions_for
from pytest_ragbench.plugin.state import state_of
from pytest_ragbench.plugin.support import support_of


def ask_one(request: pytest.FixtureRequest, value: Any, retriever: Any) -> RagSample:
    """Ask one question: a Question, a bare text, or a mapping of columns; a RagSample is taken as it is."""
    __tracebackhide__ = True
    if isinstance(value, RagSample):
        return value
    state, support = state_of(request.config), support_of(request.config)
    question = as_question(value, request.node)
    system = state.coerce("retriever", retriever)
    if (found := support.prefetched_sample(request.node, system, question)) is not None:
        support.look_ahead(request.node, waits=False)
        return found
    sample: RagSample = state.engine.wait(
        system.ask(question), meanwhile=lambda long: support.look_ahead(request.node, long=long)
    )
    return sample


def ask_all(
    request: pytest.FixtureRequest, retriever: Any, questions: Sequence[Question] | None = None
) -> RagSamples:
    """Ask all questions (by default those of the test's file) at once, or in the order of their sessions.

    Failures are kept beside the answers.
    """
    __tracebackhide__ = True
    state, support = state_of(request.config), support_of(request.config)
    if questions is None:
        questions = questions_for(request.node, request.config)
    if questions is None:
        raise UsageError(
            f"{request.node.nodeid} uses rag_samples, but there are no questions for it: mark it with "
            '@pytest.mark.rag_questions("questions.csv"), or set ragbench_questions'
        )
    system = state.coerce("retriever", retriever)
    found = state.engine.wait(
        rag.ask_all(system, questions), meanwhile=lambda long: support.look_ahead(request.node, long=long)
    )
    return RagSamples(questions, found)
