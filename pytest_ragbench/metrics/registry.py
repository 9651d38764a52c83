"""What each metric needs, how it ranges, which way is better, and who computes it."""

from __future__ import annotations

import difflib
import importlib
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import Any, Literal, TypeVar

from pytest_ragbench.extensions import installed_points
from pytest_ragbench.metrics.own import adapted_formula, takes_tools
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.model.thresholds import Direction, Scale

Tier = Literal[
    "embedding", "retrieval", "generation", "end_to_end", "judge", "judge_pipeline", "dialogue", "real_users"
]
TIERS: tuple[Tier, ...] = (
    "embedding",
    "retrieval",
    "generation",
    "end_to_end",
    "judge",
    "judge_pipeline",
    "dialogue",
    "real_users",
)

Compute = Callable[..., Awaitable[Score]]
Of = Literal["sample", "set"]
"""What a metric is computed from: one sample, or a whole set at once (where the value isn't a mean)."""
Adapt = Callable[[Any, Mapping[str, Any]], Mapping[str, Any]]
"""Of a sample (or a set) and the options; see :class:`Metric`."""
F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_BANDS: Mapping[str, float] = MappingProxyType({"excellent": 0.9, "good": 0.7})
"""Lower limits of the bands, by convention; below the last one a score needs "attention"."""
RETRIEVAL_BANDS: Mapping[str, float] = MappingProxyType({"excellent": 0.8, "good": 0.5})
JUDGE_BANDS: Mapping[str, float] = MappingProxyType({"excellent": 0.95, "good": 0.85})
_LOWER_BANDS: Mapping[str, float] = MappingProxyType({"excellent": 0.1, "good": 0.3})
NO_BANDS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Metric:
    """A metric as the registry knows it.

    Parameters
    ----------
    needs
        Sample fields that must have been given; a missing one is a usage error before any call.
    tasks
        Judge tasks that are asked (``"this|or_that"``); a judge that can't do one of them is a usage error.
    without_contexts
        The score where the retriever found nothing (contexts empty or blank); None lets the formula
        decide.
    bands
        Limits by name, best first; "attention" is what meets none of them. Without limits, no band.
    options
        Options that the name stands for: ``k`` of ``"ndcg@10"``.
    of
        ``"sample"``, or ``"set"`` for what is computed over a set at once.
    adapt
        Checks the options against a sample, and returns what they change here (fields by name): needs,
        tasks, embedder, direction, whether it watches its judge.
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
    of: Of = "sample"
    adapt: Adapt | None = None
    default_threshold: str | None = None
    """What is asserted where neither test nor configuration says: of metrics that only say yes or no."""
    watches_judge: bool = False
    """Whether it scores samples by another metric (``tools.score_samples``) and judges the judge by that."""
    about: str = ""
    """What it measures, where the formula's docstring speaks of another choice of its options."""

    @cached_property
    def scale(self) -> Scale:
        """What a threshold is checked against."""
        return Scale(self.name, self.low, self.high, self.direction, self.bands)

    @property
    def worst(self) -> float:
        """The end of the range that is not wanted: the value of a blank answer."""
        return self.low if self.direction == "higher" else self.high

    @property
    def doc(self) -> str:
        """The docstring of the formula, its first line that of this metric."""
        doc = inspect.getdoc(self.compute) or ""
        return self.about + "".join(doc.partition("\n")[1:]) if self.about else doc

    @property
    def summary(self) -> str:
        """First line of :attr:`doc`."""
        return self.doc.partition("\n")[0]

    def band(self, value: float) -> str | None:
        """``"excellent"``, ``"good"`` ... or ``"attention"``; None for a metric without bands."""
        for name, limit in self.bands.items():
            if value >= limit - 1e-9 if self.direction == "higher" else value <= limit + 1e-9:
                return name
        return "attention" if self.bands else None

    def turned(self, direction: Direction) -> Metric:
        """The metric in that direction, the limits of its bands mirrored in its range."""
        if direction == self.direction:
            return self
        bands = {name: self.low + self.high - limit for name, limit in self.bands.items()}
        return replace(self, direction=direction, bands=bands)

    def adapted(self, given: Any, options: Mapping[str, Any]) -> Metric:
        """The metric as the options make it for a sample (or set); UsageError for options that can't be."""
        if self.adapt is None:
            return self
        changes = dict(self.adapt(given, {**self.options, **options}))
        turned = self.turned(changes.pop("direction", self.direction))
        return replace(turned, **changes) if changes else turned


_COMMONEST = ("generation", "retrieval", "semantic", "end_to_end", "context", "correctness")
"""Families that are looked through first: a run of faithfulness alone does without the imports of the others."""


@cache
def _families() -> tuple[str, ...]:
    """All modules beside this one: a new family is a new file, which nobody has to list."""
    found = iter_modules([str(Path(__file__).parent)])
    return (*_COMMONEST, *(each.name for each in found if not each.ispkg and each.name not in _COMMONEST))


ENTRY_POINTS = "ragbench.metrics"
RESERVED_OPTIONS = frozenset({"threshold", "judge", "embedder", "coverage"})
"""Arguments that all helpers have, so that no formula can have an option of that name."""


class Registry:
    """The metrics by name. Families of ours, and packages that name an entry point, are imported when asked for."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._complete = False

    def all(self) -> dict[str, Metric]:
        """Every metric; imports what has not been.

        Raises
        ------
        UsageError
            An entry point can't be loaded.
        """
        if not self._complete:
            for family in _families():
                importlib.import_module(f"pytest_ragbench.metrics.{family}")
            # Before the entry points: a metric of theirs asks for all of ours when it is registered.
            self._complete = True
            self._load_entry_points()
        return self._metrics

    def until(self, name: str) -> dict[str, Metric]:
        """Those known where ``name`` is among them, and all where it is not: a run that uses metrics of one
        family does without the imports of the others.
        """
        for family in _families():
            if name in self._metrics:
                return self._metrics
            importlib.import_module(f"pytest_ragbench.metrics.{family}")
        return self.all()

    def add(self, entry: Metric) -> None:
        """Take up a metric; the same piece of code may be imported twice, under two module names.

        Raises
        ------
        UsageError
            The name stands for something else already.
        """
        known = self._metrics.get(entry.name)
        # By place, not by identity: pytest may import a conftest.py twice, under two names.
        if known is not None and _place(known.compute) != _place(entry.compute):
            raise UsageError(
                f"metric {entry.name!r} is registered already, at {_place(known.compute)}; "
                f"give the one at {_place(entry.compute)} another name"
            )
        self._metrics[entry.name] = entry

    def derive(self, name: str, base: str, changes: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Take up ``base`` under another name, with options set. Raises as :meth:`add`."""
        changes = dict(changes)
        known = self._metrics[base]
        known = known.turned(changes.pop("direction", known.direction))
        entry = replace(known, name=name, options={**known.options, **options}, **changes)
        _check_definition(name, entry.tier, entry.needs, entry.low, entry.high, entry.direction)
        taken = self._metrics.get(name)
        # By place, as above: a module may run twice, where pytester puts sys.modules back after an inner run too.
        if taken is not None and (_place(taken.compute), taken.options) != (
            _place(entry.compute),
            entry.options,
        ):
            raise UsageError(f"metric {name!r} is registered already; choose another name")
        self._metrics[name] = entry

    def _load_entry_points(self) -> None:
        for entry in installed_points(ENTRY_POINTS):
            try:
                entry.load()
            except Exception as error:  # a module that is not ours may raise anything
                self._complete = False  # said again next time, rather than "unknown metric"
                raise UsageError(
                    f"the entry point {entry.name!r} = {entry.value!r} of group {ENTRY_POINTS!r} can't be "
                    f"loaded: {error}"
                ) from error


_REGISTRY = Registry()


def metric(
    name: str,
    *,
    tier: Tier,
    needs: tuple[str, ...] | str = (),
    tasks: tuple[str, ...] = (),
    embedder: bool = False,
    low: float = 0.0,
    high: float = 1.0,
    direction: Direction = "higher",
    without_contexts: float | None = 0.0,
    bands: Mapping[str, float] | None = None,
    of: Of = "sample",
    adapt: Adapt | None = None,
) -> Callable[[F], F]:
    """Register a formula under ``name``: the decorator for your own metric.

    The formula is a function (async or not) of a sample, or of a sample and
    :class:`~pytest_ragbench.metrics.tools.Tools`; its keyword-only arguments are the metric's options. It
    returns a number, a number and a reason, or a :class:`~pytest_ragbench.model.scores.Score`. A class is made
    once, without arguments, and called. A formula that is not async runs in a thread.

    Put it in a ``conftest.py``, or in a module that a package names under the entry point group
    ``ragbench.metrics``.

    Parameters
    ----------
    name
        Lower-case identifier. ``assert_metric(name, ...)``, ``assert_quality``, ``[thresholds]``,
        question files and reports know the metric by it.
    tier
        Where reports show it: one of :data:`TIERS`.
    needs
        Sample fields: ``("question", "answer")``. A blank answer scores lowest without a call.
    tasks, embedder
        What ``tools`` is asked for: names of judge tasks; True for ``tools.embed``.
    low, high, direction
        The range of the value, and which way is better. A value outside is an error.
    without_contexts
        The value where contexts are needed and there are none; None: ask the formula.
    bands
        Named limits, best first. Default 0.9 and 0.7 (0.1 and 0.3 where lower is better) for a range
        that ends at 1, none for another.
    of
        ``"set"`` for a formula of a list of samples; see ``assert_over``.
    adapt
        See :class:`Metric`.

    Raises
    ------
    UsageError
        A name that is taken or not an identifier, an unknown tier or need, an empty range.
    """
    wanted = (needs,) if isinstance(needs, str) else tuple(needs)
    _check_definition(name, tier, wanted, low, high, direction)
    if bands is None:
        bands = _default_bands(low, high, direction)

    def register(formula: F) -> F:
        if not is_ours(formula):
            _REGISTRY.all()  # so that a name of ours is found to be taken
        compute = _computing(name, formula)
        _REGISTRY.add(
            Metric(
                name=name, compute=compute, tier=tier, needs=wanted, tasks=tuple(tasks), embedder=embedder,
                low=low, high=high, direction=direction, without_contexts=without_contexts, bands=bands,
                of=of, adapt=adapt,
            )
        )  # fmt: skip
        return formula

    return register


def named(name: str, base: str, changes: Mapping[str, Any] | None = None, **options: Any) -> None:
    """Register a metric with some of its options set under a name of its own.

    Raises
    ------
    UsageError
        The name is not an identifier, or stands for something else already.
    """
    _REGISTRY.derive(name, base, changes or {}, options)


def _default_bands(low: float, high: float, direction: Direction) -> Mapping[str, float]:
    # 0.9 and 0.7 mean something on a scale that ends at 1 only.
    if high != 1.0 or low not in (0.0, -1.0):
        return NO_BANDS
    return DEFAULT_BANDS if direction == "higher" else _LOWER_BANDS


def _check_definition(
    name: object, tier: str, needs: tuple[str, ...], low: float, high: float, direction: str
) -> None:
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-zA-Z0-9_]*", name):
        raise UsageError(f"a metric's name must be a lower-case identifier, got {name!r}")
    if tier not in TIERS:
        raise UsageError(f"metric {name!r}: unknown tier {tier!r}; tiers: {', '.join(TIERS)}")
    for need in needs:
        if need not in RagSample.__dataclass_fields__:
            raise UsageError(f"metric {name!r} needs {need!r}, which is not a field of a sample")
    if direction not in ("higher", "lower"):
        raise UsageError(f'metric {name!r}: direction must be "higher" or "lower", got {direction!r}')
    if not low < high:
        raise UsageError(f"metric {name!r}: its range {low!r}..{high!r} is empty")


def _place(compute: Compute) -> str:
    code = getattr(inspect.unwrap(compute), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(compute)


def _computing(name: str, formula: Callable[..., Any]) -> Compute:
    """The formula as the engine calls it: async, of (sample, tools), returning a score."""
    if inspect.isclass(formula):
        try:
            instance: Any = formula()
            formula = instance.__call__
        except (TypeError, AttributeError) as error:
            raise UsageError(
                f"metric {name!r}: a class must be made without arguments and be callable: {error}"
            ) from None
    for option in inspect.signature(formula).parameters:
        if option in RESERVED_OPTIONS:
            raise UsageError(
                f"metric {name!r}: {option!r} is an argument of the helpers; name the option otherwise"
            )
    # Ours return scores already, so that thousands of them need no wrapper.
    if inspect.iscoroutinefunction(formula) and takes_tools(name, formula) and is_ours(formula):
        return formula
    return adapted_formula(name, formula)


def is_ours(formula: Callable[..., Any]) -> bool:
    """Whether the formula belongs to this package."""
    return str(getattr(formula, "__module__", "")).startswith("pytest_ragbench.metrics.")


def all_metrics() -> dict[str, Metric]:
    """Every registered metric by name."""
    return dict(sorted(_REGISTRY.all().items()))


def known_metric(name: str) -> Metric | None:
    """The registered metric of exactly that name, also one that is only meant with a cut-off; None without one."""
    return _REGISTRY.until(name).get(name)


_AT_K = re.compile(r"(?P<base>[a-z_0-9]+)@(?P<k>[^@]*)")


def find(name: str) -> Metric:
    """The metric called ``name``; ``"ndcg@10"`` is ``ndcg`` with ``k=10``.

    Raises
    ------
    UsageError
        Unknown name (the nearest ones are shown), or a cut-off that is not a positive integer.
    """
    if not isinstance(name, str):
        raise UsageError(f"a metric is named by a string, got {name!r}")
    known = _REGISTRY.until(name.partition("@")[0])
    if name in known:
        return _complete(known[name])
    if (match := _AT_K.fullmatch(name)) and match["base"] in known and _takes_k(known[match["base"]]):
        if not match["k"].isascii() or not match["k"].isdigit() or int(match["k"]) < 1:
            raise UsageError(f"metric {name!r}: the cut-off after @ must be a whole number above 0")
        base = known[match["base"]]
        # The cut-off stays in the name: in reports recall@5 and recall@10 are two metrics.
        return replace(base, name=name, options={**base.options, "k": int(match["k"])})
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    listed = f"; known: {', '.join(sorted(known))}"
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else listed
    raise UsageError(f"unknown metric {name!r}{hint}")


def option_parameters(metric: Metric) -> Mapping[str, inspect.Parameter]:
    """A metric's options: the keyword-only arguments of its formula, as they are written there."""
    return _keyword_only(metric.compute)


@lru_cache(maxsize=1024)  # asked for each score, and slow to find out
def _keyword_only(compute: Compute) -> Mapping[str, inspect.Parameter]:
    return {
        name: parameter
        for name, parameter in inspect.signature(compute).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }


def _takes_k(metric: Metric) -> bool:
    return "k" in option_parameters(metric)


def _complete(metric: Metric) -> Metric:
    """Refuse a metric that is only meant with a cut-off."""
    parameter = option_parameters(metric).get("k")
    if parameter is not None and parameter.default is inspect.Parameter.empty:
        raise UsageError(f"metric {metric.name!r} needs a cut-off: write '{metric.name}@10'")
    return metric


__all__ = [
    "DEFAULT_BANDS",
    "ENTRY_POINTS",
    "JUDGE_BANDS",
    "NO_BANDS",
    "RESERVED_OPTIONS",
    "RETRIEVAL_BANDS",
    "TIERS",
    "Metric",
    "Registry",
    "Tools",
    "all_metrics",
    "find",
    "is_ours",
    "known_metric",
    "metric",
    "named",
    "option_parameters",
]
