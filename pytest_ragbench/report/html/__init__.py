"""The HTML report: one file that holds all it needs and asks nobody for anything.

Whatever came from the run is hostile: the template escapes it, the script gets it as JSON and puts it in as
text only, and the page's policy lets no script run but the one whose hash it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_ragbench.languages import DEFAULT
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.money import dollars
from pytest_ragbench.report.causes import failures_by_cause
from pytest_ragbench.report.explanations import explanation
from pytest_ragbench.report.figures import Figure, figures
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.history import History
from pytest_ragbench.report.html.page import Served, asset, joined, json_text, policy, template, write_page
from pytest_ragbench.report.html.payload import Texts, payload
from pytest_ragbench.report.html.replies import packs
from pytest_ragbench.report.rows import Row, about_one_question, rows_of, set_scores
from pytest_ragbench.report.summary import means_of

_LIBRARY = "chartist-1.5.0.umd.js"
_SCRIPTS = (
    _LIBRARY,
    "1-base.js",
    "2-table.js",
    "3-spans.js",
    "4-labels.js",
    "5-replies.js",
    "6-question.js",
    "7-charts.js",
)
_CAUSES = 10
"""So many groups of failures are shown at once; the others when they are asked for."""
_EXAMPLES = 3
"""So many questions of a group are shown."""
_VERDICTS = {
    0: "passed",
    1: "failed",
    2: "interrupted",
    3: "results lost",
    4: "usage error",
    5: "no tests",
    8: "no score",
}


TREND = 30
"""So many earlier runs are plotted."""


class HtmlReport:
    """The page of a run, with the trend of the history and what the baseline said."""

    whole_run = True

    def __init__(self, path: Path, context: ReportContext) -> None:
        self._path = path
        self._context = context

    def add(self, result: TestRecord) -> None:
        pass

    def finish(self, run: RunReport) -> Iterable[str]:
        context = self._context
        history = History(context.history) if context.history is not None else None
        write_html(
            self._path,
            run,
            trend=history.runs(TREND, before=run.run.started) if history is not None else [],
            baseline=context.baseline(),
            lang=context.lang,
        )
        return [f"page: {self._path}"]


def html_report(
    report: RunReport,
    *,
    trend: Sequence[RunReport] = (),
    baseline: RunReport | None = None,
    lang: str = DEFAULT,
    served: Served | None = None,
) -> str:
    """The page.

    Parameters
    ----------
    trend
        Earlier runs, oldest first; their means are plotted before this one's.
    baseline
        An earlier run: a question's page shows its answer and its scores beside those of this run.
    lang
        Language of the metrics' explanations, as a code: ``"ru"``.
    served
        Set where ``ragbench view`` serves the page, which else is a file.
    """
    rows, found, texts = rows_of(report), figures(report), Texts()
    plotted = [figure for figure in found if len(figure.values) > 1]
    asked = {score.metric for row in rows for _, score in row.scores}
    title = f"RAG quality: {_outcome_line(report)}"
    script, css = joined(_SCRIPTS), asset("report.css")
    groups = failures_by_cause(rows)
    told = payload(rows, texts, baseline)
    places = {id(row): place for place, row in enumerate(rows)}
    for number, group in enumerate(groups):
        for row in group.rows:
            told[places[id(row)]]["cause"] = number
    data: dict[str, Any] = {
        "title": title,
        "run": {"id": report.run.id},
        "metrics": [
            {"name": metric, "tier": tier, "asked": metric in asked}
            # Once each, also where several systems have it.
            for metric, tier in {
                figure.metric: figure.tier for figure in sorted(found, key=lambda figure: -figure.missed)
            }.items()
        ],
        "plots": [{"edges": figure.edges, "counts": figure.counts} for figure in plotted],
        "questions": told,
        "causes": [group.cause.text for group in groups],
        "texts": texts.all,
    }
    if report.run.trace_url:
        data["trace_url"] = report.run.trace_url
    if served is not None and served.labels is not None:
        data["labels"] = asdict(served.labels)
    shown_trend = _trend([*trend, report]) if trend else None
    if shown_trend:
        data["trend"] = shown_trend
    from markupsafe import Markup

    by_name = {name: place for place, row in enumerate(rows) for name in (row.sample.question, row.sample.id)}
    started = datetime.fromtimestamp(report.run.started, UTC)
    return template("report.html.j2").render(
        lang="en",
        title=title,
        served=served,
        dollars=dollars,
        used=_used(report),
        report=report,
        policy=policy(script, css, served=served is not None),
        css=Markup(css),  # noqa: S704 - the package's own file
        script=Markup(script),  # noqa: S704 - the package's own file
        data=Markup(json_text(data)),  # noqa: S704 - every < > & is an escape
        replies=Markup(json_text(packs(rows))),  # noqa: S704 - base64
        verdict=verdict_of(report),
        outcome_line=_outcome_line(report),
        outcomes=_outcomes(rows),
        facts=_facts(report),
        started=f"{started:%Y-%m-%d %H:%M} UTC",
        started_iso=started.isoformat(),
        rows=rows,
        figures=found,
        plotted=plotted,
        trend=shown_trend,
        sets=list(set_scores(report)),
        calls=list(report.summary.calls.items()) if report.summary else [],
        groups=groups,
        shown_groups=_CAUSES,
        examples=_EXAMPLES,
        why=_why,
        place_of=lambda row: places[id(row)],
        by_name=by_name,
        others=[result for result in report.results if not about_one_question(result)],
        explained=_explained(found, lang),
        explained_lang=lang,
    )  # fmt: skip


def write_html(
    path: Path,
    report: RunReport,
    *,
    trend: Sequence[RunReport] = (),
    baseline: RunReport | None = None,
    lang: str = DEFAULT,
) -> None:
    """Write the page; see :func:`html_report`.

    Raises
    ------
    UsageError
        The file can't be written.
    """
    write_page(path, html_report(report, trend=trend, baseline=baseline, lang=lang))


def verdict_of(report: RunReport) -> str:
    """What a run came to, in a word or two."""
    return _VERDICTS.get(report.exit_code, "failed") if report.exit_code is not None else "broken off"


def _outcome_line(report: RunReport) -> str:
    counts: dict[str, int] = {}
    for result in report.results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
    order = ("passed", "failed", "error", "xfailed", "xpassed", "skipped")
    return ", ".join(f"{counts[name]} {name}" for name in order if name in counts) or "no tests"


def _why(row: Row) -> list[str]:
    """What is wrong with a question: a line for each score that missed or is not there, the same one once."""
    said = []
    for _, score in row.scores:
        if score.error is not None:
            said.append(f"{score.metric}: {score.error.message}")
        elif score.passed is False:
            reason = score.error_message or score.reason
            said.append(
                f"{score.metric} {score.value:.3f}, wanted {score.threshold}{': ' * bool(reason)}{reason}"
            )
    messages = (test.message for test in row.tests if test.outcome in ("failed", "error"))
    return list(dict.fromkeys(said or filter(None, messages)))


def _outcomes(rows: Sequence[Row]) -> list[tuple[str, int]]:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row.outcome] = counts.get(row.outcome, 0) + 1
    return sorted(counts.items(), key=lambda item: -item[1])


def _facts(report: RunReport) -> list[tuple[str, str]]:
    told = []
    if report.finished is not None:
        told.append(("took", _duration(report.finished - report.run.started)))
    calls = report.summary.calls.values() if report.summary else ()
    if costs := [entry.cost for entry in calls if entry.cost is not None]:
        told.append(("cost", dollars(sum(costs))))
    if tokens := sum(entry.prompt_tokens + entry.completion_tokens for entry in calls):
        told.append(("tokens", f"{int(tokens):,}"))
    return told


def _duration(seconds: float) -> str:
    minutes, rest = divmod(max(0.0, seconds), 60)
    return f"{int(minutes)} min {rest:.0f} s" if minutes else f"{rest:.1f} s"


def _trend(reports: Sequence[RunReport]) -> dict[str, Any] | None:
    """Means by run, for metrics that more than one run has."""
    runs, means = [], []
    for report in reports:
        started = datetime.fromtimestamp(report.run.started, UTC)
        commit = report.run.git.commit[:7] if report.run.git else ""
        label = f"{started:%m-%d}"
        runs.append({"started": f"{started:%Y-%m-%d %H:%M}", "label": label, "commit": commit})
        means.append(means_of(report))
    names = [name for name in means[-1] if sum(name in run for run in means) > 1]
    if not names:
        return None
    return {
        "runs": runs,
        "series": [{"name": name, "values": [run.get(name) for run in means]} for name in names],
    }


def _explained(found: Sequence[Figure], lang: str) -> dict[str, str]:
    told = {figure.metric: explanation(figure.metric, lang) for figure in found}
    return {metric: text for metric, text in told.items() if text}


def _used(report: RunReport) -> str:
    """Judges and embedders that gave scores: a fixture or a test may have chosen others than the settings."""
    summary = report.summary
    kinds = (("judge", summary.judges), ("embedder", summary.embedders)) if summary is not None else ()
    return ", ".join(f"{kind}{'s' * (len(names) > 1)} {', '.join(names)}" for kind, names in kinds if names)
