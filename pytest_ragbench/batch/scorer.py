"""Several metrics of one sample, each with its score or with the reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pytest_ragbench.metrics.checks import check_options
from pytest_ragbench.metrics.needs import check_needs
from pytest_ragbench.metrics.registry import Metric, all_metrics, find, is_ours
from pytest_ragbench.model.errors import RagbenchError, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import MetricSetup, ScoreRequest, ThresholdLike, context_of, score

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.settings import Settings

Outcome = Score | RagbenchError


class Scorer:
    """Scores samples by the named metrics, with the configured judge and embedder.

    Parameters
    ----------
    names
        Metrics, as ``["faithfulness", "ndcg@10"]``; each with a value for a single sample.
    engine, settings
        Make the calls, and say whom to ask.
    judge, embedder
        In place of the configured ones: whatever a fixture of that name may return.
    thresholds
        By metric: what votes and second judges are counted by, before those of the configuration.

    Raises
    ------
    UsageError
        Unknown metrics, metrics over a set, metrics with an option that must be given; no judge, or one
        that can't do what is asked.
    """

    def __init__(
        self,
        names: Sequence[str],
        engine: Engine,
        settings: Settings,
        *,
        judge: object = None,
        embedder: object = None,
        thresholds: Mapping[str, ThresholdLike] | None = None,
    ) -> None:
        if not names:
            raise UsageError("no metric is named; `ragbench metrics` lists them")
        context = context_of(engine, settings, judge=judge, embedder=embedder)
        any_sample = RagSample("")
        self._setups = {
            name: MetricSetup(
                context, ScoreRequest(metric=name, sample=any_sample, threshold=(thresholds or {}).get(name))
            )
            # Named twice, a metric is scored once.
            for name in dict.fromkeys(names)
        }
        self.metrics = {name: setup.metric for name, setup in self._setups.items()}
        # Built now, so that a judge that can't serve is refused before the file is read.
        judges = [setup.judge_for() for setup in self._setups.values() if setup.metric.tasks]
        self.judge = judges[0] if judges else None
        embedders = [setup.embedder_for() for setup in self._setups.values() if setup.metric.embedder]
        self.embedder = embedders[0] if embedders else None
        self.waits = bool(embedders) or any(
            metric.tasks or not is_ours(metric.compute) for metric in self.metrics.values()
        )
        """Whether a score may have to be waited for; the rest is arithmetic, and gains nothing by tasks."""

    def check_file(self, samples: Sequence[RagSample], where: str) -> None:
        """Refuse a file whose samples, as far as seen, all lack what a metric needs.

        Raises
        ------
        UsageError
            Naming metric and field; a lack of some rows only is theirs alone.
        """
        for name, metric in self.metrics.items():
            lacks = [_lack(metric, sample) for sample in samples]
            if lacks and all(lacks):
                raise UsageError(f"{where}: {name} can't be computed for any row: {lacks[0]}")

    async def scores(self, sample: RagSample) -> dict[str, Outcome]:
        """By metric, the score, or the error that stands in its place; on the engine's loop."""
        if not self.waits:
            return {name: await self._one(name, sample) for name in self.metrics}
        found = await asyncio.gather(*(self._one(name, sample) for name in self.metrics))
        return dict(zip(self.metrics, found, strict=True))

    async def _one(self, name: str, sample: RagSample) -> Outcome:
        try:
            return await score(self._setups[name].prepare(sample))
        except RagbenchError as error:
            return error


def possible_metrics(sample: RagSample, judge_tasks: Mapping[str, Any] | Any, *, embedder: bool) -> list[str]:
    """The metrics that this sample has all fields for and that this judge can do.

    ``judge_tasks``: names of tasks, or None for a judge that does all.
    """
    found = []
    for name, known in all_metrics().items():
        able = judge_tasks is None or all(set(task.split("|")) & set(judge_tasks) for task in known.tasks)
        if known.of == "set" or (known.embedder and not embedder) or not known.needs or not able:
            continue
        try:
            metric = find(name)
            check_options(metric, {})
        except UsageError:  # it takes a cut-off, or an option that only people can choose
            continue
        if _lack(metric, sample) is None:
            found.append(name)
    return found


def _lack(metric: Metric, sample: RagSample) -> str | None:
    try:
        check_needs(metric.adapted(sample, {}), sample)
    except UsageError as error:
        return str(error)
    return None
