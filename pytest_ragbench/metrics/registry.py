"""What each metric needs, how it ranges, which way is better, and who computes it."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal

from pytest_ragbench.errors import UsageError
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.samples import RagSample
from pytest_ragbench.scores import Score
from pytest_ragbench.thresholds import Direction, Scale

Tier = Literal["embedding", "retrieval", "generation", "end_to_end", "judge", "dialogue"]
TIERS: tuple[Tier, ...] = ("embedding", "retrieval", "generation", "end_to_end", "judge", "dialogue")

Compute = Callable[..., Awaitable[Score]]

DEFAULT_BANDS: Mapping[str, float] = MappingProxyType({"excellent": 0.9, "good": 0.7})
"""Lower limits of the founding benchmark's bands; below the last one a score needs "attention"."""


@dataclass(frozen=True)
class Metric:
    """A metric as the registry knows it.

    Parameters
    ----------
    needs
        Sample fields that must have been given; a missing one is a usage error before any call.
    tasks
        Judge tasks that are asked; a judge that can't do one of them is a usage error.
    without_contexts
        The score where the retriever found nothing (contexts empty or blank); None lets the formula
        decide.
    bands
        Limits by name, best first; "attention" is what meets none of them.
    """

    name: str
    compute: Compute
    tier: Tier
    needs: tuple[str, ...]
    tasks: tuple[str, ...] = ()
    embedder: bool = False
    low: float = 0.0
    high: float = 1.0
    direction: Direction = "higher"
    without_contexts: float | None = 0.0
    bands: Mapping[str, float] = field(default_factory=lambda: DEFAULT_BANDS)
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def scale(self) -> Scale:
        return Scale(self.name, self.low, self.high, self.direction, self.bands)

    @property
    def worst(self) -> float:
        return self.low if self.direction == "higher" else self.high

    @property
    def summary(self) -> str:
        """First line of the docstring of the formula."""
        return (inspect.getdoc(self.compute) or "").partition("\n")[0]

    def band(self, value: float) -> str:
        """``"excellent"``, ``"good"`` ... or ``"attention"``."""
        for name, limit in self.bands.items():
            if value >= limit - 1e-9 if self.direction == "higher" else value <= limit + 1e-9:
                return name
        return "attention"


_METRICS: dict[str, Metric] = {}
_FAMILIES = ("generation", "retrieval", "semantic", "end_to_end")


def metric(
    name: str,
    *,
    tier: Tier,
    needs: tuple[str, ...],
    tasks: tuple[str, ...] = (),
    embedder: bool = False,
    low: float = 0.0,
    high: float = 1.0,
    direction: Direction = "higher",
    without_contexts: float | None = 0.0,
    bands: Mapping[str, float] = DEFAULT_BANDS,
) -> Callable[[Compute], Compute]:
    """Register ``async def formula(sample: RagSample, tools: Tools, **options) -> Score``."""

    def register(compute: Compute) -> Compute:
        _METRICS[name] = Metric(
            name, compute, tier, needs, tasks, embedder, low, high, direction, without_contexts, bands
        )
        return compute

    return register


def all_metrics() -> dict[str, Metric]:
    """Every registered metric by name."""
    for family in _FAMILIES:
        importlib.import_module(f"pytest_ragbench.metrics.{family}")
    return dict(sorted(_METRICS.items()))


_AT_K = re.compile(r"(?P<base>[a-z_0-9]+)@(?P<k>[^@]*)")


def find(name: str) -> Metric:
    """The metric called ``name``; ``"ndcg@10"`` is ``ndcg`` with ``k=10``.

    Raises
    ------
    UsageError
        Unknown name (the nearest ones are shown), or a cut-off that is no positive integer.
    """
    if not isinstance(name, str):
        raise UsageError(f"a metric is named by a text, got {name!r}")
    known = all_metrics()
    if name in known:
        return _complete(known[name])
    if (match := _AT_K.fullmatch(name)) and match["base"] in known and _takes_k(known[match["base"]]):
        if not match["k"].isascii() or not match["k"].isdigit() or int(match["k"]) < 1:
            raise UsageError(f"metric {name!r}: the cut-off after @ must be a whole number above 0")
        base = known[match["base"]]
        return replace(base, name=name, options={**base.options, "k": int(match["k"])})
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else f"; known: {', '.join(known)}"
    raise UsageError(f"unknown metric {name!r}{hint}")


def check_options(metric: Metric, options: Mapping[str, Any]) -> None:
    """Refuse options that the formula does not have."""
    parameters = list(inspect.signature(metric.compute).parameters)[2:]
    for name in options:
        if name not in parameters:
            raise UsageError(
                f"{metric.name} has no option {name!r}; its options: {', '.join(parameters) or 'none'}"
            )


def check_needs(metric: Metric, sample: RagSample) -> None:
    """Refuse a sample that the metric can't be computed from, before anything is asked.

    Raises
    ------
    UsageError
        Naming metric, field and sample.
    """
    for name in metric.needs:
        value = getattr(sample, name)
        where = f"{metric.name} for sample {sample.label}" + (
            f" ({sample.location})" if sample.location else ""
        )
        if value is None:
            raise UsageError(f"{where} needs {name}, which this sample does not have{_how(name)}")
        if name in ("question", "reference") and not value.strip():
            raise UsageError(f"{where} needs {name}, which is blank")
        if name == "relevant_ids" and not any(grade > 0 for grade in (sample.relevance or {}).values()):
            raise UsageError(f"{where} needs relevant_ids, and none of this question's has a grade above 0")
        if name == "reference_contexts" and not any(text.strip() for text in value):
            raise UsageError(f"{where} needs {name}, which is empty")


def _how(name: str) -> str:
    match name:
        case "contexts" | "context_ids":
            return (
                ": the reply had no chunks. Map them (rag.reply.contexts), or use metrics that need the "
                "answer only"
            )
        case "answer":
            return ": no answer was given"
        case _:
            return f": add a {name} column to its question"


def _takes_k(metric: Metric) -> bool:
    return "k" in inspect.signature(metric.compute).parameters


def _complete(metric: Metric) -> Metric:
    """Refuse a metric that is only meant with a cut-off."""
    parameter = inspect.signature(metric.compute).parameters.get("k")
    if parameter is not None and parameter.default is inspect.Parameter.empty:
        raise UsageError(f"metric {metric.name!r} needs a cut-off: write '{metric.name}@10'")
    return metric


__all__ = [
    "DEFAULT_BANDS",
    "TIERS",
    "Metric",
    "Tools",
    "all_metrics",
    "check_needs",
    "check_options",
    "find",
    "metric",
]
