"""The RAG service: what it is sent, and what it may send back."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, urlsplit

from pytest_ragbench import Question, RagSample
from pytest_ragbench.engine import Limits
from pytest_ragbench.http import retry_after as retry_after_header
from pytest_ragbench.rag import http_retriever
from pytest_ragbench.settings import RagSettings
from tests.cases import product
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op
from tests.cases.servers import Served, body_of, serving

_PATHS = {
    "answer": "answer",
    "chunks": "contexts",
    "contexts": "contexts",
    "ids": "context_ids",
    "context_ids": "context_ids",
    "scores": "context_scores",
    "context_scores": "context_scores",
    "metadata": "metadata",
}
_CAP = 120.0
"""No wait may be longer, whatever a server asks for."""


@op("rag_call", "rag_extract", "rag_call_slow", items="items", single=None)
def rag_call(given: Input) -> Outcome:
    """Ask a service that gives the case's responses."""
    script = given.get("responses") or [given["response"]]
    sleeps = product.Sleeps()
    with serving(script) as server:
        outcome = observe(lambda: ask(server, given, sleeps), phrases=_phrases(script[0]))
        outcome.facts |= {"http_calls": server.calls, "waited": sleeps.waited}
    if outcome.kind == "value":
        raw = body_of(script[-1]).decode("utf-8", "replace")
        if (
            outcome.value["answer"].startswith(("data:", "<!DOCTYPE", "<html"))
            or outcome.value["answer"] == raw
        ):
            outcome.facts["raw"] = True
            if raw.lstrip().startswith(("data:", "event:", "<", "{")):
                outcome.problems.append("the raw body became the answer")
    return outcome


def ask(served: Served, given: Input, sleeps: product.Sleeps, **more: Any) -> dict[str, Any]:
    """The answer of the service at a server, under the neutral names."""
    settings = settings_of(given, served.url)
    clock = more.get("clock") or time.time
    engine_here = product.engine(sleep=sleeps, rag=limits_of(settings))
    with engine_here as engine, patch.object(retry_after_header, "time", SimpleNamespace(time=clock)):
        retriever = http_retriever(settings, engine)
        question = Question(id="q1", question=str(given.get("question", "Срок возврата?")))
        return neutral(engine.wait(retriever.ask(question)))


def settings_of(given: Input, url: str) -> RagSettings:
    reply = {_PATHS.get(name, name): path for name, path in given.get("paths", {}).items()}
    template = given.get("url_template")
    if template:
        url += urlsplit(template).path + "?" + urlsplit(template).query
    retry = {"attempts": 4, "wait": 0.5, "max_wait": 30.0, **_retry(given)}
    chosen: dict[str, Any] = {"url": url, "reply": reply, "retry": retry, **given.get("settings", {})}
    timeout = given.get("timeout_s", given.get("timeout"))
    if timeout:
        chosen["timeout"] = float(timeout)
    if given.get("max_bytes"):
        chosen["max_bytes"] = given["max_bytes"]
    return RagSettings.model_validate(chosen)


def _retry(given: Input) -> dict[str, Any]:
    wanted = given.get("retry") or {}
    return {name: wanted[name] for name in ("attempts", "wait", "max_wait") if name in wanted}


def limits_of(settings: RagSettings) -> Limits:
    retry = settings.retry
    return Limits(settings.timeout, settings.max_concurrency, retry.attempts, retry.wait, retry.max_wait)


def neutral(sample: RagSample) -> dict[str, Any]:
    return {
        "answer": sample.answer,
        "contexts": None if sample.contexts is None else list(sample.contexts),
        "chunks": None if sample.contexts is None else list(sample.contexts),
        "context_ids": None if sample.context_ids is None else list(sample.context_ids),
        "ids": None if sample.context_ids is None else list(sample.context_ids),
        "scores": None if sample.context_scores is None else list(sample.context_scores),
        "metadata": dict(sample.metadata),
    }


def _phrases(reply: Mapping[str, Any]) -> dict[str, list[str]]:
    head = " ".join(body_of(reply)[:400].decode("utf-8", "replace").split())[:12]
    return {"start of the body": [head], "path": ["/llm/search-rag"], "url": ["http://127.0.0.1"]}


@op("retry_after", items="values", single="value")
def retry_after(given: Input) -> Outcome:
    """A refusal with this Retry-After, then a good reply; nobody really waits."""
    header = {} if given["value"] is None else {"Retry-After": str(given["value"])}
    refusal = {"status": given.get("status", 429), "headers": header, "text": "slow down"}
    clock = datetime.fromisoformat(given["clock_utc"]).timestamp() if "clock_utc" in given else None
    sleeps = product.Sleeps()
    with serving([refusal, given.get("then") or {}]) as server:
        outcome = observe(lambda: ask(server, given, sleeps, clock=None if clock is None else lambda: clock))
        asked = [number for number in [given["value"]] if re.fullmatch(r"[\d.]+", str(number))]
        numbers = [_CAP, given.get("status", 429), *asked]
        outcome.facts |= {"http_calls": server.calls, "waited": sleeps.waited, "numbers": numbers}
    outcome.problems += _waiting(outcome, sleeps.waited, asked_seconds(given["value"], clock), given)
    if outcome.kind == "endpoint_error" and not outcome.problems:
        outcome = Outcome("property", message=outcome.message, facts=outcome.facts)
    return outcome


def asked_seconds(value: Any, clock: float | None) -> float | None:
    """What a Retry-After asks for, told without the product; None where it says nothing."""
    from email.utils import parsedate_to_datetime

    if re.fullmatch(
        r"\s*-?[0-9]+(?:\.[0-9]+)?(?:[eE][0-9]+)?\s*", str(value)
    ):  # ASCII digits alone, as in HTTP
        return max(float(value), 0.0)
    try:
        return max(parsedate_to_datetime(str(value)).timestamp() - (clock or 0.0), 0.0)
    except (TypeError, ValueError):
        return None


def _waiting(outcome: Outcome, waited: list[float], asked: float | None, given: Input) -> list[str]:
    problems = [f"slept {seconds:g} s" for seconds in waited if not 0 <= seconds <= _CAP]
    if asked is not None and asked > 30:  # the default of max_wait
        if outcome.kind == "endpoint_error":
            told = outcome.message
            names = [str(given.get("status", 429)), f"{asked:g}"]
            return problems + [f"the message does not name {name}" for name in names if name not in told]
        return problems
    if outcome.kind != "value":
        return [*problems, f"no success after waiting: {outcome.told()}"]
    if asked and (not waited or not asked <= waited[0] < asked + 8):
        problems.append(f"waited {waited} where {asked:g} s were asked for")
    return problems


@op("rag_call_echo", whole=True)
def echo(given: Input) -> Outcome:
    """What the server decodes from the requests for these questions."""
    problems = []
    parameter = next(iter(dict(parse_qsl(urlsplit(given.get("url_template", "")).query, True))), "questions")
    for question in given["questions"]:
        with serving([]) as server:
            outcome = observe(lambda q=question: ask(server, given.over({"question": q}), product.Sleeps()))  # type: ignore[misc]
            if outcome.kind != "value":
                problems.append(f"{question!r}: {outcome.told()}")
                continue
            pairs = parse_qsl(urlsplit(server.targets[0]).query, keep_blank_values=True, strict_parsing=True)
            if pairs != [(parameter, question)]:
                problems.append(f"{question!r} arrived as {pairs}")
            problems += _encoding(question, server.targets[0], given.get("encoded_examples", {}))
    return Outcome("property", problems=problems, facts={"numbers": [len(given["questions"])]})


def _encoding(question: str, target: str, examples: Mapping[str, str]) -> list[str]:
    wanted = str(examples.get(question, "")).partition(" ")[0]
    return [] if wanted in target or wanted.replace("%20", "+") in target else [f"{target} lacks {wanted}"]


__all__ = ["ask", "neutral", "rag_call", "retry_after", "settings_of"]
