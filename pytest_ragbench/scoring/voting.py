"""One score from several: votes of one judge, or the members of a panel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.model.errors import JudgeError, Unscored
from pytest_ragbench.model.scores import Finding, Score, Usage
from pytest_ragbench.model.thresholds import Threshold
from pytest_ragbench.statistics.votes import self_agreement

if TYPE_CHECKING:
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.scoring.requests import Prepared

Compute = Callable[["Judge | None", "Judge | None", int], Awaitable[Score]]
"""Of the judge, of the second examiner where there is one, and of the number of the vote from 0."""
Ask = Callable[..., Awaitable[Score]]
"""Of a panel's member, and of the second examiner where there is one: the member's score, its votes put together."""
EQUAL_WITHIN = 1e-9
"""Two scores that differ by no more are the same score."""
TWO_ROLES = ("swap_average", "confirm", "average")
"""Modes of metrics in which a second examiner rates, or confirms the first one's rating."""


@dataclass(frozen=True)
class Limits:
    """What a score is held against: a threshold of its value, and of its parts by their names in ``details``."""

    whole: Threshold | None = None
    parts: Mapping[str, Threshold] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.whole is not None or bool(self.parts)

    def named(self) -> list[tuple[str, Threshold]]:
        """All thresholds; that of the whole has the name ``""``."""
        return [*([("", self.whole)] if self.whole is not None else []), *self.parts.items()]

    def sides(self, score: Score) -> tuple[bool, ...]:
        """For each threshold whether the score meets it."""
        return tuple(limit.met(_part(score, name)) for name, limit in self.named())

    def met(self, score: Score) -> bool:
        """Whether the score meets all."""
        return all(self.sides(score))

    def open(self, score: Score) -> bool:
        """Whether claims that the judge can't tell decide: without them the score would be on another side."""
        low, high = score.details.get("lowest"), score.details.get("highest")
        if self.whole is None or not isinstance(low, float) or not isinstance(high, float):
            return False
        return self.whole.met(low) is not self.whole.met(high)

    def distance(self, score: Score) -> float:
        """From the nearest end of a threshold."""
        return min(
            abs(_part(score, name) - end) for name, limit in self.named() for end in (limit.low, limit.high)
        )


def _part(score: Score, name: str) -> float:
    return float(score.details.get(name, score.value))


async def put_together(prepared: Prepared, compute: Compute) -> Score:
    """One score from the votes of a judge, or from the members of a panel.

    The request's thresholds tell which votes say the same; without one, those with the same score. A vote or
    member that fails is left out, as long as one is left.

    Parameters
    ----------
    compute
        Computes the metric once, by the judge, the second examiner and the number of the vote given.

    Raises
    ------
    Unscored
        No vote and no member gave a score, or a panel has no consensus.
    """
    judge, votes = prepared.judge, prepared.votes
    limits = Limits(prepared.limit, prepared.part_limits)
    # No judge: the sample needs none, or the formula says so itself.
    if judge is None:
        return await compute(None, None, 0)

    async def by(member: Judge, second: Judge | None = None) -> Score:
        async def vote(number: int) -> Score:
            score = await compute(member, second, number)
            # Only a vote among several has a number in the report.
            if votes == 1:
                return score
            return replace(score, replies=tuple(replace(reply, vote=number + 1) for reply in score.replies))

        if votes == 1 or member.name == "local":  # which says the same every time
            return await vote(0)
        return await _voted(vote, votes, limits)

    if not isinstance(judge, Panel):
        return await by(judge)
    mode = {**prepared.metric.options, **prepared.options}.get("mode")
    if judge.kind == "dual" and mode in TWO_ROLES:
        return await _dual(judge, by, limits)
    if judge.kind in ("confirm", "cascade"):
        return await _second_opinion(judge, by, limits)
    outcomes = await asyncio.gather(*(by(member) for member in judge.members), return_exceptions=True)
    return _paneled(judge, outcomes, limits)


# --- votes -------------------------------------------------------------------------------------


async def _voted(vote: Callable[[int], Awaitable[Score]], votes: int, limits: Limits) -> Score:
    """As many votes as a majority takes; the rest only where those disagree."""
    # Best of three by two calls where they agree: most do.
    first = votes // 2 + 1
    outcomes: list[Score | BaseException] = list(
        await asyncio.gather(*(vote(number) for number in range(first)), return_exceptions=True)
    )
    cast = _scores(outcomes)
    if len(cast) < first or not _agree(cast, limits):
        outcomes += await asyncio.gather(
            *(vote(number) for number in range(first, votes)), return_exceptions=True
        )
        cast = _scores(outcomes)
    values = [score.value for score in cast]
    found = _combined(cast, _middle, limits)
    details: dict[str, Any] = {**found.details, "votes": values, "spread": max(values) - min(values)}
    if failed := [_first_line(outcome) for outcome in outcomes if isinstance(outcome, BaseException)]:
        details["votes_failed"] = failed
    reason = found.reason
    # Agreement is about verdicts: without a threshold there is none to agree on.
    if limits and len(cast) > 1:
        passes = details["votes_passed"] = sum(map(limits.met, cast))
        details["self_agreement"] = self_agreement(passes, len(cast))
        if 0 < passes < len(cast):
            details["flaky"] = True
            reason = f"{reason} [{passes} of {len(cast)} votes pass]".strip()
    return replace(found, votes=len(cast), details=details, reason=reason)


def _agree(cast: Sequence[Score], limits: Limits) -> bool:
    if not limits:
        values = [score.value for score in cast]
        return max(values) - min(values) <= EQUAL_WITHIN
    return len({limits.sides(score) for score in cast}) == 1


# --- panels ------------------------------------------------------------------------------------


async def _dual(panel: Panel, by: Ask, limits: Limits) -> Score:
    """One judge rates, the other takes the second role; with ``swap_roles`` also the other way round, and the mean.

    Where one of the two ways fails the other one counts, and the score says so.
    """
    first, second = panel.members
    if not panel.swap_roles:
        score = await by(first, second)
        return replace(score, details={**score.details, "roles": [first.name, second.name]})
    # A second examiner may follow whatever it is shown: asked both ways, that shows.
    outcomes = await asyncio.gather(by(first, second), by(second, first), return_exceptions=True)
    cast = _scores(outcomes)
    names = (f"{first.name}, then {second.name}", f"{second.name}, then {first.name}")
    opinions = _Opinions.of(names, outcomes)
    values = [score.value for score in cast]
    gap = max(values) - min(values)
    score = _combined(cast, fmean, limits)
    score = replace(score, details={**score.details, "gap_of_roles": gap})
    if gap > 0.5 + EQUAL_WITHIN:
        score = replace(
            score, reason=f"the judges disagree when their roles are swapped; {score.reason}".rstrip("; ")
        )
    return opinions.told(score, limits, "their mean counts", judge=f"{first.name}, {second.name}")


async def _second_opinion(panel: Panel, by: Ask, limits: Limits) -> Score:
    first = await by(panel.members[0])
    # Without a threshold nothing is a failure, and nothing is near it.
    if not limits:
        return first
    confirms = panel.kind == "confirm"
    near = limits.distance(first) <= panel.margin + EQUAL_WITHIN
    wanted = not limits.met(first) if confirms else near or limits.open(first)
    if not wanted:
        return first
    try:
        second = await by(panel.members[1])
    # The second judge is optional: its outage must not cost the score of the first.
    except JudgeError as error:
        said = f"{panel.members[1].name} could not be asked: {_first_line(error)}"
        return replace(first, details={**first.details, "panel_failed": {panel.members[1].name: said}})
    # A cascade's second judge decides; a confirming one can only acquit.
    overruled = not confirms or limits.met(second)
    join = _acquitted if confirms else _last
    found = _combined([first, second], join, limits, shown=second if overruled else first)
    opinions = _Opinions({str(first.judge): first, str(second.judge): second}, {})
    judge = f"{second.judge}, after {first.judge}" if overruled else f"{first.judge}, {second.judge}"
    decides = "the second one decides" if overruled else "the failure is confirmed"
    return opinions.told(found, limits, decides, judge=judge)


def _paneled(panel: Panel, outcomes: Sequence[Score | BaseException], limits: Limits) -> Score:
    cast = _scores(outcomes)
    opinions = _Opinions.of([member.name for member in panel.members], outcomes)
    if panel.aggregate == "consensus":
        _check_consensus(opinions, panel.tolerance)
    decides = _DECIDES.get(panel.aggregate, "the majority decides")
    if panel.aggregate not in _DECIDES and 2 * sum(map(limits.met, cast)) == len(cast):
        decides = "the stricter one decides" if len(cast) == 2 else "the stricter half decides"
    found = _combined(cast, _JOINS[panel.aggregate], limits)
    return opinions.told(found, limits, decides, judge=", ".join(opinions.scores))


def _check_consensus(opinions: _Opinions, tolerance: float) -> None:
    """Raises a judge error where the judges are too far apart, or one alone is left: nobody agrees with it."""
    values = [score.value for score in opinions.scores.values()]
    said = ", ".join(f"{name} {score.value:.2f}" for name, score in opinions.scores.items())
    if len(values) < 2:
        failed = "; ".join(f"{name}: {why}" for name, why in opinions.failed.items())
        raise JudgeError(
            f"the panel has no consensus, since only one judge gave a score: {said}; {failed}",
            code="no_consensus",
        )
    # Judges that far apart have read different things: a mean would hide it.
    if max(values) - min(values) > tolerance + EQUAL_WITHIN:
        raise JudgeError(f"the panel has no consensus within {tolerance:g}: {said}", code="no_consensus")


@dataclass(frozen=True)
class _Opinions:
    """What each judge of a panel said: its score, or why there is none."""

    scores: Mapping[str, Score]
    failed: Mapping[str, str]

    @classmethod
    def of(cls, names: Sequence[str], outcomes: Sequence[Score | BaseException]) -> _Opinions:
        pairs = list(zip(names, outcomes, strict=True))
        return cls(
            {name: outcome for name, outcome in pairs if isinstance(outcome, Score)},
            {name: _first_line(outcome) for name, outcome in pairs if isinstance(outcome, Unscored)},
        )

    def told(self, score: Score, limits: Limits, decides: str, *, judge: str) -> Score:
        """The score with what each judge said, in evidence and details; a disagreement first in the reason."""
        split, reason, said = self._split(limits), score.reason, score.error_message
        findings = []
        for name, one in self.scores.items():
            side = ("passes" if limits.met(one) else "misses") if split else ""
            findings.append(Finding(name, None, side, value=one.value))
        findings += [Finding(name, None, f"left out: {message}") for name, message in self.failed.items()]
        details = {**score.details, "panel": {name: one.value for name, one in self.scores.items()}}
        if self.failed:
            details["panel_failed"] = dict(self.failed)
        if split:
            details["judges_passed"] = sum(map(limits.met, self.scores.values()))
            details["disagreement"] = f"the judges disagree about {split}; {decides}"
            # A judge's own words are shown in the place of the reason, and would hide that others disagree.
            reason = f"{details['disagreement']}; {reason}".rstrip("; ")
            said = said and f"{details['disagreement']}; {said}"
        return replace(
            score,
            judge=judge,
            details=details,
            reason=reason,
            error_message=said,
            evidence=(*score.evidence, *findings),
        )

    def _split(self, limits: Limits) -> str:
        """Which thresholds some judges find met and others missed, with what each one said."""
        told = []
        for name, limit in limits.named():
            values = {who: _part(one, name) for who, one in self.scores.items()}
            if len({limit.met(value) for value in values.values()}) > 1:
                said = ", ".join(f"{who} {limit.shown(value)}" for who, value in values.items())
                told.append(f"{name} {limit.text} ({said})".strip())
        return " and ".join(told)


# --- values of several scores as one -----------------------------------------------------------


@dataclass(frozen=True)
class _Values:
    """What several scores say of one thing (the whole, or a part), in their order.

    ``met`` tells who finds the threshold met, ``limit`` is that threshold; both are None where there is none. Where
    only parts have thresholds, the whole has verdicts and no limit.
    """

    values: Sequence[float]
    met: Sequence[bool] | None = None
    limit: Threshold | None = None

    def __iter__(self) -> Iterator[float]:
        return iter(self.values)

    def side(self, good: bool) -> list[float]:
        return [value for value, met in zip(self.values, self.met or (), strict=True) if met is good]

    def majority(self) -> list[float]:
        """Those who agree and are more; of a tie, those who find a miss: a gate errs on the strict side."""
        good, bad = self.side(True), self.side(False)
        return good if len(good) > len(bad) else bad


Join = Callable[[_Values], float]


def _last(said: _Values) -> float:
    return said.values[-1]


def _acquitted(said: _Values) -> float:
    """The first of two values, or the second where that one alone is good."""
    first, second = said
    return second if said.met and said.met[1] and not said.met[0] else first


def _middle(said: _Values) -> float:
    """The median, on the side of the threshold that more of the values are on; a tie is a miss.

    The plain median of an even number is a mean, by which one flatterer lifts an honest value over the threshold.
    Of a tie it is the missing value nearest to the others: of two judges, what the stricter one says.
    """
    value: float = median(said)
    if said.met is None:
        return value
    side = said.majority()
    # Beside a range as threshold lie misses on both sides, and their median may meet it.
    strays = said.limit is not None and said.limit.met(value) != (side == said.side(True))
    if strays or 2 * len(side) == len(said.values):
        return min(side, key=lambda each: abs(each - value))
    return value


def _majority(said: _Values) -> float:
    """The median of the side that has more; a tie is a miss."""
    if said.met is None:
        return median(said)
    side = said.majority()
    return _middle(_Values(side, [side == said.side(True)] * len(side), said.limit))


_JOINS: Mapping[str, Join] = {
    "mean": fmean, "median": _middle, "min": min, "max": max, "majority": _majority, "consensus": fmean,
}  # fmt: skip
_DECIDES = {
    "mean": "their mean counts",
    "min": "the lowest score counts",
    "max": "the highest score counts",
    "consensus": "their mean counts",
}
"""What makes a score of judges that disagree, where it is not a majority."""


def _combined(cast: Sequence[Score], join: Join, limits: Limits, shown: Score | None = None) -> Score:
    """The scores as one: value and parts by ``join``.

    Reasons can't be averaged: reason and evidence are those of ``shown``, or else of the score nearest to the
    value among those with the same verdict.
    """
    met = [limits.met(score) for score in cast] if limits else None
    values = [score.value for score in cast]
    value = join(_Values(values, met, limits.whole))
    # Where the threshold chose among the scores, the parts are those of the chosen one.
    chosen = value != join(_Values(values))
    parts = {}
    for name in cast[0].details:
        said = [part for score in cast if isinstance(part := score.details.get(name), float)]
        limit = limits.parts.get(name)
        if len(said) == len(cast) and (limit is not None or not chosen):
            parts[name] = join(_Values(said, [*map(limit.met, said)] if limit else None, limit))
    found = replace(cast[0], value=value, details={**cast[0].details, **parts})
    if shown is None:
        alike = [score for score in cast if limits.sides(score) == limits.sides(found)]
        shown = min(alike or cast, key=lambda score: abs(score.value - value))
    usage = Usage()
    for score in cast:
        usage += score.usage
    return replace(
        shown,
        value=value,
        details={**shown.details, **parts},
        usage=usage,
        duration=sum(score.duration for score in cast),
        cached=all(score.cached for score in cast),
        replies=tuple(reply for score in cast for reply in score.replies),
    )


def _scores(outcomes: Sequence[Score | BaseException]) -> list[Score]:
    """The scores among the outcomes. Raises the first error if there is none, and any that is not a failed call."""
    # A usage error or a bug must not be outvoted by the others.
    for outcome in outcomes:
        if isinstance(outcome, BaseException) and not isinstance(outcome, Unscored):
            raise outcome
    cast = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    if not cast:
        raise next(outcome for outcome in outcomes if isinstance(outcome, BaseException))
    return cast


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
