"""Verdicts by probability: a yes-or-no question to be answered in one word, whose probability counts.

One token, no JSON that could break, graded, and the same again: temperature 0. How the reply is read:
:mod:`pytest_ragbench.judge.reading.probability`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field

from pytest_ragbench.judge.base import Task, again, in_language
from pytest_ragbench.judge.tasks.answers import CompareClaims
from pytest_ragbench.judge.tasks.claims import VerifyClaims
from pytest_ragbench.judge.tasks.contexts import JudgeChunks
from pytest_ragbench.judge.tasks.numbered import NumberedTask, Reply


class YesChance(Reply):
    probability: float = Field(ge=0, le=1)
    """P(yes) among yes and no."""
    mass: float = Field(ge=0, le=1.001)
    """P(yes) + P(no): how much of the probability the two words have together."""


@dataclass(frozen=True)
class OneWord(Task[YesChance]):
    """One item of a numbered task, asked as one word: yes or no.

    ``texts``: label to text or texts, in the order in which they are shown. ``whole``: what the markers
    are derived from: all items of one answer share them, so that a service can reuse what it has read.
    """

    prompt: str
    texts: tuple[tuple[str, str | tuple[str, ...]], ...]
    whole: tuple[tuple[str, str | tuple[str, ...]], ...]
    written_in: str

    one_word: ClassVar[bool] = True
    reply_type = YesChance

    @property
    def name(self) -> str:
        return self.prompt

    @property
    def lang(self) -> str:
        return self.written_in

    def data(self) -> Mapping[str, Any]:
        return dict(self.texts)


def in_a_word(task: NumberedTask[Any]) -> list[Task[YesChance]]:
    """The items of a task, each as a question of its own; see :data:`ASKED` for the tasks that can be."""
    name, texts = ASKED[task.name]
    # Blank texts are left out of the prompt, and so must not change its markers.
    whole = tuple((label, value) for label, value in task.data().items() if value)
    found: list[Task[YesChance]] = []
    for place in range(len(task.items)):
        shown = tuple((label, value) for label, value in texts(task, place) if value)
        # Votes stay independent calls when they are asked in a word.
        asked = again(OneWord(name, shown, whole, task.lang), task.vote)
        found.append(in_language(asked, task.language))
    return found


def _of_claim(task: VerifyClaims, place: int) -> Sequence[tuple[str, Any]]:
    return (("chunks", task.contexts), ("question", task.question), ("claim", task.claims[place]))


def _of_chunk(task: JudgeChunks, place: int) -> Sequence[tuple[str, Any]]:
    return (("question", task.question), ("answer", task.target), ("chunk", task.contexts[place]))


def _of_pair(task: CompareClaims, place: int) -> Sequence[tuple[str, Any]]:
    others = task.reference_claims if place < len(task.answer_claims) else task.answer_claims
    return (("statements", others), ("question", task.question), ("claim", task.items[place]))


ASKED: Mapping[str, tuple[str, Callable[[Any, int], Sequence[tuple[str, Any]]]]] = {
    "verify_claims": ("word_verify_claims", _of_claim),
    "judge_chunks": ("word_judge_chunks", _of_chunk),
    "compare_claims": ("word_compare_claims", _of_pair),
}
"""Tasks that can be asked in a word: name of the prompt, and the texts of an item."""


async def ask_in_a_word(
    task: NumberedTask[Any], ask: Callable[[Task[YesChance]], Awaitable[YesChance]], yes_from: float = 0.5
) -> Any:
    """The task's typed reply, from one call for each item; each verdict carries its probability.

    Raises
    ------
    JudgeError
        The first call that failed.
    """
    chances: list[YesChance] = await asyncio.gather(*(ask(each) for each in in_a_word(task)))
    reply = task.read(
        {"verdicts": {str(n): {"verdict": c.probability >= yes_from} for n, c in enumerate(chances, 1)}}
    )
    for verdict, chance in zip(reply.in_order(), chances, strict=True):
        verdict.weigh(chance.probability)
    return reply
