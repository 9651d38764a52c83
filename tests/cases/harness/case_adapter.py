"""The names that the test files of cases import, as a user of the package would write them."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest_ragbench as rb
from pytest_ragbench import runtime
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.metrics.registry import all_metrics, metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.settings import ProviderSettings, RetrySettings
from tests.cases.servers import serving

JUDGE_ERROR_NAME = "JudgeError"
"""What ``--only-rerun '^(\\w+\\.)*JudgeError'`` has to name."""

_GRADES = ("answer_correctness", "groundedness")


def sample(
    question: str, answer: Any = None, contexts: Any = None, reference: Any = None, **more: Any
) -> rb.RagSample:
    """The sample object."""
    return rb.RagSample(question=question, answer=answer, contexts=contexts, reference=reference, **more)


@dataclass(frozen=True)
class Down:
    """A call that fails with this HTTP status."""

    status: int


def judge_down(status: int) -> Down:
    return Down(status)


def check(metric: str, sample: rb.RagSample, threshold: Any, judge_replies: Sequence[Any] = ()) -> rb.Score:
    """Assert one metric with a judge that gives these replies in turn."""
    __tracebackhide__ = True
    if any(isinstance(reply, Down) for reply in judge_replies):
        script = [_http_reply(reply) for reply in judge_replies]
        with serving(script) as server:
            return _asserted(metric, sample, threshold, _http_judge(f"{server.url}/v1", attempts=1))
    return _asserted(metric, sample, threshold, _scripted(judge_replies) if judge_replies else None)


def _asserted(metric: str, sample: rb.RagSample, threshold: Any, judge: Any) -> rb.Score:
    __tracebackhide__ = True
    if metric in _GRADES:
        return rb.assert_search_rag(sample, judge=judge, **{metric: threshold})
    return rb.assert_metric(metric, sample, threshold, judge=judge)


def _scripted(replies: Sequence[Any]) -> Callable[[list[dict[str, str]]], Any]:
    turns = iter(replies)
    last: list[Any] = []

    def scripted_judge(messages: list[dict[str, str]]) -> Any:
        last[:] = [next(turns, *last)]
        return last[0]

    return scripted_judge


def _http_reply(reply: Any) -> dict[str, Any]:
    if isinstance(reply, Down):
        return {"status": reply.status, "json": {"error": {"message": f"status {reply.status}"}}}
    text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
    message = {"role": "assistant", "content": text}
    return {"status": 200, "json": {"choices": [{"message": message, "finish_reason": "stop"}]}}


def _http_judge(url: str, attempts: int = 4) -> Any:
    settings = ProviderSettings(
        base_url=url, api_key_env="CASE_KEY", model="m", retry=RetrySettings(attempts=attempts)
    )
    environ = {**os.environ, "CASE_KEY": "k-000-case"}
    return openai_judge("case", settings, None, runtime.current().engine(), environ=environ)


_JUDGES: dict[str, Any] = {}


async def acheck(metric: str, sample: rb.RagSample, threshold: Any, server: str) -> rb.Score:
    """:func:`check` from an async test: one judge for all tests of the process."""
    if server not in _JUDGES:
        _JUDGES[server] = _http_judge(server)
    return await asyncio.to_thread(_asserted, metric, sample, threshold, _JUDGES[server])


def check_score(name: str, score: Any, threshold: Any, artifact: str | None = None) -> rb.Score:
    """Assert a score that is ready, as a metric of the user's own."""
    __tracebackhide__ = True
    return rb.assert_metric(_own_metric(name, score), rb.RagSample("q", "a", ["c"], id=artifact), threshold)


_READY: dict[str, list[Any]] = {}


def _own_metric(like: str, value: Any) -> str:
    name = f"{like}_ready"
    if name not in _READY:
        _READY[name] = []
        known = all_metrics().get(like)
        scale: Mapping[str, Any] = (
            {} if known is None else {"low": known.low, "high": known.high, "direction": known.direction}
        )

        async def ready(sample: rb.RagSample, tools: Tools) -> rb.Score:
            """A ready score."""
            return tools.score(sample, _READY[name][-1])

        metric(name, tier="judge", needs=(), **scale)(ready)
    _READY[name].append(value)
    return name


def load(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a question file, or of all in a folder; ids as the plugin gives them to pytest."""
    from pytest_ragbench.plugin.collecting import ReadableId
    from pytest_ragbench.questions import test_ids

    questions = rb.load_questions(path)
    names = test_ids(questions)
    return [
        {
            "id": ReadableId(name),
            "question": item.question,
            "reference": item.reference,
            "answer": item.answer,
        }
        for name, item in zip(names, questions, strict=True)
    ]
