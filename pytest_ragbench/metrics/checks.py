"""What can be wrong with a metric, its options and a sample; found before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_ragbench.judge.tasks import ASKED
from pytest_ragbench.metrics.needs import check_needs
from pytest_ragbench.metrics.registry import Metric, all_metrics, check_options, find
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample

ASKING_OPTIONS = frozenset({"verdicts", "yes_from"})
"""Options that every metric with yes-or-no verdicts has: how the judge is asked for them."""


def check_sample(name: str, sample: RagSample, options: Mapping[str, Any]) -> Metric:
    """The metric as its options make it for ``sample``, once it is sure that it can be computed from it.

    Raises
    ------
    UsageError
        Unknown metric or option, or a field that the sample does not have.
    """
    metric = find(name)
    check_sample_metric(metric)
    check_options(metric, formula_options(metric, options))
    return fit_to_sample(metric, sample, options)


def check_sample_metric(metric: Metric) -> None:
    """Refuse a metric that has no value for a single sample.

    Raises
    ------
    UsageError
        It is computed over a set.
    """
    if metric.of == "set":
        raise UsageError(
            f"{metric.name} is computed over a set, not for one sample: "
            f"write assert_over(samples, {metric.name!r}, ...)"
        )


def fit_to_sample(metric: Metric, sample: RagSample, options: Mapping[str, Any]) -> Metric:
    """The last steps of :func:`check_sample`, for a metric whose name and options are known to be right."""
    if not isinstance(sample, RagSample):
        raise UsageError(f"{metric.name} is computed from a RagSample, got {type(sample).__name__}")
    if metric.adapt is not None:
        metric = metric.adapted(sample, formula_options(metric, options))
    check_needs(metric, sample)
    return with_verdicts(metric, options)


def with_verdicts(metric: Metric, options: Mapping[str, Any]) -> Metric:
    """The metric, with the way in which its verdicts are asked for among its own options."""
    if "verdicts" not in options:
        return metric
    return replace(metric, options={**metric.options, "verdicts": options["verdicts"]})


def formula_options(metric: Metric, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options without :data:`ASKING_OPTIONS`, which are checked here and not handed to the formula.

    Raises
    ------
    UsageError
        ``verdicts`` is neither ``"json"`` nor ``"probability"``, this metric asks for no such verdicts, or
        ``yes_from`` is not in 0..1.
    """
    if not options.keys() & ASKING_OPTIONS:
        return options
    way, yes_from = options.get("verdicts", "json"), options.get("yes_from", 0.5)
    if way not in ("json", "probability"):
        raise UsageError(f'{metric.name}: verdicts must be "json" or "probability"; got {way!r}')
    if way == "probability" and not asks_yes_or_no(metric):
        able = sorted(name for name, known in all_metrics().items() if asks_yes_or_no(known))
        raise UsageError(
            f"{metric.name} asks for no yes-or-no verdicts one by one, so there is no probability of them; "
            f"those that do: {', '.join(able)}"
        )
    if "yes_from" in options and (way == "json" or not _is_probability(yes_from)):
        raise UsageError(
            f'{metric.name}: yes_from is for verdicts = "probability", and lies between 0 and 1; got {yes_from!r}'
        )
    return {name: value for name, value in options.items() if name not in ASKING_OPTIONS}


def _is_probability(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1


def asks_yes_or_no(metric: Metric) -> bool:
    """Whether the metric's verdicts can be asked for by probability."""
    return any(task in ASKED for task in metric.tasks)
