"""Parts of a report as builtin types and as JSON text: for files, and to cross from a worker of xdist."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, cast

from pytest_ragbench.model.report import (
    GateRecord,
    MetricComparison,
    MetricSummary,
    RunInfo,
    RunReport,
    SummaryRecord,
)
from pytest_ragbench.model.tests import QuestionRecord, ReplyRecord, SampleRecord, ScoreRecord, TestRecord

ALWAYS_IN_A_SCORE = ("metric", "tier", "sample", "count", "value", "threshold", "passed", "band", "error")
"""The other fields are written where there is a value."""
ALWAYS_IN_A_REPORT = ("schema", "version", "run", "results", "complete")
"""The other fields are written when the run ends."""
AT_TIMES: Mapping[type, tuple[str, ...]] = {
    RunInfo: ("systems", "trace_url", "spans", "shards"),
    ScoreRecord: ("setup", "replies"),
    SampleRecord: ("first_token", "at_once", "trace_id", "span_id", "asked"),
    QuestionRecord: ("first_token", "at_once", "trace_id"),
    ReplyRecord: tuple(f.name for f in fields(ReplyRecord) if f.name != "text"),
    TestRecord: ("system", "metrics", "reruns"),
    MetricSummary: ("system",),
    GateRecord: ("system",),
    MetricComparison: ("system",),
    SummaryRecord: ("judges", "embedders"),
    RunReport: ("missing", "not_chosen", "baseline", "preflight", "mutations"),
}
"""Fields that are written only where they say something."""


def as_dict(part: Any) -> dict[str, Any]:
    """A part of a report, and all that is in it, as dictionaries and lists, in the order of the fields."""
    told: dict[str, Any] = _builtin(part)
    return told


def to_json(part: Any) -> str:
    """On one line. A number that is not finite is an error of ours (ValueError), never ``NaN``."""
    return json.dumps(part, default=_written, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def as_brief_dict(part: Any) -> dict[str, Any]:
    """As :func:`as_dict`, without the fields that have their default."""
    told: dict[str, Any] = {}
    for name, default in _defaults(cast(Any, type(part))).items():
        value = getattr(part, name)
        if value == default:
            continue
        if type(value) is tuple:
            told[name] = [as_brief_dict(each) if is_dataclass(each) else _builtin(each) for each in value]
        else:
            told[name] = as_brief_dict(value) if is_dataclass(value) else _builtin(value)
    return told


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {
        each.name: each.default_factory() if each.default_factory is not MISSING else each.default
        for each in fields(kind)
    }


def _builtin(value: Any) -> Any:
    kind = type(value)
    # Exact types first: nearly all values are such, and reports have millions of them.
    if kind is str or value is None or kind is int or kind is float or kind is bool:
        return value
    if kind is tuple or kind is list:
        return [_builtin(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _builtin(each) for name, each in value.items()}
    return {name: _builtin(each) for name, each in _written(value).items()}


def _written(part: Any) -> dict[str, Any]:
    """The fields of one part, without those that say nothing."""
    # json calls this for what it does not know, such as a MappingProxyType.
    if isinstance(part, Mapping):
        return dict(part)
    kind = type(part)
    left_out = _LEFT_OUT[kind](part) if kind in _LEFT_OUT else ()
    return {name: getattr(part, name) for name in _names(cast(Any, kind)) if name not in left_out}


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind))


def _of_a_score(score: ScoreRecord) -> Collection[str]:
    if score.value is not None:
        return [name for name in AT_TIMES[ScoreRecord] if not getattr(score, name)]
    defaults = _defaults(ScoreRecord)
    return [name for name in _OF_A_VALUE if getattr(score, name) == defaults[name]]


def _where_empty(part: Any) -> Collection[str]:
    return [name for name in AT_TIMES[type(part)] if not getattr(part, name)]


def _of_a_report(report: RunReport) -> Collection[str]:
    votes = () if report.flaky or report.panels else ("flaky", "panels")
    return (*_where_empty(report), *votes)


_OF_A_VALUE = [name for name in _names(ScoreRecord) if name not in ALWAYS_IN_A_SCORE]
_LEFT_OUT: Mapping[type, Callable[[Any], Collection[str]]] = {
    **dict.fromkeys(AT_TIMES, _where_empty),
    ScoreRecord: _of_a_score,
    RunReport: _of_a_report,
}
