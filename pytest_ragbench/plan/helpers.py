"""Which metrics a call of one of our helpers asks for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from pytest_ragbench.plan.model import UNKNOWN, Ask, Of, Symbol, is_known
from pytest_ragbench.scoring.helper_spec import HelperSpec, spec_of

_signature = lru_cache(maxsize=512)(inspect.signature)


def is_helper(function: Any) -> bool:
    """Whether it is one of ours."""
    return spec_of(function) is not None


def asks_metrics(helper: Any) -> bool:
    """Whether a helper computes metrics; ``assert_expected`` does not."""
    spec = spec_of(helper)
    return spec is not None and bool(spec.metric or spec.metric_from or spec.many_from)


def ask_of(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Ask:
    """The call of a helper as an :class:`Ask`; arguments may be symbols."""
    spec = spec_of(function)
    signature = _signature(function)
    # A misspelt option is still an option: who checks the plan says that the metric has none of that name.
    misspelt = set(kwargs) - set(signature.parameters) if spec is not None and spec.metric else set()
    further = next(
        (name for name, each in signature.parameters.items() if each.kind is each.VAR_KEYWORD), None
    )
    if further is not None:
        misspelt = set()
    try:
        # Partial, since a missing argument is for the running test to complain of.
        known_names = {name: value for name, value in kwargs.items() if name not in misspelt}
        given = dict(signature.bind_partial(*args, **known_names).arguments)
    except TypeError:
        return Ask({}, of="other", known=False, helper=function.__name__)
    given |= {name: kwargs[name] for name in misspelt}
    if spec is None:
        return Ask({}, of="other", known=False, helper=function.__name__)
    given |= given.pop(further or "options", {})
    # A judge or embedder of the call itself exists only while the test runs.
    chosen = {tool: given.get(tool) for tool in ("judge", "embedder")}
    of = _of(given.get(spec.given_in, UNKNOWN), spec)
    ask = _described(spec, given, of)
    known = ask.known and of != "other" and bool(ask.metrics) and is_known(dict(ask.options))
    known = known and all(tool is None for tool in chosen.values())
    return Ask(
        ask.metrics,
        ask.options,
        of,
        ask.gated,
        ask.grades,
        known=known,
        judge=chosen["judge"],
        helper=spec.name,
        check=spec.check,
    )


def _of(given: Any, spec: HelperSpec) -> Of:
    if spec.makes_sample:
        return "other"
    if spec.over:
        return "set" if given is Symbol.SAMPLES else "other"
    if given is Symbol.SAMPLE:
        return "sample"
    return "each" if given is Symbol.EACH else "other"


def _described(spec: HelperSpec, given: dict[str, Any], of: Of) -> Ask:
    tables = [given.get(name) for name in spec.many_from]
    # A sample in the metric's place is for the running test to complain of.
    unnamed = spec.metric_from and not isinstance(given.get(spec.metric_from, spec.metric), (str, Symbol))
    if unnamed or not all(table is None or isinstance(table, Mapping) for table in tables):
        return Ask({}, gated=spec.asserted, known=False)
    if spec.cutoff_from and not is_known(given.get(spec.cutoff_from)):
        return Ask({}, gated=spec.asserted, known=False)
    asked = spec.asked(given)
    metrics = {name: limit for name, limit in asked.metrics.items() if isinstance(name, str)}
    known = len(metrics) == len(asked.metrics)
    return Ask(metrics, asked.options, of, spec.asserted, asked.grades, known=known)
