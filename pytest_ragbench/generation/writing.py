"""Questions that an LLM writes from documents, each checked before it is accepted."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pytest_ragbench.generation.documents import Passage
from pytest_ragbench.judge.tasks import CheckCase, Kind, Rephrase, WriteCases, WrittenCase
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.model.samples import Question
from pytest_ragbench.questions import ids
from pytest_ragbench.text import is_blank

if TYPE_CHECKING:
    from pytest_ragbench.embeddings import Embedder
    from pytest_ragbench.judge.base import Judge

KINDS: tuple[Kind, ...] = ("single", "multi", "paraphrased", "unanswerable")
DUPLICATE_COSINE = 0.95
"""Two questions at least this similar count as one."""


@dataclass
class Generated:
    """The questions written, those rejected with the reason, and the calls that got no usable reply."""

    questions: list[Question] = field(default_factory=list)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    failed: list[JudgeError] = field(default_factory=list)


@dataclass(frozen=True)
class _Draft:
    kind: Kind
    passages: tuple[Passage, ...]
    case: WrittenCase


async def generate(
    passages: Sequence[Passage],
    judge: Judge,
    *,
    count: int,
    kinds: Sequence[Kind] = KINDS,
    embedder: Embedder | None = None,
    seed: int = 0,
    progress: Callable[[Generated], None] = lambda generated: None,
) -> Generated:
    """Write up to ``count`` questions about the passages, one kind after the other; fewer where passages run out.

    The judge checks every question: it must be answerable from its passages (or not, as its kind says), and its
    answer must be right. Near duplicates are left out: a cosine of at least :data:`DUPLICATE_COSINE`, or without
    an embedder the same letters.

    Parameters
    ----------
    judge
        An LLM; the local judge can't write.
    seed
        Chooses the passages. The same seed asks the same questions, which are then answered from the store.

    Raises
    ------
    UsageError
        The judge can't write.
    """
    if judge.tasks is not None and "write_cases" not in judge.tasks:
        raise UsageError(f"generate needs an LLM, and {_not_an_llm(judge)}")
    generated = Generated()
    vectors: list[Any] = []
    plan = _plan(passages, kinds, seed)
    while len(generated.questions) < count:
        missing = count - len(generated.questions)
        # Half of what is missing at a time: each call writes several questions, and some are rejected.
        # The range first: zip then takes no passage from the plan that it doesn't use.
        turn = [wanted for _, wanted in zip(range(max(1, missing // 2)), plan, strict=False)]
        if not turn:
            break
        for drafts in await asyncio.gather(
            *(_written(judge, kind, about, generated) for kind, about in turn)
        ):
            for draft in drafts:
                # One after the other: each is compared with those accepted before it.
                if len(generated.questions) < count:
                    await _take(draft, judge, embedder, vectors, generated)
        progress(generated)
    return generated


def _plan(
    passages: Sequence[Passage], kinds: Sequence[Kind], seed: int
) -> Iterator[tuple[Kind, tuple[Passage, ...]]]:
    """Kinds in turn, each over all passages in its own random order; two-hop questions take neighbours."""
    singles = [(passage,) for passage in passages]
    pairs = list(pairwise(passages))
    lists: dict[Kind, list[tuple[Passage, ...]]] = {}
    for kind in kinds:
        lists[kind] = [*(pairs if kind == "multi" else singles)]
        random.Random(f"{seed}:{kind}").shuffle(lists[kind])  # noqa: S311 - not for secrets
    for round_ in range(max(map(len, lists.values()), default=0)):
        for kind in kinds:
            if round_ < len(lists[kind]):
                yield kind, lists[kind][round_]


async def _written(
    judge: Judge, kind: Kind, about: tuple[Passage, ...], generated: Generated
) -> list[_Draft]:
    try:
        answered = await judge.ask(WriteCases(tuple(passage.text for passage in about), kind))
    except JudgeError as error:
        generated.failed.append(error)
        return []
    return [_Draft(kind, about, case) for case in answered.reply.cases]


async def _take(
    draft: _Draft, judge: Judge, embedder: Embedder | None, vectors: list[Any], generated: Generated
) -> None:
    text = draft.case.question.strip()
    # Letters only, so that punctuation and case don't make another question.
    known = {_folded(question.question) for question in generated.questions}
    if not text or _folded(text) in known:
        generated.rejected.append((text, "asked already" if text else "blank"))
        return
    try:
        why = await _fault(draft, judge)
    except JudgeError as error:
        generated.failed.append(error)
        return
    vector = None
    if not why and embedder is not None:
        [vector] = await embedder.embed([text])
        if any(_cosine(vector, other) >= DUPLICATE_COSINE for other in vectors):
            why = "nearly the same as another question"
    if why:
        generated.rejected.append((text, why))
        return
    if vector is not None:
        vectors.append(vector)
    generated.questions.append(_question(draft))


async def _fault(draft: _Draft, judge: Judge) -> str:
    """Why the question can't be accepted; blank where it can."""
    case, answer = draft.case, draft.case.answer.strip()
    wants_none = draft.kind == "unanswerable"
    if not wants_none and not answer:
        return "it has no answer"
    # Checked before the judge is asked: the writer itself says which passages it used.
    if draft.kind == "multi" and len(set(case.chunks)) < 2:
        return "one passage is enough"
    texts = tuple(passage.text for passage in draft.passages)
    verdict = (await judge.ask(CheckCase(case.question, "" if wants_none else answer, texts))).reply
    if verdict.answerable == wants_none:
        return f"it is {'' if wants_none else 'not '}answered by its passages: {verdict.reason}"
    return "" if verdict.right else f"the answer is not right: {verdict.reason}"


def _question(draft: _Draft) -> Question:
    case = draft.case
    # A writer that names no passage may have used any of them.
    numbers = list(dict.fromkeys(case.chunks)) or list(range(1, len(draft.passages) + 1))
    used = [draft.passages[number - 1] for number in numbers]
    unanswerable = draft.kind == "unanswerable"
    documents = list(dict.fromkeys(passage.document for passage in draft.passages))
    return Question(
        id=ids.distinct_slug(case.question.strip()),
        question=case.question.strip(),
        reference=None if unanswerable else case.answer.strip(),
        reference_contexts=None if unanswerable else tuple(passage.text for passage in used),
        relevant_ids=None if unanswerable else dict.fromkeys((passage.id for passage in used), 1.0),
        should_abstain=unanswerable,
        tags=(draft.kind,),
        metadata={"documents": documents, "reviewed": False},
    )


async def paraphrases(questions: Sequence[Question], judge: Judge, *, count: int = 2) -> list[Question]:
    """Other ways to ask each question, with its reference and relevant ids; ``variant_of`` in the metadata.

    Raises
    ------
    JudgeError
        A question got no usable reply.
    UsageError
        The judge isn't an LLM.
    """
    if judge.tasks is not None and "rephrase" not in judge.tasks:
        raise UsageError(f"paraphrases need an LLM, and {_not_an_llm(judge)}")
    answers = await asyncio.gather(*(judge.ask(Rephrase(each.question, count)) for each in questions))
    found = []
    for question, answered in zip(questions, answers, strict=True):
        texts = dict.fromkeys(text.strip() for text in answered.reply.questions if not is_blank(text))
        # Models like to repeat the question as its first variant.
        others = [text for text in texts if _folded(text) != _folded(question.question)][:count]
        for number, text in enumerate(others, start=1):
            found.append(_variant(question, text, number))
    return found


def _not_an_llm(judge: Judge) -> str:
    return (
        f"the judge {judge.name!r} is not one: set OPENAI_API_KEY and RAGBENCH_JUDGE=openai:MODEL, or a provider in "
        "ragbench.toml"
    )


def _variant(question: Question, text: str, number: int) -> Question:
    told = {**question.metadata, "variant_of": question.id, "reviewed": False}
    name = f"{question.id}~{number}"
    return replace(
        question, id=name, question=text, answer=None, contexts=None, context_ids=None, metadata=told
    )


def _folded(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _cosine(one: Any, other: Any) -> float:
    import numpy as np

    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))
