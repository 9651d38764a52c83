"""A metric's options from a file: plain values become what the formula is annotated with, or are refused."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from pytest_ragbench.metrics.checks import ASKING_OPTIONS, check_options, formula_options
from pytest_ragbench.metrics.registry import Metric, find, known_metric
from pytest_ragbench.model.errors import UsageError


class OptionError(UsageError):
    """An option that can't be; ``option`` is its name, None where none is at fault."""

    def __init__(self, message: str, option: str | None = None) -> None:
        super().__init__(message)
        self.option = option


def options_from_file(name: str, given: Mapping[str, Any], *, part: bool = False) -> dict[str, Any]:
    """The options of the metric called ``name`` that a file gives as strings, numbers, lists and tables.

    Parameters
    ----------
    part
        These are defaults: another place may give the rest, and the cut-off that is part of the name.

    Raises
    ------
    OptionError
        Unknown metric or option, or a value of another type than the formula takes.
    """
    try:
        metric = (known_metric(name) if part else None) or find(name)
    except UsageError as error:
        raise OptionError(str(error)) from None
    if part and "k" in given:
        base = name.partition("@")[0]
        raise OptionError(
            f"the cut-off is part of the metric's name: write {base}@{given['k']} in the test", "k"
        )
    found = {}
    for option, value in given.items():
        try:
            # One by one, so that the message can name the line of the one that is wrong.
            check_options(metric, formula_options(metric, _with_way({option: value})), complete=False)
            found[option] = value if option in ASKING_OPTIONS else _read(metric, option, value)
        except UsageError as error:
            raise OptionError(str(error), option) from None
    if not part:
        try:
            check_options(metric, formula_options(metric, found))
        except UsageError as error:
            raise OptionError(str(error)) from None
    return found


def _with_way(option: Mapping[str, Any]) -> Mapping[str, Any]:
    # yes_from means something beside verdicts = "probability" only; whether that is given is looked at later.
    return {**option, "verdicts": "probability"} if "yes_from" in option else option


def _read(metric: Metric, option: str, value: Any) -> Any:
    adapter = _adapters(metric.compute).get(option)
    if adapter is None:
        return value
    try:
        # By way of JSON, where a list may stand for a tuple and "1" for a key that is a number, but True for no 1.
        return adapter.validate_json(json.dumps(value), strict=True)
    except (ValidationError, TypeError, ValueError) as error:
        said = str(error.errors()[0]["msg"] if isinstance(error, ValidationError) else error)
        loc = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ()
        place = "".join(f"[{part!r}]" for part in loc if isinstance(part, int))
        said = said[:1].lower() + said[1:]
        raise UsageError(f"{metric.name}: {option}{place}: {said}; got {value!r}") from None


@lru_cache(maxsize=1024)
def _adapters(compute: Callable[..., Any]) -> Mapping[str, TypeAdapter[Any]]:
    """By option, what reads it; none for what a user's formula leaves without an annotation that can be read."""
    formula = inspect.unwrap(compute)
    try:
        hints = get_type_hints(formula)
    except Exception:  # annotated with what is imported for type checkers only
        return {}
    found = {}
    for name, parameter in inspect.signature(formula).parameters.items():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and name in hints:
            try:
                found[name] = TypeAdapter(hints[name])
            except Exception:  # noqa: S112 - a class of the user's: its values are taken as they are
                continue
    return found


__all__ = ["OptionError", "options_from_file"]
