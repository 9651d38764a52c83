"""Ratings and verdicts on whole answers: NVIDIA's three ratings, yes/no criteria, rubrics, the E2E score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

from pytest_ragbench.judge.base import Task, again
from pytest_ragbench.judge.reading.fields import IntegerScale
from pytest_ragbench.judge.tasks import (
    CheckAspect,
    ConfirmAccuracy,
    GradeEndToEnd,
    RateAccuracy,
    RateContextRelevance,
    RateGroundedness,
    RateRubric,
    RatingReply,
)
from pytest_ragbench.metrics.checks import check_options
from pytest_ragbench.metrics.formulas import verdicts
from pytest_ragbench.metrics.registry import all_metrics, metric, named
from pytest_ragbench.metrics.steps import contexts_of, head
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.model.thresholds import Direction
from pytest_ragbench.text import is_blank

Scale = Sequence[int]
"""All grades of a rating, evenly spaced: ``(0, 1, 2)``, ``(0, 2, 4)``, ``range(1, 6)``."""

DISAGREEMENT = "the two ratings are more than half the scale apart"


def _scale(grades: Any) -> IntegerScale:
    try:
        values = [int(grade) for grade in grades]
        # One step for all grades, so that normalised values are evenly spaced as well.
        steps = {after - before for before, after in pairwise(values)}
        if len(steps) != 1 or list(grades) != values:
            raise ValueError
        return IntegerScale(values[0], values[-1], steps.pop())
    except (TypeError, ValueError):
        raise UsageError(
            f"scale must list evenly spaced ascending grades, as (0, 1, 2); got {grades!r}"
        ) from None


def _adapt_rating(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    _scale(options.get("scale", (0, 1, 2)))
    return {"tasks": ("rate_accuracy", "confirm_accuracy")} if options.get("mode") == "confirm" else {}


# --- one rating or two -------------------------------------------------------------------------


def _rated(sample: RagSample, tools: Tools, scale: IntegerScale, reply: RatingReply, **details: Any) -> Score:
    value = scale.normalised(reply.rating)
    finding = Finding(f"rating {reply.rating} of {scale}", None, reply.reason, value=value)
    return tools.score(
        sample, value, reason=reply.reason, evidence=[finding], evidence_title="rating",
        rating=reply.rating, scale=str(scale), **details,
    )  # fmt: skip


async def _averaged(
    sample: RagSample,
    tools: Tools,
    scale: IntegerScale,
    tasks: tuple[Task[RatingReply], Task[RatingReply]],
    require_both: bool,
) -> Score:
    """The mean of two ratings. Where one call failed, the other rating is used and the score says so."""
    both = await asyncio.gather(
        *(tools.ask(task, second=place > 0) for place, task in enumerate(tasks)), return_exceptions=True
    )
    # Both calls are awaited even where one fails: the other is paid for and may do.
    failures = [reply for reply in both if isinstance(reply, BaseException)]
    replies = [reply for reply in both if not isinstance(reply, BaseException)]
    for failure in failures:
        if require_both or not replies or not isinstance(failure, JudgeError):
            raise failure
    if failures:
        score = _rated(sample, tools, scale, replies[0], failed_rating=str(failures[0]))
        return _with_note(score, f"one of two ratings failed, the other is used: {head(str(failures[0]))}")
    result = verdicts.two_ratings(*(scale.normalised(reply.rating) for reply in replies))
    findings = [
        Finding(f"rating {reply.rating} of {scale}", None, reply.reason, value=scale.normalised(reply.rating))
        for reply in replies
    ]
    # The reason shown is that of the lower rating, which has to be explained.
    worse = min(replies, key=lambda reply: reply.rating)
    score = tools.score(
        sample, result.value, reason=worse.reason, evidence=findings, evidence_title="ratings", votes=2,
        ratings=[reply.rating for reply in replies], gap=result.gap, disagree=result.disagree,
        scale=str(scale),
    )  # fmt: skip
    return _with_note(score, DISAGREEMENT) if result.disagree else score


def _with_note(score: Score, note: str) -> Score:
    reason = f"{note}; {score.reason}" if score.reason else note
    return replace(score, reason=reason)


# --- answer accuracy ---------------------------------------------------------------------------


@metric(
    "answer_accuracy",
    tier="end_to_end",
    needs=("question", "answer", "reference"),
    tasks=("rate_accuracy",),
    adapt=_adapt_rating,
)
async def answer_accuracy(
    sample: RagSample,
    tools: Tools,
    *,
    scale: Scale = (0, 1, 2),
    mode: Literal["single", "swap_average", "confirm"] = "single",
    require_both: bool = False,
) -> Score:
    """How well the answer agrees with the reference: a judge's rating, normalised to 0..1.

    ``(rating - lowest) / (highest - lowest)``; a rating that is not on the scale is an error. One judge
    call, two in the other modes. Sources: a rating on 0, 1, 2 is the simplest form; NVIDIA's answer accuracy (in
    RAGAS) rates 0, 2, 4, twice: ``scale=(0, 2, 4), mode="swap_average"``.

    Parameters
    ----------
    scale
        All grades.
    mode
        ``"single"``: one rating. ``"swap_average"``: a second rating with answer and reference swapped, and
        the mean of the two; ``details`` hold both and their gap. ``"confirm"``: a second judge sees the first
        rating and its reason, and its rating replaces the first one; where that call fails the first rating
        stays, and the score says so.
    require_both
        In ``swap_average`` and ``confirm``, any failed call is an error.
    """
    steps = _scale(scale)
    answer, reference = sample.answer or "", sample.reference or ""

    def texts(first: str, second: str) -> tuple[tuple[str, str], ...]:
        return (("question", sample.question), ("reference", second), ("answer", first))

    task = RateAccuracy(texts(answer, reference), scale=steps)
    if mode == "swap_average":
        swapped = RateAccuracy(texts(reference, answer), scale=steps)
        return await _averaged(sample, tools, steps, (task, swapped), require_both)
    first = await tools.ask(task)
    if mode == "single":
        return _rated(sample, tools, steps, first)
    try:
        second = await tools.ask(
            ConfirmAccuracy(task.texts, scale=steps, first=first.rating, reason=first.reason), second=True
        )
    except JudgeError as error:
        if require_both:
            raise
        score = _rated(sample, tools, steps, first, confirmed=False, failed_rating=str(error))
        return _with_note(score, f"confirmation failed, the primary rating is used: {head(str(error))}")
    # Half the scale is one step of 0, 1, 2: two judges one step apart don't disagree yet.
    gap = abs(steps.normalised(first.rating) - steps.normalised(second.rating))
    score = _rated(
        sample, tools, steps, second,
        confirmed=True, ratings=[first.rating, second.rating], gap=gap, disagree=gap > 0.5 + 1e-9,
    )  # fmt: skip
    return _with_note(score, DISAGREEMENT) if gap > 0.5 + 1e-9 else score


# --- context relevance and groundedness --------------------------------------------------------


@metric(
    "context_relevance",
    tier="retrieval",
    needs=("question", "contexts"),
    tasks=("rate_context_relevance",),
    adapt=_adapt_rating,
)
async def context_relevance(
    sample: RagSample,
    tools: Tools,
    *,
    scale: Scale = (0, 1, 2),
    mode: Literal["single", "average"] = "single",
    per: Literal["all", "chunk"] = "all",
    require_both: bool = False,
) -> Score:
    """How much of what the question needs the chunks hold: a judge's rating, normalised to 0..1.

    One judge call; two, averaged, for ``mode="average"`` (of use where the judge's temperature is above 0).
    Source: NVIDIA's context relevance (in RAGAS), without its shortcuts: a chunk that is part of the
    question is rated like any other.

    Parameters
    ----------
    per
        ``"all"``: the chunks taken together. ``"chunk"``: the mean over single chunks, a call for each.
    """
    steps = _scale(scale)
    chunks = contexts_of(sample)

    def task(some: tuple[str, ...]) -> RateContextRelevance:
        return RateContextRelevance((("question", sample.question), ("chunks", some)), scale=steps)

    if per == "all":
        return await _once_or_twice(sample, tools, steps, task(chunks), mode, require_both)
    # Blank chunks rate 0 without a call, but count in the mean.
    places = [place for place, chunk in enumerate(chunks) if not is_blank(chunk)]
    parts = await asyncio.gather(
        *(
            _once_or_twice(sample, tools, steps, task((chunks[place],)), mode, require_both)
            for place in places
        )
    )
    found = dict(zip(places, parts, strict=True))
    findings = [
        Finding(head(chunk), None, found[place].reason, place + 1, found[place].value)
        if place in found
        else Finding("(blank)", None, "a blank chunk", place + 1, 0.0)
        for place, chunk in enumerate(chunks)
    ]
    values = [finding.value or 0.0 for finding in findings]
    least = min(findings, key=lambda finding: finding.value or 0.0)
    return tools.score(
        sample, sum(values) / len(values), reason=least.reason, evidence=findings, evidence_title="ratings",
        values=values, scale=str(steps),
    )  # fmt: skip


async def _once_or_twice(
    sample: RagSample,
    tools: Tools,
    scale: IntegerScale,
    task: Task[RatingReply],
    mode: str,
    require_both: bool,
) -> Score:
    if mode == "single":
        return _rated(sample, tools, scale, await tools.ask(task))
    # Anew, or the store would answer the second call with the first reply.
    return await _averaged(sample, tools, scale, (task, again(task, 1)), require_both)


@metric(
    "response_groundedness",
    tier="generation",
    needs=("answer", "contexts"),
    tasks=("rate_groundedness",),
    adapt=_adapt_rating,
)
async def response_groundedness(
    sample: RagSample,
    tools: Tools,
    *,
    scale: Scale = (0, 1, 2),
    mode: Literal["single", "average"] = "single",
    require_both: bool = False,
) -> Score:
    """How far the chunks support the answer: a judge's rating, normalised to 0..1.

    One judge call; two, averaged, for ``mode="average"``. Coarser than faithfulness. Source: NVIDIA's
    response groundedness (in RAGAS), without its shortcut that an answer found inside a chunk is grounded.
    """
    steps = _scale(scale)
    texts = (("chunks", contexts_of(sample)), ("question", sample.question), ("answer", sample.answer or ""))
    return await _once_or_twice(
        sample, tools, steps, RateGroundedness(texts, scale=steps), mode, require_both
    )


# --- E2E score ---------------------------------------------------------------------------------


@metric(
    "e2e_score",
    tier="end_to_end",
    needs=("question", "answer", "reference"),
    tasks=("grade_end_to_end",),
    bands={"excellent": 0.8, "good": 0.6},
)
async def e2e_score(sample: RagSample, tools: Tools) -> Score:
    """How useful the answer is compared with the reference, as one grade in 0..1.

    One judge call. A grade of this package: there is no published formula.
    """
    reply = await tools.ask(GradeEndToEnd(sample.question, sample.answer or "", sample.reference or ""))
    return tools.score(sample, reply.grade, reason=reply.reason)


# --- the user's own criteria -------------------------------------------------------------------

_INCLUDABLE = ("contexts", "reference")


def _shown(sample: RagSample, include: Sequence[str]) -> tuple[tuple[str, str | tuple[str, ...]], ...]:
    """What the judge sees of a sample: question and answer, and what the criterion includes."""
    texts: list[tuple[str, str | tuple[str, ...]]] = [("question", sample.question)]
    if "contexts" in include:
        texts.append(("chunks", contexts_of(sample)))
    if "reference" in include:
        texts.append(("reference", sample.reference or ""))
    return (*texts, ("answer", sample.answer or ""))


def _included(name: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    given = options.get("include", ())
    include = (given,) if isinstance(given, str) else tuple(given)
    for field in include:
        if field not in _INCLUDABLE:
            raise UsageError(f"{name}: include must be {' or '.join(map(repr, _INCLUDABLE))}; got {field!r}")
    return include


def _adapt_aspect(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    definition, votes = options.get("definition"), options.get("votes", 1)
    if not isinstance(definition, str) or not definition.strip():
        raise UsageError(f"aspect: definition must say what is wanted of the answer, got {definition!r}")
    # To Python True is an int, and would pass for one vote.
    if isinstance(votes, bool) or not isinstance(votes, int) or votes < 1 or votes % 2 == 0:
        raise UsageError(f"aspect: votes must be an odd number, so that none can tie; got {votes!r}")
    direction = options.get("direction", "higher")
    return {
        "needs": ("question", "answer", *_included("aspect", options)),
        "direction": direction,
        "default_threshold": "==1" if direction == "higher" else "==0",
        "without_contexts": None,
    }


@metric(
    "aspect",
    tier="generation",
    needs=("question", "answer"),
    tasks=("check_aspect",),
    # A criterion is met or it isn't: there is nothing between.
    bands={"good": 1.0},
    adapt=_adapt_aspect,
)
async def aspect(
    sample: RagSample,
    tools: Tools,
    *,
    definition: str,
    votes: int = 1,
    include: Sequence[str] = (),
    direction: Direction = "higher",
) -> Score:
    """Whether the answer meets your own criterion: 1, else 0, by the majority of ``votes`` judge calls.

    Parameters
    ----------
    definition
        The criterion, as a question that can be answered by yes or no.
    votes
        An odd number of calls, none of them answered by another's reply; ``details`` hold the split. They
        only differ where the judge's temperature is above 0.
    include
        What the judge sees besides question and answer: ``"contexts"``, ``"reference"``.
    direction
        ``"lower"`` for a criterion that should not be met ("insults the user").
    """
    task = CheckAspect(_shown(sample, _included("aspect", {"include": include})), definition)
    replies = await asyncio.gather(*(tools.ask(again(task, vote)) for vote in range(votes)))
    vote = verdicts.majority([reply.verdict for reply in replies])
    findings = [
        Finding("yes" if reply.verdict else "no", reply.verdict == (direction == "higher"), reply.reason)
        for reply in replies
    ]
    # The reason of a vote on the winning side, or it would contradict the value.
    deciding = next((reply.reason for reply in replies if reply.verdict == bool(vote.value)), "")
    split = f" ({vote.yes}:{vote.no})" if votes > 1 else ""
    return tools.score(
        sample, vote.value, reason=f"{deciding}{split}", evidence=findings, evidence_title="votes",
        votes=votes, yes=vote.yes, no=vote.no, direction=direction,
    )  # fmt: skip


def _rubric(given: Any) -> tuple[tuple[int, str], ...]:
    if not isinstance(given, Mapping) or len(given) < 2:
        raise UsageError("rubric: give two or more grades with their description: {1: '...', 2: '...'}")
    found = []
    for grade, text in given.items():
        # Keys of a JSON object are strings.
        number = int(grade) if isinstance(grade, str) and grade.strip().lstrip("-").isdecimal() else grade
        if isinstance(number, bool) or not isinstance(number, int):
            raise UsageError(f"rubric: a grade must be a whole number, got {grade!r}")
        if not isinstance(text, str) or is_blank(text):
            raise UsageError(f"rubric: grade {grade} has no description")
        found.append((number, text))
    if len({number for number, _ in found}) < len(found):
        raise UsageError("rubric: a grade is described twice")
    return tuple(sorted(found))


def _adapt_rubric(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    _rubric(options.get("rubric"))
    return {"needs": ("question", "answer", *_included("rubric", options)), "without_contexts": None}


@metric(
    "rubric", tier="generation", needs=("question", "answer"), tasks=("rate_rubric",), adapt=_adapt_rubric
)
async def rubric(
    sample: RagSample, tools: Tools, *, rubric: Mapping[int, str], include: Sequence[str] = ()
) -> Score:
    """Which grade of your own rubric fits the answer best, normalised to 0..1.

    ``(grade - lowest) / (highest - lowest)``. One judge call. A grade that the rubric does not have is an
    error. ``details["grade"]`` is the grade.

    Parameters
    ----------
    rubric
        ``{grade: description}``, whole numbers, two or more.
    include
        As for :func:`aspect`.
    """
    levels = _rubric(rubric)
    reply = await tools.ask(RateRubric(_shown(sample, _included("rubric", {"include": include})), levels))
    low, high = levels[0][0], levels[-1][0]
    finding = Finding(f"grade {reply.rating}: {dict(levels)[reply.rating]}", None, reply.reason)
    return tools.score(
        sample, (reply.rating - low) / (high - low), reason=reply.reason, evidence=[finding],
        evidence_title="grade", grade=reply.rating, scale=f"{low}..{high}",
    )  # fmt: skip


def define_aspect(
    name: str,
    definition: str,
    *,
    votes: int = 1,
    include: Sequence[str] = (),
    direction: Direction = "higher",
) -> None:
    """Give a yes/no criterion a name: a metric like any other, for helpers, configuration and reports.

    ``define_aspect("polite", "Is the answer polite?")`` in a conftest.py, then
    ``assert_metric("polite", sample, "==1")``. Options as for :func:`aspect`.

    Raises
    ------
    UsageError
        An option with an impossible value, or a name that is taken.
    """
    options = {"definition": definition, "votes": votes, "include": tuple(include), "direction": direction}
    _define(name, "aspect", options)


def define_rubric(name: str, rubric: Mapping[int, str], *, include: Sequence[str] = ()) -> None:
    """Give a rubric a name, as :func:`define_aspect`."""
    options = {"rubric": dict(rubric), "include": tuple(include)}
    _define(name, "rubric", options)


def _define(name: str, base: str, options: Mapping[str, Any]) -> None:
    known = all_metrics()[base]  # all are loaded, so that none of ours is replaced by accident
    check_options(known, options)
    changes = known.adapt(RagSample(""), options) if known.adapt else {}
    named(name, base, changes, **options)


__all__ = [
    "answer_accuracy",
    "aspect",
    "context_relevance",
    "define_aspect",
    "define_rubric",
    "e2e_score",
    "response_groundedness",
    "rubric",
]
