"""Metrics of users: a plain function in the form in which scoring calls a formula."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def takes_tools(name: str, formula: Callable[..., Any]) -> bool:
    """Whether the formula takes (sample, tools) rather than (sample).

    Raises
    ------
    UsageError
        It takes neither: a third positional argument, say.
    """
    parameters = list(inspect.signature(formula).parameters.values())
    positional = [parameter for parameter in parameters if parameter.kind in _POSITIONAL]
    if not 1 <= len(positional) <= 2 or len(parameters) > len(positional) + sum(
        parameter.kind is inspect.Parameter.KEYWORD_ONLY for parameter in parameters
    ):
        raise UsageError(
            f"metric {name!r}: its formula must take (sample) or (sample, tools), then options after a '*'; "
            f"it takes {inspect.signature(formula)}"
        )
    return len(positional) == 2


def adapted_formula(name: str, formula: Callable[..., Any]) -> Callable[..., Any]:
    """``formula`` as ``async (sample, tools, **options) -> Score``, whatever of that it is already."""
    with_tools = takes_tools(name, formula)
    is_async = inspect.iscoroutinefunction(formula)

    @functools.wraps(formula)
    async def compute(sample: Any, tools: Tools, **options: Any) -> Score:
        args = (sample, tools) if with_tools else (sample,)
        if is_async:
            found = await formula(*args, **options)
        else:  # it may block: not on the loop that all calls share
            found = await asyncio.to_thread(formula, *args, **options)
        return as_score(name, sample, tools, found)

    return compute


def as_score(name: str, sample: Any, tools: Tools, found: Any) -> Score:
    """A formula's own result as a score with judge and usage filled in.

    Raises
    ------
    UsageError
        It is neither a number, nor (number, reason), nor a score.
    """
    own = sample if isinstance(sample, RagSample) else RagSample("")
    if isinstance(found, Score):
        # The name as it was asked for: a formula can't know that it runs as "words@10".
        return replace(found, metric=tools.metric, sample_id=found.sample_id or own.id)
    reason = ""
    if isinstance(found, tuple) and len(found) == 2:
        found, reason = found
    try:
        value = float(found)
    except (TypeError, ValueError):
        raise UsageError(
            f"metric {name!r} returned {found!r}; return a number, (number, reason) or a Score"
        ) from None
    return tools.score(own, value, reason=str(reason))
