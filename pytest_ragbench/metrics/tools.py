"""What a formula may use: a judge to ask, an embedder, and a record of what that took."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pytest_ragbench.judge.base import Answered, Judge, R, Task, again, anew, in_language
from pytest_ragbench.judge.tasks import ASKED, NumberedTask, ask_in_a_word
from pytest_ragbench.model.errors import UndefinedScore, Unscored, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, JudgeReply, Score, Usage

if TYPE_CHECKING:
    import numpy as np

    from pytest_ragbench.embeddings import Embedder

Verdicts = Literal["json", "probability"]


@dataclass(frozen=True)
class SampleOutcome:
    """One scoring of one sample: its score, or what took its place, and what that used."""

    found: Score | Unscored
    used: tuple[Tools, ...] = ()
    """Of each computation: one, or one a vote and member of a panel."""

    @property
    def value(self) -> float | None:
        """That of the score; None where there is none."""
        return self.found.value if isinstance(self.found, Score) else None

    @property
    def error(self) -> Unscored | None:
        """What stands in the score's place; None where there is a score."""
        return None if isinstance(self.found, Score) else self.found

    @property
    def failed(self) -> bool:
        """The judge failed. A metric that is undefined for a sample is not the judge's fault."""
        return self.error is not None and not isinstance(self.error, UndefinedScore)

    @property
    def durations(self) -> list[float]:
        """Seconds of each reply that was not stored."""
        return [seconds for tools in self.used for seconds in tools.durations]

    @property
    def stored_durations(self) -> list[float]:
        """Seconds that each stored reply took when it was asked for, where that is known."""
        return [seconds for tools in self.used for seconds in tools.stored_durations]


class SampleScorer(Protocol):
    """Scores samples by another metric. Handed in, since metrics know nothing of votes and panels."""

    async def __call__(
        self, name: str, samples: Sequence[RagSample], options: Mapping[str, Any], repeat: int
    ) -> list[SampleOutcome]:
        """In the order of the samples; ``repeat`` above 0 asks anew.

        Raises
        ------
        UsageError
            Metric, options or a sample are wrong; before any call.
        """
        ...


@dataclass
class Tools:
    """Handed to each formula, one per score, so that calls and tokens go to the score they served."""

    metric: str
    judge: Judge | None = None
    embedder: Embedder | None = None
    second: Judge | None = None
    """Whom a metric's second examiner is; the judge itself where there is none."""
    usage: Usage = field(default_factory=Usage)
    duration: float = 0.0
    asked: int = 0
    stored: int = 0
    judges: dict[str, int] = field(default_factory=dict)
    embedded: bool = False
    lang: str | None = None
    """The sample's language, where it names one: that of the prompts."""
    verdicts: Verdicts | None = None
    """How yes-or-no verdicts are asked for, where both ways exist; None: nothing was said, so in JSON."""
    yes_from: float = 0.5
    """By probability: the P(yes) from which on a verdict is yes."""
    repeat: int = 0
    """Above 0: ask every task anew, past the replies of earlier repeats (a judge held against itself)."""
    fresh: bool = False
    """Ask each task in this run, whatever earlier runs stored."""
    durations: list[float] = field(default_factory=list)
    """Seconds of each reply that was not stored."""
    stored_durations: list[float] = field(default_factory=list)
    """Seconds that each stored reply took when it was asked for, where that is known."""
    replies: list[JudgeReply] = field(default_factory=list)
    scorer: SampleScorer | None = None
    """Of metrics that watch their judge at another metric."""

    async def score_samples(
        self, name: str, samples: Sequence[RagSample], options: Mapping[str, Any], repeat: int = 0
    ) -> list[SampleOutcome]:
        """The samples scored by another metric, as everywhere: with the run's votes, panel and options.

        Raises
        ------
        UsageError
            Metric, options or a sample are wrong; or this metric was not declared to watch its judge.
        """
        if self.scorer is None:
            raise UsageError(f"{self.metric} was given no way to score samples")
        outcomes = await self.scorer(name, samples, options, repeat)
        for outcome in outcomes:
            for tools in outcome.used:
                self.include(tools)
        return outcomes

    @property
    def graded(self) -> bool:
        """Whether verdicts count by their probability."""
        return self.verdicts == "probability"

    @property
    def graded_by_default(self) -> bool:
        """Whether verdicts count by their probability where nothing else was said and the judge grades each anyway.

        For metrics in which the mean was measured to separate answers better than the share of those over 0.5.
        """
        return self.graded or (self.verdicts is None and getattr(self.judge, "graded", False))

    def can(self, task: str) -> bool:
        """Whether the judge does this task."""
        return self.judge is not None and (self.judge.tasks is None or task in self.judge.tasks)

    async def ask(self, task: Task[R], *, second: bool = False) -> R:
        """The judge's typed reply; of the second examiner, where there is one and he is meant.

        Raises
        ------
        JudgeError
            No reply that can be read.
        """
        judge = (self.second or self.judge) if second else self.judge
        if judge is None:
            raise UsageError(f"{self.metric} was given no judge")
        task = in_language(task, self.lang)
        # A task that is asked in a word already is a part of one, and is not taken apart again.
        by_word = self.verdicts == "probability" and not task.one_word and task.name in ASKED
        by_word = by_word and not getattr(judge, "graded", False)
        if by_word and isinstance(task, NumberedTask):
            reply: R = await ask_in_a_word(task, self.ask, self.yes_from)
            return reply
        if self.fresh:
            task = anew(task)
        if self.repeat:
            # Far above the votes that metrics number themselves: no repeat meets a vote's stored reply.
            task = again(task, task.vote + 1000 * self.repeat)
        answered = await judge.ask(task)
        # Apart: how long a stored reply once took says little of this run's judge.
        if not answered.cached:
            self.durations.append(answered.duration)
        elif answered.took is not None:
            self.stored_durations.append(answered.took)
        self.usage += answered.usage
        self.duration += answered.duration
        self.asked += 1
        self.stored += answered.cached
        # Tasks of one score may have got different numbers of votes: the most is said.
        self.judges[answered.judge] = max(self.judges.get(answered.judge, 0), answered.votes)
        self.replies += _replies(task.name, answered)
        return answered.reply

    def include(self, other: Tools) -> None:
        """Add what a part that was computed with tools of its own has used."""
        self.usage += other.usage
        self.duration += other.duration
        self.asked += other.asked
        self.stored += other.stored
        self.durations += other.durations
        self.stored_durations += other.stored_durations
        self.replies += other.replies
        self.embedded = self.embedded or other.embedded
        for name, votes in other.judges.items():
            self.judges[name] = max(self.judges.get(name, 0), votes)

    async def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of shape (len(texts), d)."""
        if self.embedder is None:
            raise UsageError(f"{self.metric} was given no embedder")
        self.embedded = True
        return await self.embedder.embed(texts)

    def score(
        self,
        sample: RagSample,
        value: float,
        *,
        reason: str = "",
        error_message: str = "",
        evidence: Sequence[Finding] = (),
        evidence_title: str = "claims",
        votes: int | None = None,
        **details: Any,
    ) -> Score:
        """A score with judge, usage and replies filled in; ``details`` are the parts of the value by name."""
        return Score(
            metric=self.metric,
            value=value,
            reason=reason,
            error_message=error_message,
            evidence=tuple(evidence),
            evidence_title=evidence_title,
            judge=", ".join(self.judges) or None,
            embedder=self.embedder.name if self.embedded and self.embedder else None,
            votes=max(self.judges.values(), default=1) if votes is None else votes,
            usage=self.usage,
            duration=self.duration,
            # Arithmetic asked nothing, so nothing of it came from the store.
            cached=self.asked > 0 and self.stored == self.asked,
            sample_id=sample.id,
            details=details,
            replies=tuple(self.replies),
        )


def _replies(task: str, answered: Answered[Any]) -> list[JudgeReply]:
    """What came, word for word; what a conversation took stands with its last reply."""
    replies = [
        JudgeReply(text, task, answered.judge, cached=answered.cached, prompt=prompt)
        for text, prompt in zip_longest(answered.said, answered.prompts[: len(answered.said)])
    ]
    if replies:
        replies[-1] = replace(replies[-1], usage=answered.usage, duration=answered.duration)
    return replies
