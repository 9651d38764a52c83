"""Asks ahead of a test what its plan is certain to ask; runs on the engine's loop.

A guess goes the same way as the test will, with the same checks, votes and panels, so that the test finds the
replies it needs and no others are asked for. What goes wrong is reported by the test itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextvars import copy_context
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_ragbench.engine.lookahead import Receipt, for_own_test, looking_ahead, receipts
from pytest_ragbench.model.errors import BudgetError, EndpointError, RagbenchError
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.plan.model import UNKNOWN, Ask
from pytest_ragbench.scoring.pipeline import score
from pytest_ragbench.scoring.requests import Prepared, ScoreRequest, prepare, votes_for
from pytest_ragbench.scoring.sets import SetRequest, prepare_set, score_set

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.model.scores import Score
    from pytest_ragbench.rag import Retriever
    from pytest_ragbench.scoring import Context

MAX_EACH = 100
"""For so many samples of a loop is asked ahead: one that misses ends it."""

Guess = Callable[[], Coroutine[Any, Any, None]]


class Guesses:
    """The guesses under way in this process. Nobody hears of their errors: the test meets them itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopped = False

    def launch(self, guesses: Iterable[Guess]) -> None:
        """Start them on the engine's loop; from any thread."""
        started = list(guesses)
        if not started or self._stopped:
            return
        # Fetches below it count as guesses, and give way to those that a test waits for.
        context = copy_context()
        context.run(looking_ahead.set, True)
        self._engine.loop.call_soon_threadsafe(self._start, started, context=context)

    def stop(self) -> None:
        """Start no more, and end those under way; from any thread."""
        self._stopped = True
        if self._tasks:
            self._engine.loop.call_soon_threadsafe(self._cancel)

    def _start(self, guesses: list[Guess]) -> None:
        if self._stopped:
            return
        for guess in guesses:
            task = asyncio.get_running_loop().create_task(guess())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # mark it as seen

    def _cancel(self) -> None:
        for task in list(self._tasks):
            task.cancel()


@dataclass(frozen=True)
class FinishedScore:
    """What a guess came to, and the fetches that it took."""

    prepared: Prepared
    score: Score
    receipts: Sequence[Receipt]


@dataclass
class Ahead:
    """What is asked ahead for one test, and what has come of it so far.

    Filled on the engine's loop. The test takes a sample or score that is finished on its own thread, once;
    what is not finished then, or failed, it asks for itself, and joins the calls under way.
    """

    own: bool = False
    """The test will run in this process."""
    questions: Sequence[Question] = ()
    sample: RagSample | None = None
    """Of a test of one question, once it is there."""
    tasks: list[asyncio.Task[RagSample]] = field(default_factory=list)
    """For each question."""
    scores: list[FinishedScore] = field(default_factory=list)
    receipts: list[Receipt] | None = None
    """Of the sample, until the test takes it."""

    @property
    def example(self) -> Question | RagSample:
        """One of them: options of a metric are held against it."""
        return self.sample or self.questions[0]

    def asked(self, retriever: Retriever) -> list[Guess]:
        """Guesses that ask the questions, in their order."""
        return [partial(self._ask, retriever, question) for question in self.questions]

    async def _ask(self, retriever: Retriever, question: Question) -> None:
        kept: list[Receipt] = []
        receipts.set(kept)
        for_own_test.set(self.own)
        task = asyncio.ensure_future(retriever.ask(question))
        self.tasks.append(task)
        sample = await task
        if len(self.questions) == 1:
            self.sample, self.receipts = sample, kept

    async def one(self) -> RagSample:
        """The test's sample."""
        return self.sample if self.sample is not None else await asyncio.shield(self.tasks[0])

    async def all(self) -> RagSamples:
        """The test's samples. Raises what is wrong with the whole set."""
        found: list[RagSample | EndpointError | BudgetError] = []
        for outcome in await asyncio.gather(*map(asyncio.shield, self.tasks), return_exceptions=True):
            if not isinstance(outcome, (RagSample, EndpointError, BudgetError)):
                raise outcome
            found.append(outcome)
        return RagSamples(self.questions, found)

    # On the test's thread

    def take_sample(self, engine: Engine) -> RagSample | None:
        """The sample, where it is there and what it took can be put down to this test."""
        sample, kept, self.receipts = self.sample, self.receipts, None
        if sample is None or kept is None:
            return None
        coming = [receipt for finished in self.scores for receipt in finished.receipts]
        if not engine.take_over(kept, coming):
            return None
        # What the test may change in place is not what its metrics are guessed from.
        return sample.with_(metadata=deepcopy(sample.metadata)) if sample.metadata else sample

    def take_score(self, prepared: Prepared, engine: Engine) -> Score | None:
        """The score of this very request, on the same terms."""
        for finished in self.scores:
            if finished.prepared.is_like(prepared):
                # Once only: a second, equal call of the test is counted as one of its own.
                self.scores.remove(finished)
                return finished.score if engine.take_over(finished.receipts) else None
        return None


class Absent:
    """Stands for a judge or embedder that is not asked ahead; a guess ends where it would be."""

    name = "absent"
    tasks: Collection[str] | None = None

    async def ask(self, task: Any) -> Any:
        raise RagbenchError("not asked ahead of the test")

    async def embed(self, texts: Sequence[str]) -> Any:
        raise RagbenchError("not asked ahead of the test")


async def score_ahead(context: Context, asks: Sequence[Ask], ahead: Ahead) -> None:
    """Score what a test is certain to score, as far as nothing is wrong with it."""
    for_own_test.set(ahead.own)
    prepared: list[Prepared] = []
    over: list[Ask] = []
    for ask in asks:
        if ask.of == "set":
            over.append(ask)
            continue
        try:
            # A question without an answer has nothing to score; the running test says so.
            samples = (await ahead.all()).answered if ask.of == "each" else [await ahead.one()]
            for sample in samples[:MAX_EACH]:
                prepared += _prepared(context, ask, sample)
        except RagbenchError:
            if not ask.may_fail:
                break  # the test ends here, too
    scores = (_score(each, ahead) for each in prepared)
    await asyncio.gather(*scores, *(_score_set(context, ask, ahead) for ask in over), return_exceptions=True)


async def _score(prepared: Prepared, ahead: Ahead) -> None:
    kept: list[Receipt] = []
    receipts.set(kept)
    found = await score(prepared)
    if found.embedder is None:  # texts are embedded in batches with those of other tests
        ahead.scores.append(FinishedScore(prepared, found, kept))


def _prepared(context: Context, ask: Ask, sample: RagSample) -> list[Prepared]:
    found: list[Prepared] = []
    for name, limit in ask.metrics.items():
        if UNKNOWN not in (limit, *ask.grades.values()):
            request = ScoreRequest(
                metric=name, sample=sample, options=ask.options, threshold=limit, asserted=ask.gated,
                grades=ask.grades,
            )  # fmt: skip
            found.append(prepare(context, request))
            continue
        # Which votes agree depends on the threshold: no more of them are certain than a majority.
        for vote in range(votes_for(context.settings(), sample) // 2 + 1):
            request = ScoreRequest(metric=name, sample=sample, options=ask.options, votes=1, repeat=vote)
            found.append(prepare(context, request))
    return found


async def _score_set(context: Context, ask: Ask, ahead: Ahead) -> None:
    for name, limit in ask.metrics.items():
        if limit is UNKNOWN and context.settings().votes > 1:
            continue
        request = SetRequest(
            metric=name,
            items=await ahead.all(),
            options=ask.options,
            threshold=None if limit is UNKNOWN else limit,
            asserted=ask.gated and limit is not UNKNOWN,
        )
        await score_set(prepare_set(context, request))


def calls_at_once(asks: Sequence[Ask], questions: int, votes: int, judges: int) -> int:
    """How many calls a test may have under way at a time: of the system under test, then of judges."""
    samples = {"sample": 1, "each": questions, "set": questions, "other": 0}
    judged = sum(len(ask.metrics) * samples[ask.of] for ask in asks)
    return max(1, questions, judged * (votes // 2 + 1) * judges)


def shared_tools(tools: Mapping[str, Any]) -> dict[str, Any]:
    """Those of which replies are kept, so that what is asked ahead need not be asked again."""
    return {kind: tool for kind, tool in tools.items() if getattr(tool, "shared", False) is True}
