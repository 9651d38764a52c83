"""``thresholds`` and ``over`` of a ``*.rag.yaml`` file: each way to write a metric, its threshold and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_ragbench.metrics.options import OptionError, options_from_file
from pytest_ragbench.metrics.registry import find, known_metric, option_parameters
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.thresholds import parse_threshold
from pytest_ragbench.scoring import Wanted

CRITERIA = {"aspect": "definition", "rubric": "rubric"}
"""Metrics that mean nothing without this option: what stands behind them is the option, and no threshold."""

_NOT_OPTIONS = ("metric", "threshold", "coverage")

_EXAMPLE = """write METRIC: ">=0.8", or {metric: NAME, threshold: ">=0.8", OPTION: VALUE}"""


@dataclass(frozen=True)
class Limit:
    """One metric with its threshold and options, as it is written."""

    metric: str
    threshold: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    coverage: float | None = None
    """Of ``over`` only: the share of the set that must have a score."""
    at: tuple[str | int, ...] = ()
    """Where it stands in its list or mapping."""
    in_defaults: bool = False

    @property
    def key(self) -> tuple[str, str]:
        """What a test's own limit replaces that of the defaults by: two aspects are two criteria."""
        return self.metric, repr(self.options.get(CRITERIA.get(self.metric, "")))

    def wanted(self) -> Wanted:
        """As helpers take it."""
        return Wanted(self.metric, self.threshold, self.options)


def limits(value: Any) -> tuple[Limit, ...]:
    """The limits of a mapping (metric -> threshold, or options) or of a list (names, or mappings).

    Raises
    ------
    ValueError
        Neither, or an entry that is none of these.
    """
    if isinstance(value, tuple):  # read already
        return value
    if isinstance(value, Mapping):
        return tuple(_limit(str(name), given, (str(name),)) for name, given in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_item(item, place) for place, item in enumerate(value))
    raise ValueError(f"wanted a mapping of metrics or a list of them: {_EXAMPLE}")


def _item(item: Any, place: int) -> Limit:
    if not isinstance(item, Mapping):
        return Limit(str(item), at=(place,))
    if "metric" in item:
        rest = {name: given for name, given in item.items() if name != "metric"}
        return _limit(str(item["metric"]), rest, (place,))
    if len(item) == 1 and not set(item) & set(_NOT_OPTIONS):
        [(name, given)] = item.items()
        return _limit(str(name), given, (place, str(name)))
    raise ValueError(f"no metric is named in entry {place + 1}: {_EXAMPLE}")


def _limit(name: str, given: Any, at: tuple[str | int, ...]) -> Limit:
    criterion = CRITERIA.get(name)
    if criterion is not None and isinstance(given, str) and not _is_threshold(given):
        return Limit(name, None, {criterion: given}, at=at)
    if not isinstance(given, Mapping):
        if isinstance(given, (list, tuple)):
            raise ValueError(f"{name}: wanted a threshold or a mapping of options, got a list; {_EXAMPLE}")
        return Limit(name, None if given is None else str(given), at=at)
    if name == "rubric" and "rubric" not in given:
        grades = {grade: text for grade, text in given.items() if str(grade).lstrip("-").isdigit()}
        given = {**{k: v for k, v in given.items() if k not in grades}, "rubric": grades} if grades else given
    options = {str(option): part for option, part in given.items() if option not in _NOT_OPTIONS}
    cutoff = options.pop("k", None) if _takes_cutoff(name) else None
    threshold = given.get("threshold")
    return Limit(
        name if cutoff is None else f"{name}@{cutoff}",
        None if threshold is None else str(threshold),
        options,
        None if given.get("coverage") is None else float(given["coverage"]),
        at,
    )


def _is_threshold(text: str) -> bool:
    try:
        parse_threshold(text)
    except UsageError:
        return False
    return True


def _takes_cutoff(name: str) -> bool:
    # recall with k: 5 is recall@5, as assert_recall(sample, k=5) is: reports have one metric and not two.
    metric = None if "@" in name else known_metric(name)
    return metric is not None and "k" in option_parameters(metric)


def checked(limit: Limit, *, over: bool) -> Limit:
    """The limit with its options as the formula takes them, once all of it is sure to be right.

    Raises
    ------
    OptionError
        Unknown metric or option, a value that can't be, a threshold that is unreadable or points the wrong way.
    """
    try:
        metric = find(limit.metric)
    except UsageError as error:
        raise OptionError(str(error)) from None
    if not over and metric.of == "set":
        raise OptionError(f"{metric.name} is computed over a set: write it under 'over'")
    if not over and limit.coverage is not None:
        raise OptionError("coverage is of a whole set: it goes with 'over'", "coverage")
    options = options_from_file(limit.metric, limit.options)
    try:
        if metric.of == "sample":
            metric = metric.adapted(_ANY, options)
        if limit.threshold is not None:
            parse_threshold(limit.threshold, metric.scale)
    except UsageError as error:
        raise OptionError(str(error)) from None
    return Limit(limit.metric, limit.threshold, options, limit.coverage, limit.at, limit.in_defaults)


_ANY = RagSample("-", answer="-", contexts=("-",), reference="-", context_ids=("-",), relevant_ids=("-",))
"""Options are held against a sample, and a metric may refuse one whose fields are blank."""
