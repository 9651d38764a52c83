"""Which metrics a call of one of our helpers asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pytest_ragbench.plan.model import UNKNOWN, Ask, Of, Symbol, is_known

_HOMES = ("assertions.samples", "assertions.sets", "asserts", "variants")
_NO_OPTIONS = frozenset({"judge", "embedder", "coverage"})
_signature = lru_cache(maxsize=512)(inspect.signature)


def is_helper(function: Any) -> bool:
    """Whether calling ``function`` computes metrics."""
    home = str(getattr(function, "__module__", "")).removeprefix("pytest_ragbench.")
    name = str(getattr(function, "__name__", ""))
    named = name.startswith(("assert_", "aassert_")) or name in ("score", "ascore", "score_over")
    return inspect.isfunction(function) and home in _HOMES and named


def ask_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Ask:
    """The call as an :class:`Ask`; arguments may be symbols."""
    try:
        given = dict(_signature(function).bind_partial(*args, **kwargs).arguments)
    except TypeError:
        return Ask({}, of="other", known=False, helper=function.__name__)
    given |= given.pop("options", {})
    name = (
        function.__name__.removeprefix("a") if function.__name__.startswith("aassert_") else function.__name__
    )
    chosen = {tool: given.pop(tool, None) for tool in ("judge", "embedder")}
    given.pop("coverage", None)
    of = _of(
        given.pop("sample", given.pop("items", given.pop("samples", UNKNOWN))), _takes_set(name, function)
    )
    ask = _described(name, function, given, of)
    known = ask.known and of != "other" and bool(ask.metrics) and is_known(dict(ask.options))
    known = known and all(tool is None for tool in chosen.values())
    return Ask(
        ask.metrics, ask.options, of, ask.gated, ask.grades, known=known, judge=chosen["judge"], helper=name
    )


def _takes_set(name: str, function: Callable[..., Any]) -> bool:
    return "sample" not in _signature(function).parameters and name != "assert_same_meaning"


def _of(sample: Any, over: bool) -> Of:
    if over:
        return "set" if sample is Symbol.SAMPLES else "other"
    if sample is Symbol.SAMPLE:
        return "sample"
    return "each" if sample is Symbol.EACH else "other"


def _described(name: str, function: Callable[..., Any], given: dict[str, Any], of: Of) -> Ask:
    limit = given.pop("threshold", None)
    match name:
        case "assert_metric" | "assert_over":
            return _one(given.pop("name", UNKNOWN), limit, given)
        case "score" | "ascore" | "score_over":
            return _one(given.pop("name", UNKNOWN), None, given, gated=False)
        case "assert_retrieval":
            return _one(given.pop("metric", UNKNOWN), limit, given)
        case "assert_quality":
            table = given.pop("wanted", None) or {}
            if not isinstance(table, Mapping):
                return Ask({}, known=False)
            metrics = {**table, **given.pop("thresholds", {})}
            return Ask({key: value for key, value in metrics.items() if isinstance(key, str)})
        case "assert_search_rag":
            grades = (limit, given.get("answer_correctness"), given.get("groundedness"))
            return Ask({"search_rag": None}, gated=False, grades=grades)
        case "assert_abstains":
            return Ask({"abstention": None}, gated=False)
        case "assert_same_meaning":
            return Ask({given.get("metric", "semantic_similarity"): limit}, known=False)
        case "assert_rouge":
            return _one(given.pop("kind", "rougeL"), limit, given)
        case "assert_aspect":
            direction = given.setdefault("direction", "higher")
            if limit is None:
                limit = {"higher": "==1", "lower": "==0"}.get(direction, UNKNOWN)
            return _one("aspect", limit, given)
    metric: Any = name.removeprefix("assert_")
    if "k" in _signature(function).parameters and (k := given.pop("k", None)) is not None:
        metric = f"{metric}@{k}" if is_known(k) else UNKNOWN
    return _one(metric, limit, given)


def _one(metric: Any, limit: Any, options: Mapping[str, Any], *, gated: bool = True) -> Ask:
    if not isinstance(metric, str):
        return Ask({}, options, gated=gated, known=False)
    return Ask({metric: limit}, options, gated=gated)
