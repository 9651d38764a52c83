"""One helper a metric, ``assert_<metric>(sample, threshold, **options)``, made from the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pytest_ragbench.assertions.samples import assert_metric
from pytest_ragbench.assertions.sets import assert_over
from pytest_ragbench.metrics.checks import asks_yes_or_no
from pytest_ragbench.metrics.registry import Metric, all_metrics, known_metric, option_parameters
from pytest_ragbench.metrics.tools import Verdicts
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import Items, ThresholdLike
from pytest_ragbench.scoring.helper_spec import HelperSpec

PREFIX = "assert_"

_BEFORE_THRESHOLD = {"aspect": ("definition",), "rubric": ("rubric",)}
"""Options without which the helper would mean nothing: they come right after the sample."""


def helper_names() -> list[str]:
    """Of the helpers of all metrics."""
    return [PREFIX + name for name in all_metrics()]


def made_helper(name: str) -> Callable[..., Score] | None:
    """The helper of that name, of a metric of ours or of the user's; None where there is no such metric."""
    if not name.startswith(PREFIX):
        return None
    metric = known_metric(name.removeprefix(PREFIX))
    return None if metric is None else _made(metric)


def _made(metric: Metric) -> Callable[..., Score]:
    positional = [
        "items" if metric.of == "set" else "sample",
        *_BEFORE_THRESHOLD.get(metric.name, ()),
        "threshold",
    ]
    name = PREFIX + metric.name
    # assert_ndcg(sample, k=10) asks for ndcg@10, so that reports have one metric and not two.
    takes_cutoff = "k" in option_parameters(metric)
    spec = HelperSpec(
        name=name, metric=metric.name, given_in=positional[0], over=metric.of == "set",
        cutoff_from="k" if takes_cutoff else None,
    )  # fmt: skip

    # Bound by hand: an unknown option gets the message that names the known ones, not a TypeError.
    def helper(*args: Any, **options: Any) -> Score:
        __tracebackhide__ = True
        given = _by_name(name, positional, args, options)
        asked = spec.asked(given)
        [(measured, threshold)] = asked.metrics.items()
        tools = {key: given[key] for key in ("judge", "embedder") if key in given}
        if spec.over:
            coverage = given.get("coverage", 1.0)
            return assert_over(
                given["items"], measured, threshold, coverage=coverage, **tools, **asked.options
            )
        return assert_metric(measured, given["sample"], threshold, **tools, **asked.options)

    helper.__name__ = helper.__qualname__ = name
    # Where people import it from, so that it can be pickled and found.
    helper.__module__ = "pytest_ragbench"
    helper.__doc__ = _doc(metric)
    helper.__signature__ = signature_of(metric)  # type: ignore[attr-defined]
    helper.ragbench_helper = spec  # type: ignore[attr-defined]
    return helper


def _by_name(
    name: str, positional: list[str], args: tuple[Any, ...], options: Mapping[str, Any]
) -> dict[str, Any]:
    """The arguments of a call by name, as Python would bind them; unknown options are left to their check."""
    if len(args) > len(positional):
        raise TypeError(f"{name}() takes {len(positional)} positional arguments but {len(args)} were given")
    given = dict(zip(positional, args, strict=False))
    if twice := given.keys() & options.keys():
        raise TypeError(f"{name}() got multiple values for argument {min(twice)!r}")
    given |= options
    # Not the last one: a threshold may come from the configuration.
    for wanted in positional[:-1]:
        if wanted not in given:
            raise TypeError(f"{name}() missing 1 required positional argument: {wanted!r}")
    return given


def signature_of(metric: Metric) -> inspect.Signature:
    """The exact arguments of a metric's helper: its options with their defaults, and what all helpers take."""
    first = _BEFORE_THRESHOLD.get(metric.name, ())
    options = dict(option_parameters(metric))
    either = inspect.Parameter.POSITIONAL_OR_KEYWORD
    alone = inspect.Parameter.KEYWORD_ONLY
    over = metric.of == "set"
    parameters = [
        inspect.Parameter("items" if over else "sample", either, annotation=Items if over else RagSample),
        *(options.pop(name).replace(kind=either) for name in first),
        inspect.Parameter("threshold", either, default=None, annotation=ThresholdLike | None),
    ]
    for name, parameter in options.items():
        # hallucination is noise_sensitivity with its mode set: editors see that as the default.
        preset = metric.options.get(name, parameter.default)
        parameters.append(parameter.replace(kind=alone, default=preset))
    if not over and metric.tasks and asks_yes_or_no(metric):
        parameters.append(inspect.Parameter("verdicts", alone, default=None, annotation=Verdicts | None))
        parameters.append(inspect.Parameter("yes_from", alone, default=None, annotation=float | None))
    for name in ("judge", "embedder"):
        parameters.append(inspect.Parameter(name, alone, default=None, annotation=object))
    if over:
        parameters.append(inspect.Parameter("coverage", alone, default=1.0, annotation=float))
    return inspect.Signature(parameters, return_annotation=Score)


_RAISES = """Raises
------
QualityFailure
    The value misses the threshold.
UsageError
    An option or threshold that can't be, or something that the metric needs is absent; before any call.
Unscored
    Judge or embedder failed, or the metric is undefined here."""


def _doc(metric: Metric) -> str:
    """That of the formula with its options, and what is true of the metric whatever its formula says."""
    summary, _, rest = (metric.doc or f"The metric {metric.name}.").partition("\n\n")
    needs = f" Needs {', '.join(metric.needs)}." if metric.needs else ""
    ranges = f"Range {metric.low:g}..{metric.high:g}, {metric.direction} is better.{needs}"
    parts = [f"Assert {metric.name}: {summary}", ranges, rest.strip(), _RAISES]
    return "\n\n".join(part for part in parts if part)
