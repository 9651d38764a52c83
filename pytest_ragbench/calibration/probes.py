"""Probes of a judge: what must not change its verdict. Length, and the order of things.

Each label is judged as it is, and again with text that says the same: padded with neutral words, said
twice, stripped of courtesies; or with chunks, or the claims of one answer, in reverse order. A verdict that
turns is the judge's doing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pytest_ragbench.calibration.agreement import Estimate, share
from pytest_ragbench.calibration.asking import (
    ask_again,
    asking_options,
    claims_metric,
    label_context,
    sample_of,
)
from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.languages import DEFAULT, language, rules
from pytest_ragbench.metrics.tools import Verdicts
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.scoring import ScoreRequest, prepare, score_all
from pytest_ragbench.settings import Settings
from pytest_ragbench.statistics.bounds import TWO_SIDED, mean_bounds
from pytest_ragbench.statistics.paired import mcnemar
from pytest_ragbench.text import detect_language, is_blank

KINDS: Mapping[str, str] = {
    "padded": "padded with neutral words",
    "twice": "said twice",
    "shortened": "without courtesies",
    "chunks_reversed": "chunks in reverse order",
    "claims_together": "all claims of an answer at once",
    "claims_reversed": "all at once, in reverse order",
}
"""What a probe changes, in words. The last two are compared with each other: the order alone."""


@dataclass(frozen=True)
class NeutralWords:
    """``probes.toml``: what changes nothing of what is said."""

    topic: ClassVar[str] = "probes"

    before_claim: str = ""
    before_answer: str = ""
    after_answer: str = ""
    courtesies_before: tuple[str, ...] = ()
    """Patterns of courtesies at the beginning of an answer. Case does not count."""
    courtesies_after: tuple[str, ...] = ()
    """The same at its end."""

    @cached_property
    def courtesies(self) -> re.Pattern[str]:
        """All that can go."""
        ends = [rf"(?:{end})+\s*$" for end in self.courtesies_after]
        return re.compile("|".join([rf"^\s*(?:{'|'.join(self.courtesies_before)})+", *ends]), re.IGNORECASE)


@dataclass(frozen=True)
class Probe:
    """What became of the verdicts. ``same``: the share that stayed, with its 95 % interval (Clopper-Pearson).

    ``to_yes``, ``to_no``: how many turned which way; ``p``: of the sign test that both are as likely.
    ``chance``: what two independent verdicts with these shares of yes would have in common. ``shift``: mean
    change of the score.
    """

    kind: str
    n: int
    same: Estimate
    to_yes: int
    to_no: int
    p: float | None
    chance: float
    shift: Estimate
    turned: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "n": self.n, "same": self.same.to_dict(), "to_yes": self.to_yes, "to_no": self.to_no, "p": self.p,
            "chance": self.chance, "shift": self.shift.to_dict(), "turned": list(self.turned),
        }  # fmt: skip

    def __str__(self) -> str:
        ways = f"{self.to_yes} turned to yes, {self.to_no} to no"
        if self.p is not None and self.p < 0.05:
            ways += f" (no chance: p {self.p:.3f})"
        shift = f"; score {self.shift.value:+.3f}" if self.shift.value is not None else ""
        same = f"the same verdict {self.same} of {self.n}, by chance {self.chance:.3f}"
        return f"{KINDS[self.kind]}: {same}; {ways}{shift}"


async def probes(
    judged: Sequence[Label], judge: Judge, verdicts: Verdicts = "json", settings: Settings | None = None
) -> dict[str, Probe]:
    """All probes that the labels allow, by kind.

    Parameters
    ----------
    judged
        Labels with this judge's verdict on the texts as they are (``ask_again`` of ``calibration.asking``).
    verdicts
        How they were asked for, and are again.
    settings
        Of the run; None: the defaults.
    """
    found = {}
    for kind, changed in variants(judged).items():
        places = [place for place, label in enumerate(changed) if label is not None]
        some = [label for label in changed if label is not None]
        asked = await ask_again(some, judge, verdicts=verdicts, settings=settings)
        if probe := compared(kind, [judged[place] for place in places], asked):
            found[kind] = probe
    # Both in one call, so that being asked together can't explain what the order does.
    together = await _together(judged, judge, verdicts, settings, backwards=False)
    reverse = await _together(judged, judge, verdicts, settings, backwards=True)
    shared = sorted(together.keys() & reverse.keys())
    if probe := compared("claims_reversed", [together[n] for n in shared], [reverse[n] for n in shared]):
        found["claims_reversed"] = probe
        alone = compared("claims_together", [judged[n] for n in shared], [together[n] for n in shared])
        found |= {"claims_together": alone} if alone else {}
    return found


def variants(labels: Sequence[Label]) -> dict[str, list[Label | None]]:
    """By kind, each label with its text changed but not what it says; None where the kind changes nothing."""
    return {
        "padded": [_with_text(label, _padded(label)) for label in labels],
        "twice": [_with_text(label, f"{_text(label).strip()} {_text(label).strip()}") for label in labels],
        "shortened": [
            _with_text(label, rules(NeutralWords, label.lang).courtesies.sub("", _text(label)))
            for label in labels
        ],
        "chunks_reversed": [_reversed(label) for label in labels],
    }


def compared(kind: str, before: Sequence[Label], after: Sequence[Label]) -> Probe | None:
    """The figures of one probe; None where no label has a verdict on both sides."""
    pairs = [
        (one, two)
        for one, two in zip(before, after, strict=True)
        if one.verdict is not None and two.verdict is not None
    ]
    if not pairs:
        return None
    first, second = (np.array([bool(label.verdict) for label in side]) for side in zip(*pairs, strict=True))
    n, same = len(pairs), int((first == second).sum())
    to_yes, to_no = int((~first & second).sum()), int((first & ~second).sum())
    yes_before, yes_after = float(first.mean()), float(second.mean())
    # JSON verdicts have no value to move.
    moves = [two.value - one.value for one, two in pairs if one.value is not None and two.value is not None]
    return Probe(
        kind,
        n,
        share(same, n),
        to_yes,
        to_no,
        mcnemar(to_yes, to_no, two_sided=True) if to_yes + to_no else None,
        yes_before * yes_after + (1 - yes_before) * (1 - yes_after),
        _mean(moves),
        tuple(two.name for one, two in pairs if one.verdict != two.verdict),
    )


def _mean(moves: Sequence[float]) -> Estimate:
    """With an interval where the scores lie in 0..1, and so their changes in -1..1."""
    if not moves:
        return Estimate(None)
    mean = float(np.mean(moves))
    if max(map(abs, moves)) > 1:
        return Estimate(mean)
    bounds = mean_bounds(moves, confidence=TWO_SIDED, low=-1.0)
    return Estimate(mean, bounds.low, bounds.high)


# What is changed


def _text(label: Label) -> str:
    return label.claim if label.claim is not None else label.answer or ""


def _with_text(label: Label, text: str) -> Label | None:
    if is_blank(text) or text.strip() == _text(label).strip():
        return None
    return label.model_copy(update={"claim" if label.claim is not None else "answer": text})


def _padded(label: Label) -> str:
    text = _text(label)
    if is_blank(text):
        return text
    words = language(label.lang or detect_language(text), DEFAULT).rules(NeutralWords)
    if not words.before_claim:
        words = language(DEFAULT).rules(NeutralWords)
    if label.claim is not None:
        return f"{words.before_claim}{text}"
    return f"{words.before_answer}{text.rstrip()}{words.after_answer}"


def _reversed(label: Label) -> Label | None:
    chunks = label.contexts or ()
    if len(chunks) < 2 or chunks == chunks[::-1]:
        return None
    return label.model_copy(update={"contexts": chunks[::-1]})


async def _together(
    labels: Sequence[Label], judge: Judge, verdicts: Verdicts, settings: Settings | None, *, backwards: bool
) -> dict[int, Label]:
    """By place: claims of the same answer, judged in one go; only where there are several, and in JSON."""
    if verdicts == "probability":  # each is asked by itself
        return {}
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, label in enumerate(labels):
        if label.claim is not None:
            # What the judge would see beside the claims has to be the same.
            key = (label.metric, label.question_id, label.question, label.contexts, label.lang)
            groups.setdefault(key, []).append(place)
    orders = [places[::-1] if backwards else places for places in groups.values() if len(places) > 1]
    context = label_context(judge, settings)
    prepared = []
    for order in orders:
        first = labels[order[0]]
        metric = claims_metric(first.metric, [labels[place].claim or "" for place in order])
        request = ScoreRequest(metric=metric, sample=sample_of(first), options=asking_options(verdicts))
        prepared.append(prepare(context, request))
    found: dict[int, Label] = {}
    for order, outcome in zip(orders, await score_all(prepared), strict=True):
        if isinstance(outcome, JudgeError):
            continue
        if isinstance(outcome, Exception):
            raise outcome
        for place, finding in zip(order, outcome.evidence, strict=False):
            found[place] = labels[place].model_copy(update={"verdict": finding.ok, "reason": finding.reason})
    return found
