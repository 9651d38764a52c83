"""Scores against thresholds: rounding, direction, what can't be meant, what is missing."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest_ragbench
from pytest_ragbench import (
    EmbeddingError,
    EndpointError,
    JudgeError,
    RagSample,
    UndefinedScore,
    Unscored,
    assert_metric,
    assert_over,
)
from pytest_ragbench.metrics.registry import find
from tests.cases import product
from tests.cases.gating import gated, own_metric, scale_like
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op

_WANTED = re.compile(
    r"wanted (?:(?P<operator>[<>=]=?)\s*(?P<limit>[-+.\deE]+)|(?P<low>[-+.\deE]+?)\.\.(?P<high>[-+.\deE]+))"
)
_STANDS_FOR = {"rouge": "rougeL", "context_relevancy": "context_relevance"}


@op("gate_scores", whole=True)
def gate_scores(given: Input) -> Outcome:
    """Ready scores, written as numbers or as what they are computed from, against one threshold."""
    outcome = Outcome("property", each=_gates(given))
    if extra := given.get("extra"):
        outcome.parts["extra"] = _gates(extra)
    for item in [*(outcome.each or []), *outcome.parts.get("extra", [])]:
        if re.search(r"(\d+(?:\.\d+)?), wanted [<>]=?\1\b(?!\.?\d)", item.message) and "=" in str(
            item.message
        ):
            outcome.problems.append(f"the message contradicts itself: {item.message:.80}")
    return outcome


def _gates(given: Input) -> list[Outcome]:
    scale = scale_like(find(given["metric"])) if "metric" in given else {}
    return [
        gated(given.get("metric", "quality"), number(raw), given["threshold"], **scale)
        for raw in given["scores"]
    ]


def number(raw: Any) -> Any:
    """``"mean of [0.7, 0.8]"``, ``"0.1+0.7"``, ``"Decimal('0.12')"`` as the number meant."""
    if not isinstance(raw, str):
        return raw
    if match := re.fullmatch(r"(mean|sum) of \[(.*)\]", raw.strip()):
        values = [float(item) for item in match[2].split(",")]
        return sum(values) / len(values) if match[1] == "mean" else sum(values)
    if match := re.fullmatch(r"(?:np|numpy)\.(\w+)\((.*)\)", raw.strip()):
        import numpy as np

        return getattr(np, match[1])(float(match[2]))
    if match := re.fullmatch(r"Decimal\('(.*)'\)", raw.strip()):
        from decimal import Decimal

        return Decimal(match[1])
    terms = raw.split("+")
    try:
        return sum(float(term) for term in terms) if len(terms) > 1 else float(raw)
    except ValueError:
        return raw


@op("parse_threshold", single="threshold")
def threshold(given: Input) -> Outcome:
    """A threshold as ``[operator, limit]``: what is told to be wanted of the ends of the metric's range."""
    scale = scale_like(find(given["metric"])) if "metric" in given else {"low": 0.0, "high": 1.0}
    low, high = (
        end if math.isfinite(end) else edge for end, edge in ((scale["low"], -1e9), (scale["high"], 1e9))
    )
    tried = [gated("score", value, given["threshold"], **scale) for value in (low, high)]
    if other := next((one for one in tried if one.kind not in ("pass", "quality_failure")), None):
        return other
    told = [found for one in tried if (found := _WANTED.search(one.message))]
    if not told:  # the whole range is fine
        return Outcome("value", ["<=", high] if scale.get("direction") == "lower" else [">=", low])
    if told[0]["low"]:
        return Outcome("value", [float(told[0]["low"]), float(told[0]["high"])])
    return Outcome("value", [told[0]["operator"], float(told[0]["limit"])])


@op("assert", "assert_helper")
def helper(given: Input) -> Outcome:
    """One assertion helper, on a sample or on a ready score."""
    name = str(given["helper"]).removeprefix("assert_")
    name = _STANDS_FOR.get(name, name)
    limit = given.get("threshold")
    if "score" in given:
        known = observe(lambda: find(_known(name)))
        if known.kind != "value":
            return known
        return gated(name, number(given["score"]), limit, **scale_like(known.value))
    replies = given.get("judge_replies", [])
    judge = product.Scripted(
        [product.completion(reply) for reply in replies] or [AssertionError("judge called")]
    )

    def run() -> float:
        own = getattr(pytest_ragbench, f"assert_{name}", None)
        with product.using(judge=judge):
            sample = product.sample_of(given["sample"])
            found = own(sample, limit) if own else assert_metric(_known(name), sample, limit)
            return float(found)

    outcome = observe(run, kind="pass")
    if judge.asked and not replies:
        outcome.problems.append("the judge was called")
    return outcome


def _known(name: str) -> str:
    """The registered metric that a helper's name means."""
    from pytest_ragbench.metrics.registry import all_metrics

    known = all_metrics()
    if name in known:
        return name
    return next((other for other in known if other.startswith(f"{name}_")), name)


@op("aggregate_gate", whole=True)
def aggregate_gate(given: Input) -> Outcome:
    """The mean of scores, some of which are missing, against a threshold."""
    ready: dict[str, Any] = {f"q{place}": raw for place, raw in enumerate(given["scores"], 1)}

    def give(sample: RagSample) -> float:
        raw = ready[str(sample.id)]
        if isinstance(raw, str) and raw in _FAILURES:
            raise _FAILURES[raw](f"no score for {sample.id}: {raw}")
        return float(number(raw))

    def run() -> float:
        name = own_metric("quality", give)
        with product.using():
            options = {key: given[key] for key in ("coverage",) if key in given}
            return assert_over(
                [RagSample("q", "a", id=one) for one in ready], name, given["threshold"], **options
            ).value

    return observe(run, kind="pass")


_FAILURES: dict[str, type[Unscored]] = {
    "judge_error": JudgeError,
    "endpoint_error": EndpointError,
    "embedding_error": EmbeddingError,
    "not_applicable": UndefinedScore,
}
