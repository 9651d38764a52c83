"""Rules as a QA engineer writes them: ``faithfulness[lang=ru] >= 0.85 with 95% confidence``.

=====================================================  ====================================================
``faithfulness >= 0.85``                               fails where it is surely below, passes where surely not
``faithfulness >= 0.85 with 95% confidence``           passes where it is surely not below, else fails
``faithfulness mean >= 0.85``                          the mean as it is, whatever chance had to do with it
``faithfulness p10 >= 0.5``, ``latency p95 <= 2``      a percentile (also ``median``, ``min``, ``max``)
``faithfulness pass_rate >= 0.9``                      the share of scores that met the tests' own thresholds
``faithfulness no worse than baseline by more than .02``  against another run, question by question
``pass_rate``, ``error_rate``, ``cost``                of the run, or of the part in brackets
``latency``, ``first_token``                           seconds of answers, and until streamed ones begin
``must_pass``                                          every question that is marked so passes
=====================================================  ====================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.thresholds import Scale, Threshold, parse_threshold
from pytest_ragbench.statistics.bounds import CONFIDENCE

Kind = Literal["sure", "confident", "plain", "baseline", "must_pass"]

OF_RUN: Mapping[str, Scale] = {
    "pass_rate": Scale("pass_rate"),
    "error_rate": Scale("error_rate", direction="lower"),
    "latency": Scale("latency", high=math.inf, direction="lower"),
    "first_token": Scale("first_token", high=math.inf, direction="lower"),
    "cost": Scale("cost", high=math.inf, direction="lower"),
}
"""Quantities besides metrics: shares of questions, seconds, US dollars."""

TIMES = ("latency", "first_token")
"""Those that are measured of each answer."""

SUBSETS = ("tag", "lang", "file", "tier", "test", "metric", "session")

_PLAIN_BY_NATURE = ("error_rate", "cost")
GRADES = ("search_rag_answer_correctness", "search_rag_groundedness")
"""Of the one metric that gives two."""
_LEFT = re.compile(r"\s*(?P<name>[^\W\d][\w@]*)\s*(?:\[(?P<subset>[^\[\]]*)\])?\s*(?P<rest>.*)", re.DOTALL)
_STATISTIC = re.compile(r"(?P<name>mean|median|min|max|pass_rate|p\d{1,2}(?:\.\d+)?)(?=[\s<>=≥≤]|$)\s*")
_CONFIDENCE = re.compile(r"\s+with\s+(?P<percent>\d{2}(?:\.\d+)?)\s*%\s+confidence$")
_BASELINE = re.compile(
    r"no\s+worse\s+than\s+(?:the\s+)?baseline(?:\s+by\s+more\s+than\s+(?P<margin>\d*\.?\d+))?$"
)
_HELP = (
    "write '>= 0.85', '>= 0.85 with 95% confidence', 'mean >= 0.85', 'p10 >= 0.5' or "
    "'no worse than baseline by more than 0.02'"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One gate, read and checked."""

    text: str
    quantity: str
    """A metric, one of :data:`OF_RUN`, or ``must_pass``."""
    kind: Kind
    scale: Scale
    subset: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(name, alternatives) pairs that must all hold."""
    statistic: str = "mean"
    threshold: Threshold | None = None
    confidence: float = CONFIDENCE
    margin: float = 0.0
    system: str | None = None
    """The one of several systems that it is decided for."""

    def for_system(self, name: str) -> Rule:
        """The same rule for one system of several, which its text names first."""
        return replace(self, text=f"{name}: {self.text}", system=name)

    @property
    def higher(self) -> bool:
        """Whether more is better."""
        return self.scale.direction == "higher"

    @property
    def limit(self) -> float:
        """The threshold's finite end."""
        if self.threshold is None:
            raise UsageError(f"{self.text}: there is no threshold")
        return self.threshold.low if math.isfinite(self.threshold.low) else self.threshold.high

    @property
    def name(self) -> str:
        """``faithfulness[lang=ru]``."""
        inside = ",".join(f"{name}={'|'.join(values)}" for name, values in self.subset)
        return f"{self.quantity}[{inside}]" if inside else self.quantity


ScaleOf = Callable[[str], Scale]
"""Metric -> its range and direction; UsageError where they aren't known."""


def registered_scale(metric: str) -> Scale:
    """The scale of a metric that is registered in this process.

    Raises
    ------
    UsageError
        There is no such metric.
    """
    from pytest_ragbench.metrics.registry import find  # registers all of ours, which takes a while

    return find(metric).scale


def rules_of(
    configured: Mapping[str, Any],
    typed: Sequence[str] = (),
    *,
    only_typed: bool = False,
    scale_of: ScaleOf = registered_scale,
) -> list[Rule]:
    """The gates that are held: those typed, and of the configuration those that no typed one replaces by its name.

    Parameters
    ----------
    configured
        ``[gates]``.
    typed
        Of the command line.
    only_typed
        Leave out the configured ones. What is typed always counts.

    Raises
    ------
    UsageError
        As :func:`parse_rule`.
    """
    parsed = [parse_rule(text, scale_of) for text in typed]
    # A mean and a percentile of one metric are two gates; the same kind twice is a correction.
    own = {(rule.name, rule.kind, rule.statistic): rule for rule in parsed}
    # By name alone: who types a gate for a metric means it in place of all configured ones of it.
    replaced = {rule.name for rule in parsed}
    others = [] if only_typed else parse_rules(configured, scale_of=scale_of)
    return [*(rule for rule in others if rule.name not in replaced), *own.values()]


def parse_rules(
    gates: Mapping[str, Any], *, where: str = "[gates]", scale_of: ScaleOf = registered_scale
) -> list[Rule]:
    """The gates of a configuration: name (with a subset in brackets) to rule.

    Raises
    ------
    UsageError
        Naming the place and the gate.
    """
    rules = []
    for name, value in gates.items():
        if name.partition("[")[0].strip() == "must_pass" and value in (True, "all"):
            text = name.strip()
        elif isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise UsageError(f"{where} {name}: a rule is a string or a number, got {value!r}; {_HELP}")
        else:
            text = f"{name} {value}"
        try:
            rules.append(parse_rule(text, scale_of))
        except UsageError as error:
            raise UsageError(f"{where} {error}") from None
    return rules


def parse_rule(text: str, scale_of: ScaleOf = registered_scale) -> Rule:
    """A rule with its name: ``"faithfulness >= 0.85"``.

    Raises
    ------
    UsageError
        Unreadable; an unknown metric or subset; a threshold out of range, never to be met, with two ends or
        pointing the wrong way.
    """
    written = " ".join(text.split())
    match = _LEFT.fullmatch(text)
    if match is None:
        raise UsageError(f"{written!r}: a gate begins with a metric: 'faithfulness >= 0.85'")
    quantity, rest = match["name"], " ".join(match["rest"].split())
    subset = _subset(match["subset"], written, quantity)
    if quantity == "must_pass":
        if rest:
            raise UsageError(f"{written!r}: must_pass takes no threshold: each such question has to pass")
        return Rule(written, quantity, "must_pass", Scale("must_pass"), subset)
    # Before the rest is read, so that a misspelt metric is not reported as a bad threshold.
    scale = _scale(quantity, written, scale_of)
    if not rest:
        raise UsageError(f"{written!r}: the rule is missing; {_HELP}")
    if found := _BASELINE.fullmatch(rest):
        if quantity in OF_RUN and quantity not in {"pass_rate", *TIMES}:
            raise UsageError(f"{written!r}: {quantity} has no value a question, so it can't be paired")
        return Rule(written, quantity, "baseline", scale, subset, margin=float(found["margin"] or 0))
    return _limited(written, quantity, scale, subset, rest)


def _limited(
    written: str, quantity: str, scale: Scale, subset: tuple[tuple[str, tuple[str, ...]], ...], rest: str
) -> Rule:
    """A rule with a threshold."""
    confidence = None
    if found := _CONFIDENCE.search(rest):
        confidence, rest = float(found["percent"]) / 100, rest[: found.start()]
        if not 0.5 < confidence < 1:
            raise UsageError(f"{written!r}: a confidence above 50% and below 100% is wanted")
    statistic = None
    if found := _STATISTIC.match(rest):
        statistic, rest = found["name"], rest[found.end() :]
        if statistic == "pass_rate":
            if quantity in OF_RUN:
                raise UsageError(
                    f"{written!r}: pass_rate is for metrics; write 'pass_rate >= 0.9' for the run"
                )
            scale = Scale(f"{quantity} pass_rate")
        elif quantity in ("pass_rate", *_PLAIN_BY_NATURE):
            raise UsageError(f"{written!r}: {quantity} is one number for the run: leave {statistic!r} out")
    if not rest:
        raise UsageError(f"{written!r}: the threshold is missing; {_HELP}")
    try:
        threshold = parse_threshold(rest, scale)
    except UsageError as error:
        raise UsageError(f"{written!r}: {error}") from None
    # Two limits would need two bounds, and a verdict could not say which one failed.
    if math.isfinite(threshold.low) == math.isfinite(threshold.high):
        raise UsageError(f"{written!r}: a gate has one limit, '>=' or '<='; write two gates for two")
    if statistic in ("min", "max") and confidence is not None:
        raise UsageError(f"{written!r}: nothing can be said with confidence of the {statistic} of a sample")
    if quantity in _PLAIN_BY_NATURE and confidence is not None and quantity == "cost":
        raise UsageError(f"{written!r}: the cost of a run is known, there is no confidence to ask for")
    plain = statistic not in (None, "pass_rate") or quantity in _PLAIN_BY_NATURE
    kind: Kind = "confident" if confidence is not None else "plain" if plain else "sure"
    endless = not (math.isfinite(scale.low) and math.isfinite(scale.high))
    if endless and kind != "plain" and statistic in (None, "mean"):
        raise UsageError(
            f"{written!r}: {quantity} has no {'highest' if math.isinf(scale.high) else 'lowest'} value, so nothing is "
            f"known with confidence of its mean; write '{quantity} p95 {threshold.text}', the same 'with 95% "
            f"confidence', or '{quantity} mean {threshold.text}'"
        )
    return Rule(
        written, quantity, kind, scale, subset, statistic or "mean", threshold, confidence or CONFIDENCE
    )


def _scale(quantity: str, written: str, scale_of: ScaleOf) -> Scale:
    if quantity in OF_RUN:
        return OF_RUN[quantity]
    if quantity in GRADES:
        return Scale(quantity)
    try:
        return scale_of(quantity)
    except UsageError as error:
        raise UsageError(
            f"{written!r}: {error}. Of the run: {', '.join(OF_RUN)}, must_pass. A metric of your own must be "
            "registered by a package, or in a conftest.py that every run loads: the one at the root of the tests"
        ) from None


def _subset(text: str | None, written: str, quantity: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if text is None:
        return ()
    pairs = []
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value or name not in SUBSETS:
            raise UsageError(
                f"{written!r}: {part.strip()!r} chooses no questions; write [lang=ru], [tag=refunds] or "
                f"[file=questions.csv]; known: {', '.join(SUBSETS)}"
            )
        if name == "metric" and quantity not in ("pass_rate", "error_rate"):
            raise UsageError(f"{written!r}: [metric=...] is for pass_rate and error_rate")
        pairs.append((name, tuple(each.strip(" '\"") for each in value.split("|"))))
    return tuple(pairs)
