"""What a helper asks for, as data: read by whoever wants to know before the helper is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

NOT_OPTIONS = frozenset({"judge", "embedder", "coverage"})
"""Arguments of all helpers; whatever else a call names is an option of the metric."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What one call asks for.

    Parameters
    ----------
    metrics
        By metric's name the threshold that the call gives; None where it gives none.
    options
        Of the metric.
    grades
        Thresholds of parts of the score, as a :class:`~pytest_ragbench.scoring.ScoreRequest` takes them.
    """

    metrics: Mapping[Any, Any]
    options: Mapping[str, Any]
    grades: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperSpec:
    """How a helper's arguments say which metric it asks for, of what, and what is asserted.

    Every helper has one in its attribute ``ragbench_helper``.

    Parameters
    ----------
    name
        The helper's: ``"assert_faithfulness"``; of an async one, that of the plain one.
    metric
        The metric's name, where no argument (or only one that may be left out) names it; None: no metric.
    metric_from
        The argument that names the metric.
    given_in
        The argument that takes the sample, or the set.
    over
        Whether that is a set.
    asserted
        Whether a score is held against a threshold.
    threshold_from
        The argument that holds the threshold.
    many_from
        Arguments that hold thresholds by metric, for a helper that asserts several at once.
    grades_from
        Arguments that hold thresholds of parts of the score; ``"threshold"`` is that of all parts.
    default_grade
        The threshold of all parts, where a call gives none at all.
    cutoff_from
        The argument that becomes part of the metric's name: ``k=10`` of ``assert_ndcg`` makes ``"ndcg@10"``.
    makes_sample
        Whether the metric is computed of another sample, made from what is given.
    not_options
        Arguments that are the helper's own affair.
    check
        Of a helper without a metric: raises a usage error where its options, or those that are known before it is
        called, can't be.
    """

    name: str
    metric: str | None = None
    metric_from: str | None = None
    given_in: str = "sample"
    over: bool = False
    asserted: bool = True
    threshold_from: str | None = "threshold"
    many_from: tuple[str, ...] = ()
    grades_from: tuple[str, ...] = ()
    default_grade: str | None = None
    cutoff_from: str | None = None
    makes_sample: bool = False
    not_options: tuple[str, ...] = ()
    check: Callable[[Mapping[str, Any]], object] | None = None

    def asked(self, arguments: Mapping[str, Any]) -> Asked:
        """What a call with these arguments asks for.

        Parameters
        ----------
        arguments
            By name, those of ``**options`` beside the others; any values, also such as stand for what is not
            known yet.
        """
        rest = {
            name: value
            for name, value in arguments.items()
            if name != self.given_in and name not in NOT_OPTIONS and name not in self.not_options
        }
        if self.many_from:
            metrics: dict[Any, Any] = {}
            for name in self.many_from:
                table = rest.pop(name, None)
                metrics |= table if isinstance(table, Mapping) else {}
            return Asked({**metrics, **rest}, {})
        grades = {name: rest.pop(name, None) for name in self.grades_from}
        if grades and all(value is None for value in grades.values()):
            # Only where nothing is given: one grade named means that the other is free.
            grades["threshold"] = self.default_grade
        threshold = rest.pop(self.threshold_from, None) if self.threshold_from else None
        metric: Any = rest.pop(self.metric_from, self.metric) if self.metric_from else self.metric
        cutoff = rest.pop(self.cutoff_from, None) if self.cutoff_from else None
        if metric is None:
            return Asked({}, rest)
        if cutoff is not None:
            metric = f"{metric}@{cutoff}"
        return Asked({metric: threshold}, rest, grades)


def helper(spec: HelperSpec) -> Callable[[F], F]:
    """Decorator: the function carries ``spec`` in its attribute ``ragbench_helper``."""

    def mark(function: F) -> F:
        function.ragbench_helper = spec  # type: ignore[attr-defined]
        return function

    return mark


def spec_of(function: Any) -> HelperSpec | None:
    """The spec of a helper; None of any other function."""
    spec = getattr(function, "ragbench_helper", None)
    return spec if isinstance(spec, HelperSpec) else None
