"""One score from several: votes of one judge, or the members of a panel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from math import comb
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.model.errors import JudgeError, Unscored, UsageError
from pytest_ragbench.model.scores import Finding, Score, Usage

if TYPE_CHECKING:
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.model.thresholds import Threshold
    from pytest_ragbench.scoring.requests import Prepared

Compute = Callable[["Judge | None", "Judge | None", int], Awaitable[Score]]
"""Of the judge, of the second examiner where there is one, and of the number of the vote from 0."""
EQUAL_WITHIN = 1e-9
"""Two scores that differ by no more are the same score."""
TWO_ROLES = ("swap_average", "confirm", "average")
"""Modes of metrics in which a second examiner rates, or confirms the first one's rating."""


def self_agreement(passes: int, votes: int) -> float:
    """Share of the pairs of votes that say the same: .6 for 4 of 5, .4 for 3 of 5."""
    if not 0 <= passes <= votes or votes < 2:
        raise UsageError(f"{passes} of {votes} votes is not possible")
    return (comb(passes, 2) + comb(votes - passes, 2)) / comb(votes, 2)


async def put_together(prepared: Prepared, compute: Compute) -> Score:
    """One score from the votes of a judge, or from the members of a panel.

    ``prepared.limit`` tells which votes say the same; without one, those with the same score. A vote or member
    that fails is left out, as long as one is left.

    Parameters
    ----------
    compute
        Computes the metric once, by the judge, the second examiner and the number of the vote given.

    Raises
    ------
    Unscored
        No vote and no member gave a score, or a panel has no consensus.
    """
    judge, votes, limit = prepared.judge, prepared.votes, prepared.limit
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
        return await _voted(vote, votes, limit)

    if not isinstance(judge, Panel):
        return await by(judge)
    mode = {**prepared.metric.options, **prepared.options}.get("mode")
    if judge.kind == "dual" and mode in TWO_ROLES:
        return await _dual(judge, by)
    if judge.kind in ("confirm", "cascade"):
        return await _second_opinion(judge, by, limit)
    outcomes = await asyncio.gather(*(by(member) for member in judge.members), return_exceptions=True)
    return _paneled(judge, outcomes, limit)


async def _voted(vote: Any, votes: int, limit: Threshold | None) -> Score:
    """As many votes as a majority takes; the rest only where those disagree."""
    # Best of three by two calls where they agree: most do.
    first = votes // 2 + 1
    outcomes: list[Score | BaseException] = list(
        await asyncio.gather(*(vote(number) for number in range(first)), return_exceptions=True)
    )
    cast = _scores(outcomes)
    if len(cast) < first or not _agree([score.value for score in cast], limit):
        outcomes += await asyncio.gather(
            *(vote(number) for number in range(first, votes)), return_exceptions=True
        )
        cast = _scores(outcomes)
    values = [score.value for score in cast]
    found = _combined(cast, median(values), median)
    details: dict[str, Any] = {**found.details, "votes": values, "spread": max(values) - min(values)}
    if failed := _failures(outcomes):
        details["votes_failed"] = failed
    reason = found.reason
    # Agreement is about verdicts: without a threshold there is none to agree on.
    if limit is not None and len(values) > 1:
        passes = details["votes_passed"] = sum(limit.met(value) for value in values)
        details["self_agreement"] = self_agreement(passes, len(values))
        if 0 < passes < len(values):
            details["flaky"] = True
            reason = f"{reason} [{passes} of {len(values)} votes pass]".strip()
    return replace(found, votes=len(values), details=details, reason=reason)


async def _dual(panel: Panel, by: Any) -> Score:
    """One judge rates, the other takes the second role; with ``swap_roles`` also the other way round, and the mean.

    Where one of the two ways fails the other one counts, and the score says so.
    """
    first, second = panel.members
    if not panel.swap_roles:
        score: Score = await by(first, second)
        return replace(score, details={**score.details, "roles": [first.name, second.name]})
    # A second examiner may follow whatever it is shown: asked both ways, that shows.
    outcomes = await asyncio.gather(by(first, second), by(second, first), return_exceptions=True)
    names = (f"{first.name}, then {second.name}", f"{second.name}, then {first.name}")
    opinions = {
        n: outcome.value for n, outcome in zip(names, outcomes, strict=True) if isinstance(outcome, Score)
    }
    failed = {
        n: str(outcome).partition("\n")[0]
        for n, outcome in zip(names, outcomes, strict=True)
        if isinstance(outcome, Unscored)
    }
    cast = _scores(outcomes)
    values = list(opinions.values())
    gap = max(values) - min(values)
    score = _combined(cast, fmean(values), fmean)
    score = replace(score, details={**score.details, "gap_of_roles": gap})
    if gap > 0.5 + EQUAL_WITHIN:
        score = replace(
            score, reason=f"the judges disagree when their roles are swapped; {score.reason}".rstrip("; ")
        )
    return _with_opinions(score, opinions, failed, judge=f"{first.name}, {second.name}")


async def _second_opinion(panel: Panel, by: Any, limit: Threshold | None) -> Score:
    first: Score = await by(panel.members[0])
    # Without a threshold nothing is a failure, and nothing is near it.
    if limit is None:
        return first
    edge = limit.low if abs(limit.low) != float("inf") else limit.high
    wanted = (
        not limit.met(first.value)
        if panel.kind == "confirm"
        else abs(first.value - edge) <= panel.margin + EQUAL_WITHIN
    )
    if not wanted:
        return first
    try:
        second: Score = await by(panel.members[1])
    # The second judge is optional: its outage must not cost the score of the first.
    except JudgeError as error:
        said = f"{panel.members[1].name} could not be asked: {str(error).partition(chr(10))[0]}"
        return replace(first, details={**first.details, "panel_failed": {panel.members[1].name: said}})
    # A cascade's second judge decides; a confirming one can only acquit.
    overruled = panel.kind == "cascade" or limit.met(second.value)
    chosen, other = (second, first) if overruled else (first, second)
    return _with_opinions(
        replace(
            chosen,
            usage=first.usage + second.usage,
            duration=first.duration + second.duration,
            replies=first.replies + second.replies,
        ),
        {str(first.judge): first.value, str(second.judge): second.value},
        {},
        judge=f"{chosen.judge}, after {other.judge}" if overruled else f"{first.judge}, {second.judge}",
    )


def _paneled(panel: Panel, outcomes: Sequence[Score | BaseException], limit: Threshold | None) -> Score:
    cast = _scores(outcomes)
    named = [(member.name, outcome) for member, outcome in zip(panel.members, outcomes, strict=True)]
    opinions = {name: outcome.value for name, outcome in named if isinstance(outcome, Score)}
    failed = {
        name: str(outcome).partition("\n")[0] for name, outcome in named if isinstance(outcome, Unscored)
    }
    values = list(opinions.values())
    value: float = median(values)
    join: Any = median
    match panel.aggregate:
        case "mean":
            value, join = fmean(values), fmean
        case "min":
            value, join = min(values), min
        case "max":
            value, join = max(values), max
        case "majority":
            value = _majority(values, limit)
        # Judges that far apart have read different things: a mean would hide it.
        case "consensus":
            if max(values) - min(values) > panel.tolerance + EQUAL_WITHIN:
                said = ", ".join(f"{name} {each:.2f}" for name, each in opinions.items())
                raise JudgeError(
                    f"the panel has no consensus within {panel.tolerance:g}: {said}", code="no_consensus"
                )
            value, join = fmean(values), fmean
    found = _combined(cast, value, join)
    return _with_opinions(found, opinions, failed, judge=", ".join(opinions))


def _majority(values: Sequence[float], limit: Threshold | None) -> float:
    """The median of the side that has more; a tie is a failure."""
    if limit is None:
        return median(values)
    # A tie is a failure: a quality gate errs on the strict side.
    good = [value for value in values if limit.met(value)]
    bad = [value for value in values if not limit.met(value)]
    return median(good if len(good) > len(bad) else bad)


def _with_opinions(
    score: Score, opinions: Mapping[str, float], failed: Mapping[str, str], *, judge: str
) -> Score:
    """The score with what each judge said, in evidence and details."""
    findings = [Finding(name, None, value=value) for name, value in opinions.items()]
    findings += [Finding(name, None, f"left out: {message}") for name, message in failed.items()]
    details: dict[str, Any] = {**score.details, "panel": dict(opinions)}
    if failed:
        details["panel_failed"] = dict(failed)
    return replace(score, judge=judge, details=details, evidence=(*score.evidence, *findings))


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


def _failures(outcomes: Sequence[Score | BaseException]) -> list[str]:
    return [str(outcome).partition("\n")[0] for outcome in outcomes if isinstance(outcome, BaseException)]


def _agree(values: Sequence[float], limit: Threshold | None) -> bool:
    if limit is None:
        return max(values) - min(values) <= EQUAL_WITHIN
    return len({limit.met(value) for value in values}) == 1


def _combined(cast: Sequence[Score], value: float, join: Any) -> Score:
    """Reason and evidence of the score nearest to ``value``, the parts put together as the value is."""
    # Reasons can't be averaged: the one that fits the value best is shown.
    nearest = min(cast, key=lambda score: abs(score.value - value))
    details = dict(nearest.details)
    for name in details:
        parts = [score.details.get(name) for score in cast]
        if all(isinstance(part, float) for part in parts):
            details[name] = join(parts)
    usage = Usage()
    for score in cast:
        usage += score.usage
    return replace(
        nearest,
        value=value,
        details=details,
        usage=usage,
        duration=sum(score.duration for score in cast),
        cached=all(score.cached for score in cast),
        replies=tuple(reply for score in cast for reply in score.replies),
    )
