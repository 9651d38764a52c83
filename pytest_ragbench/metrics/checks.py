"""What can be wrong with a metric, its options and a sample; found before anything is asked."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.judge.tasks import ASKED
from pytest_ragbench.metrics.needs import check_needs
from pytest_ragbench.metrics.registry import Metric, all_metrics, find, option_parameters
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


def check_options(metric: Metric, options: Mapping[str, Any], *, complete: bool = True) -> None:
    """Refuse options that the formula does not have, values that its ``Literal`` annotations don't list, and the lack
    of an option that it must have.

    Parameters
    ----------
    complete
        Whether these are all options, so that none may be missing.

    Raises
    ------
    UsageError
        Naming metric and option.
    """
    parameters = option_parameters(metric)
    for name in options:
        if name == "k" and "@" in metric.name:
            raise UsageError(f"{metric.name} was given k={options[name]!r}, too; its name has the cut-off")
        if name not in parameters:
            known = [*parameters, *(sorted(ASKING_OPTIONS) if asks_yes_or_no(metric) else ())]
            raise UsageError(
                f"{metric.name} has no option {name!r}; {did_you_mean(name, known, 'its options')}"
            )
    for name, (values, or_function) in (_listed_values(metric.compute) if options else {}).items():
        value = options.get(name, values[0])
        if value not in values and not (or_function and callable(value)):
            raise UsageError(f"{metric.name}: {name} must be {' or '.join(map(repr, values))}; got {value!r}")
    for name, parameter in parameters.items():
        missing = parameter.default is inspect.Parameter.empty and name not in {**metric.options, **options}
        if complete and missing:
            raise UsageError(
                f"{metric.name} needs the option {name!r}: assert_{metric.name}(..., {name}=...)"
            )


@lru_cache(maxsize=1024)
def _listed_values(compute: Callable[..., Any]) -> Mapping[str, tuple[tuple[Any, ...], bool]]:
    """Of options whose annotation lists all values: these, and whether a function may stand in their place."""
    try:
        hints = get_type_hints(inspect.unwrap(compute))
    except Exception:  # a user's formula may be annotated with what is imported for type checkers only
        return {}
    found = {}
    for name in inspect.signature(compute).parameters.keys() & hints.keys():
        hint = hints[name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        values = [value for kind in kinds if get_origin(kind) is Literal for value in get_args(kind)]
        if values and all(kind is NoneType or get_origin(kind) in (Literal, Callable) for kind in kinds):
            values += [None] if NoneType in kinds else []
            found[name] = (tuple(values), any(get_origin(kind) is Callable for kind in kinds))
    return found


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
