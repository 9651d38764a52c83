"""What votes and panels of a run disagreed on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

from pytest_ragbench import statistics
from pytest_ragbench.clean import one_line
from pytest_ragbench.model.errors import UndefinedScore
from pytest_ragbench.model.report import FlakyRecord, PanelRecord, RunReport
from pytest_ragbench.model.tests import ScoreRecord, TestRecord
from pytest_ragbench.model.thresholds import Scale, parse_threshold
from pytest_ragbench.report.records import question_of

_MOST_SHOWN = 20


class Opinions:
    """Collects where votes and judges disagreed."""

    def __init__(self) -> None:
        self.flaky: list[FlakyRecord] = []
        self._panels: dict[str, list[tuple[Mapping[str, float], str | None]]] = defaultdict(list)
        self._disagreements: dict[str, list[str]] = defaultdict(list)
        self._failed: dict[str, int] = defaultdict(int)
        self._rerun: list[str] = []
        self._unsure: dict[str, list[int]] = defaultdict(lambda: [0, 0])

    def add(self, result: TestRecord) -> None:
        if result.reruns:
            self._rerun += _reruns(result)
        for score in result.scores:
            details = score.details
            if details.get("flaky"):
                self.flaky.append(
                    FlakyRecord(
                        question=result.question_id or result.test,
                        metric=score.metric,
                        votes=tuple(details["votes"]),
                        self_agreement=details["self_agreement"],
                    )
                )
            if details.get("panel"):
                self._panels[score.metric].append((details["panel"], score.threshold))
            if details.get("disagreement"):
                question = one_line(result.question_id or result.test, 60)
                self._disagreements[score.metric].append(
                    f"{question} {score.metric} {score.value:.2f}: {one_line(details['disagreement'], 300)}"
                )
            if isinstance(details.get("n_claims"), int):
                counts = self._unsure[score.metric]
                counts[0] += details.get("n_unsure") or 0
                counts[1] += details["n_claims"]
            for name in details.get("panel_failed") or ():
                self._failed[name] += 1

    def finish(self, run: RunReport) -> None:
        run.flaky, run.panels = tuple(self.flaky), tuple(self.panels())

    def panels(self) -> list[PanelRecord]:
        """Of each metric how well its judges agree; None where that is undefined."""
        found = []
        for metric, opinions in sorted(self._panels.items()):
            # A member that failed somewhere is missing there, and still one of the panel.
            names = sorted({name for values, _ in opinions for name in values})
            rows = [[values.get(name) for values, _ in opinions] for name in names]
            found.append(
                PanelRecord(
                    metric=metric,
                    judges=tuple(names),
                    n=len(opinions),
                    disagreed=len(self._disagreements[metric]),
                    alpha=_alpha(rows),
                    kappa=_kappa(rows, [limit for _, limit in opinions]) if len(rows) == 2 else None,
                    means={name: _mean(row) for name, row in zip(names, rows, strict=True)},
                )
            )
        return found

    def lines(self) -> Iterator[str]:
        """For the terminal."""
        for metric, (unsure, claims) in sorted(self._unsure.items()):
            if unsure:
                yield f"unsure: {metric}: the judge can't tell {unsure} of {claims} claims"
        yield from self._rerun[:20]
        if len(self._rerun) > 20:
            yield f"rerun: and {len(self._rerun) - 20} more"
        for each in self.flaky[:_MOST_SHOWN]:
            votes = ", ".join(f"{value:.2f}" for value in each.votes)
            yield (
                f"flaky: {one_line(each.question, 60)} {each.metric}: votes {votes}, "
                f"spread {max(each.votes) - min(each.votes):.2f}, self-agreement {each.self_agreement:.2f}"
            )
        if len(self.flaky) > _MOST_SHOWN:
            yield f"flaky: and {len(self.flaky) - _MOST_SHOWN} more"
        for panel in self.panels():
            means = ", ".join(f"{one_line(name, 60)} {mean:.3f}" for name, mean in panel.means.items())
            agreement = f"alpha {_shown(panel.alpha)}"
            agreement += f", kappa {_shown(panel.kappa)}" if len(panel.judges) == 2 else ""
            yield f"panel: {panel.metric}: {means}; agreement over {panel.n} scores: {agreement}"
            if panel.disagreed:
                share = f"{panel.disagreed} of {panel.n}"
                yield f"panel: {panel.metric}: the judges disagree about the threshold on {share} scores"
        disagreements = [line for lines in self._disagreements.values() for line in lines]
        for line in disagreements[:_MOST_SHOWN]:
            yield f"panel: {line}"
        if len(disagreements) > _MOST_SHOWN:
            yield f"panel: and {len(disagreements) - _MOST_SHOWN} more"
        for name, count in sorted(self._failed.items()):
            yield f"panel: {one_line(name, 60)} was left out of {count} score{'s' * (count != 1)}, where it failed"


def _shown(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


def _alpha(rows: list[list[float | None]]) -> float | None:
    try:
        return statistics.krippendorff_alpha(rows, level="interval")
    except UndefinedScore:
        return None


def _kappa(rows: list[list[float | None]], limits: list[str | None]) -> float | None:
    """Of the verdicts: whether each judge's score meets the threshold."""
    verdicts: list[list[bool | None]] = [[], []]
    for one, two, text in zip(*rows, limits, strict=True):
        if one is None or two is None or text is None:
            continue
        # The range does not matter here, and the metric may not be registered in this process.
        scale = Scale(low=-math.inf, high=math.inf, direction="lower" if text.startswith("<") else "higher")
        limit = parse_threshold(text, scale)
        for column, value in zip(verdicts, (one, two), strict=True):
            column.append(limit.met(value))
    try:
        return statistics.cohen_kappa(verdicts[0], verdicts[1], levels=(False, True))
    except UndefinedScore:
        return None


def _mean(row: list[float | None]) -> float:
    values = [value for value in row if value is not None]
    return math.fsum(values) / len(values)


def _reruns(result: TestRecord) -> Iterator[str]:
    """What a rerun replaced: each attempt is a vote."""
    scores: dict[tuple[str, str | None], list[ScoreRecord]] = defaultdict(list)
    for score in result.scores:
        scores[score.metric, question_of(result, score)].append(score)
    for (metric, _), attempts in scores.items():
        values = [score.value for score in attempts if score.value is not None]
        if len(values) > 1:
            told = ", then ".join(f"{value:.2f}" for value in values)
            name = one_line(result.question_id or result.test, 60)
            yield f"rerun: {name} {metric}: {told}; each counts, so its score is {math.fsum(values) / len(values):.2f}"
