"""Verdicts by probability: a yes-or-no question asked as one word, and what the model gave each word.

``P(yes) = p(yes) / (p(yes) + p(no))`` over the top tokens at the place where the two words part, in the
language's own words. One token, no JSON that could break, graded, and the same again: temperature 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from typing import Any, ClassVar

from pydantic import Field

from pytest_ragbench.http.messages import one_line
from pytest_ragbench.judge.base import Task, again, in_language
from pytest_ragbench.judge.chat import NO_LOGPROBS_HINT
from pytest_ragbench.judge.completions import RawReply, Token
from pytest_ragbench.judge.rendering import yes_and_no
from pytest_ragbench.judge.tasks import NumberedTask, Reply, VerifyClaims
from pytest_ragbench.judge.tasks_answer import CompareClaims
from pytest_ragbench.judge.tasks_context import JudgeChunks
from pytest_ragbench.languages import language
from pytest_ragbench.model.errors import JudgeError

LEAST = 0.1
"""What yes and no must have together, of 1: below it the model was about to say something else."""


class YesChance(Reply):
    probability: float = Field(ge=0, le=1)
    """P(yes) among yes and no."""
    mass: float = Field(ge=0, le=1.001)
    """What yes and no have together, of everything the model might have said."""


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
    whole = tuple((label, value) for label, value in task.data().items() if value)
    found: list[Task[YesChance]] = []
    for place in range(len(task.items)):
        shown = tuple((label, value) for label, value in texts(task, place) if value)
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


# Reading


def verdict_tokens(lang: str) -> int:
    """To how many tokens a reply in one word is limited, in the language of the prompt."""
    return language(lang).script.verdict_tokens


def read_word(reply: RawReply, lang: str) -> YesChance:
    """What a reply's log probabilities say.

    Raises
    ------
    JudgeError
        There are none (code ``"no_logprobs"``), or they are not about yes and no (``"no_verdict"``).
    """
    positions = reply.get("logprobs")
    if not positions:
        raise JudgeError(
            f"the judge's reply has no log probabilities, so there is no P(yes). {NO_LOGPROBS_HINT}",
            code="no_logprobs",
            raw=reply["content"],
        )
    yes_word, no_word = yes_and_no(lang)
    written = b""  # what was written before this position, with which the tokens go on
    for place, tokens in enumerate(positions):
        yes = no = both = 0.0
        for token in tokens:
            text = written + _bytes(token)
            is_yes, is_no = _begins(text, yes_word), _begins(text, no_word)
            chance = min(exp(min(token["logprob"], 0.0)), 1.0)
            yes += chance if is_yes and not is_no else 0.0
            no += chance if is_no and not is_yes else 0.0
            both += chance if is_yes and is_no else 0.0
        if place + 1 < len(positions) and both > yes + no:
            written += _bytes(tokens[0])
            continue
        if yes + no < LEAST:
            said = ", ".join(repr(one_line(token["token"], 20)) for token in tokens[:5])
            raise JudgeError(
                f"the judge was asked for {yes_word} or {no_word} and gave the two {yes + no:.2g} of its probability; "
                f'its first choices: {said or "none"}. Ask another model, or set verdicts = "json" for the metric',
                code="no_verdict",
                raw=reply["content"],
            )
        return YesChance(probability=yes / (yes + no), mass=min(yes + no, 1.0))
    raise AssertionError("unreachable: the last position is read or refused")


def _bytes(token: Token) -> bytes:
    raw = token["bytes"]
    if raw is not None:
        return bytes(raw)
    return token["token"].replace("\u2581", " ").replace("\u0120", " ").encode("utf-8", "surrogatepass")


def _begins(text: bytes, word: str) -> bool:
    """Whether ``text`` is the word, a beginning of it (or nothing but space before it), or the word and no letter
    after it. In any case; cut within a letter, too.
    """
    bare = text.lstrip(b" \t\r\n").lstrip(b"\xe2\x96\x81").replace(b"\xe3\x80\x80", b"")
    if not bare:
        return True
    for form in (word, word.lower(), word.upper()):
        whole = form.encode()
        if whole.startswith(bare):
            return True
        if bare.startswith(whole):
            rest = bare[len(whole) :].decode("utf-8", "replace")
            return not rest[:1].isalnum()
    return False


__all__ = [
    "ASKED",
    "LEAST",
    "OneWord",
    "YesChance",
    "ask_in_a_word",
    "in_a_word",
    "read_word",
    "verdict_tokens",
]
