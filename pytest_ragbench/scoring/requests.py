"""What is to be scored, and every check that comes before the first call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_ragbench.metrics.checks import (
    check_options,
    check_sample_metric,
    fit_to_sample,
    formula_options,
    with_verdicts,
)
from pytest_ragbench.metrics.registry import Metric, find
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import Question, RagSample
from pytest_ragbench.model.thresholds import Threshold, parse_threshold
from pytest_ragbench.scoring.configured import configured_options
from pytest_ragbench.text import is_blank

if TYPE_CHECKING:
    from pytest_ragbench.embeddings import Embedder
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.scoring.context import Context
    from pytest_ragbench.settings import Settings

ThresholdLike = str | float | Threshold
"""``">=0.8"``, ``"0.7..0.9"``, ``"good"``, ``0.8``, or a parsed threshold."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One metric that is asserted of a sample, its threshold (None: as configured) and the metric's own options."""

    metric: str
    threshold: ThresholdLike | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """One metric of one sample, as somebody asks for it.

    Parameters
    ----------
    metric
        A name (``"ndcg@10"``), or a metric that is not in the registry.
    options
        The metric's own; what they leave open is taken from ``[metrics]`` of the configuration.
    threshold
        The question's own threshold wins over it, and it wins over ``[thresholds]`` of the configuration.
        Votes and second judges are counted by the side of the threshold that they are on.
    asserted
        Whether there must be a threshold; a request without any is a usage error then.
    grades
        Thresholds of parts of the score by the parts' names in its ``details``; ``"threshold"`` is that of all
        parts, None stands for none. The question's own threshold (``METRIC_PART``) wins.
    judge, embedder
        In place of the context's: an object, a spec such as ``"openai:gpt-4o-mini"``, a callable.
    votes
        How often a judge is asked; None: as configured.
    repeat
        Above 0: every task is asked anew, past the replies of earlier repeats.
    fresh
        Ask each task in this run, whatever earlier runs stored.
    watch
        Called with the tools of each computation when it is over, with a score or without: what it used.
    """

    metric: str | Metric
    sample: RagSample
    options: Mapping[str, Any] = field(default_factory=dict)
    threshold: ThresholdLike | None = None
    asserted: bool = False
    grades: Mapping[str, ThresholdLike | None] = field(default_factory=dict)
    judge: object = None
    embedder: object = None
    votes: int | None = None
    repeat: int = 0
    fresh: bool = False
    watch: Callable[[Tools], None] | None = None


# Not frozen, though nobody changes one: each row of a file has its own, and a frozen dataclass takes five times as
# long to make, a tenth of what a row of plain arithmetic costs.
@dataclass(slots=True, kw_only=True, eq=False)
class Prepared:
    """A request that has passed all checks: it can be scored, also on another thread or loop.

    ``given`` is the sample, or the items of a metric over a set. ``registered`` is the metric before its
    options and the sample had a say in what it needs.
    """

    metric: Metric
    registered: Metric
    given: Any
    options: Mapping[str, Any] = field(default_factory=dict)
    limit: Threshold | None = None
    """By which votes and second judges are counted, asserted or not."""
    part_limits: Mapping[str, Threshold] = field(default_factory=dict)
    """The same of parts of the score, by their names."""
    asserted: bool = False
    """Whether the score is held against the limit."""
    judge: Judge | None = None
    embedder: Embedder | None = None
    votes: int = 1
    repeat: int = 0
    fresh: bool = False
    watch: Callable[[Tools], None] | None = None
    context: Context | None = None
    """Of a metric that scores samples itself (``by=`` of the judge's own quality): how it gets their scores."""

    def is_like(self, other: Prepared) -> bool:
        """Whether both come to the same score, asked of the same judge."""
        counted = self.votes > 1 or getattr(self.judge, "members", None) is not None
        return (
            self.metric.name == other.metric.name
            and self.registered.compute is other.registered.compute
            and self.judge is other.judge
            and self.embedder is other.embedder
            and (self.votes, self.repeat, self.fresh) == (other.votes, other.repeat, other.fresh)
            and self.watch is None
            and other.watch is None
            and (not counted or (self.limit, self.part_limits) == (other.limit, other.part_limits))
            and self.options == other.options
            and (self.given is other.given or self.given == other.given)
        )

    def for_sample(self, sample: RagSample, limit: Threshold | None) -> Prepared:
        """The same measurement of another sample.

        Raises
        ------
        UsageError
            The sample lacks what the metric needs.
        """
        metric = fit_to_sample(self.registered, sample, self.options)
        # A variant may need a task that the original did not.
        if self.judge is not None and needs_judge(metric, sample):
            check_judge(metric, self.judge)
        return replace(self, metric=metric, given=sample, limit=limit)


class MetricSetup:
    """What all samples that are scored by one metric have in common; made once for a set or a file.

    Parameters
    ----------
    context
        Where judge and embedder come from, where the request names none.
    request
        Its ``sample`` is not looked at.

    Raises
    ------
    UsageError
        Unknown metric or option, or a metric over a set.
    """

    def __init__(self, context: Context, request: ScoreRequest) -> None:
        self._context = context
        self._request = request
        self._settings = context.settings()
        metric = request.metric
        name = metric if isinstance(metric, str) or not isinstance(metric, Metric) else metric.name
        self.options = configured_options(self._settings, name, request.options)
        self.metric = metric if isinstance(metric, Metric) else find(metric)
        check_sample_metric(self.metric)
        check_options(self.metric, formula_options(self.metric, self.options))
        # Samples differ in what they ask (a mode that follows from a field), so each kind is checked once.
        self._checked: set[tuple[Any, ...]] = set()
        self._judge: Judge | None = None
        self._embedder: Embedder | None = None

    def prepare(self, sample: RagSample) -> Prepared:
        """The request for ``sample``.

        Raises
        ------
        UsageError
            The sample lacks a field, the threshold can't be read or points the wrong way, the judge can't do
            what the metric asks.
        """
        request = self._request
        # In the order in which people can mend it: the sample, the threshold, then judge and embedder.
        metric = fit_to_sample(self.metric, sample, self.options)
        limit = _limit(self._settings, metric, sample, request)
        # Built when the first sample needs them: one that is scored without a call needs no judge.
        if needs_judge(metric, sample):
            self.judge_for(metric)
        if needs_embedder(metric, sample):
            self.embedder_for()
        return Prepared(
            metric=metric,
            registered=self.metric,
            given=sample,
            options=self.options,
            limit=limit,
            part_limits=_part_limits(metric, sample, request.grades),
            asserted=request.asserted,
            judge=self._judge,
            embedder=self._embedder,
            votes=votes_for(self._settings, sample) if request.votes is None else request.votes,
            repeat=request.repeat,
            fresh=request.fresh,
            watch=request.watch,
        )

    def judge_for(self, metric: Metric | None = None) -> Judge:
        """The judge, once it is sure that it can do what the metric asks."""
        metric = metric or with_verdicts(self.metric, self.options)
        # Not in __init__: a set of blank answers is scored without a judge, and must not need a key.
        if self._judge is None:
            self._judge = self._context.judge_for(self._request.judge)
        asked = (metric.tasks, metric.options.get("verdicts"))
        if asked not in self._checked:
            check_judge(metric, self._judge)
            self._checked.add(asked)
        return self._judge

    def embedder_for(self) -> Embedder:
        """The embedder, built when it is first asked for."""
        if self._embedder is None:
            self._embedder = self._context.embedder_for(self._request.embedder)
        return self._embedder


def prepare(context: Context, request: ScoreRequest) -> Prepared:
    """Check all that can be wrong with a request, before any call is paid for.

    Raises
    ------
    UsageError
        Unknown metric or option, a field that the sample does not have, an unreadable threshold or one that
        points the wrong way, a judge that can't do what the metric asks.
    """
    return MetricSetup(context, request).prepare(request.sample)


def votes_for(settings: Settings, sample: RagSample | Question) -> int:
    """How many votes a sample gets: as configured, and at least three where it must pass and a gate says so."""
    # A question that a gate hangs on must not fail by one unlucky verdict.
    if sample.must_pass and any(name.partition("[")[0].strip() == "must_pass" for name in settings.gates):
        return max(3, settings.votes)
    return settings.votes


def check_judge(metric: Metric, judge: Judge) -> None:
    """Refuse a judge that can't do what the metric asks of it.

    Raises
    ------
    UsageError
        Naming the judge and how to get another.
    """
    for task in metric.tasks:
        # "a|b": either of the two will do.
        if judge.tasks is not None and not set(task.split("|")) & set(judge.tasks):
            raise UsageError(
                f"{metric.name}: the judge {judge.name!r} can't do {task.split('|')[0]!r}. Configure an LLM: set "
                "OPENAI_API_KEY and RAGBENCH_JUDGE=openai:MODEL, or a provider in ragbench.toml"
            )
    if metric.options.get("verdicts") == "probability" and not getattr(judge, "probabilities", False):
        raise UsageError(
            f'{metric.name}: verdicts = "probability" needs a judge that tells how probable its words are, and '
            f'{judge.name!r} does not; choose a provider\'s model or "gguf:FILE", or verdicts = "json"'
        )


def shortcut(metric: Metric, sample: RagSample) -> tuple[float, str] | None:
    """Value and reason where no call is needed: a blank answer, or contexts with nothing in them.

    Both are the fault of the system under test, so they get the lowest score.
    """
    if "answer" in metric.needs and is_blank(sample.answer):
        return (0.0 if metric.direction == "higher" else metric.worst), "empty answer"
    # None is not empty: a reply that was never mapped is refused by the check of needs before.
    empty = all(map(is_blank, sample.contexts or ()))
    if empty and metric.without_contexts is not None and "contexts" in metric.needs:
        return metric.without_contexts, "no contexts retrieved"
    return None


def needs_judge(metric: Metric, sample: RagSample) -> bool:
    """Whether this sample's score takes a judge."""
    return bool(metric.tasks) and shortcut(metric, sample) is None


def needs_embedder(metric: Metric, sample: RagSample) -> bool:
    """Whether this sample's score takes an embedder."""
    return metric.embedder and shortcut(metric, sample) is None


def _part_limits(
    metric: Metric, sample: RagSample, grades: Mapping[str, ThresholdLike | None]
) -> dict[str, Threshold]:
    limits = {}
    for name in (each for each in grades if each != "threshold"):
        asked = (sample.thresholds.get(f"{metric.name}_{name}"), grades[name], grades.get("threshold"))
        if (wanted := next((limit for limit in asked if limit is not None), None)) is not None:
            limits[name] = parse_threshold(wanted, replace(metric.scale, metric=name))
    return limits


def _limit(settings: Settings, metric: Metric, sample: RagSample, request: ScoreRequest) -> Threshold | None:
    # The question knows best: it may be the hard one of its file.
    own = sample.thresholds.get(metric.name)
    if own is not None:
        try:
            return parse_threshold(own, metric.scale)
        except UsageError as error:
            where = f"{sample.location}: " if sample.location else ""
            raise UsageError(f"{where}question {sample.label}: {error}") from None
    written = f"assert_{metric.name}(sample, '>=0.8')"
    return threshold_of(settings, metric, request.threshold, written if request.asserted else None)


def threshold_of(
    settings: Settings, metric: Metric, threshold: ThresholdLike | None, written: str | None
) -> Threshold | None:
    """What a score is held against: ``threshold``, else that of ``[thresholds]``, else the metric's own.

    Parameters
    ----------
    written
        How a call gives one, for the message where there must be one; None: there may be none.

    Raises
    ------
    UsageError
        Unreadable, pointing the wrong way, or missing where there must be one.
    """
    if threshold is None:
        threshold = settings.thresholds.get(metric.name, metric.default_threshold)
    if threshold is not None:
        return parse_threshold(threshold, metric.scale)
    if written is None:
        return None
    raise UsageError(
        f"{metric.name} was given no threshold: write {written}, or set it in [thresholds] of ragbench.toml"
    )
