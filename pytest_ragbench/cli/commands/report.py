"""``ragbench report``: a page for people from a run's JSON report."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ragbench.cli.shared import json_option, note, print_json
from pytest_ragbench.languages import DEFAULT, known_languages
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.formats import ReportContext, find_format
from pytest_ragbench.report.history import History
from pytest_ragbench.report.html import write_html
from pytest_ragbench.report.reading import read_report

_BY_SUFFIX = {".html": "html", ".htm": "html", ".md": "markdown"}


@click.command("report")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    metavar="FILE",
    help="FILE.html, or FILE.md.",
)
@click.option(
    "--trend",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="An earlier run's JSON report to plot before this one; may be given several times.",
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plot the runs of FILE before this one's.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="An earlier run's JSON report: questions are shown beside what they came to there.",
)
@click.option(
    "--lang", type=click.Choice(known_languages()), default=DEFAULT, help="Of the explanations of metrics."
)
@click.option(
    "--format",
    "name",
    metavar="NAME",
    help="Any format of `pytest --ragbench-report`: csv, history, or one that an installed package adds.",
)
@json_option
def command(
    run: Path, output: Path, trend: tuple[Path, ...], history: Path | None, baseline: Path | None, lang: str,
    name: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Make a report, for the browser or in Markdown, from RUN, a file that `pytest --ragbench-json` wrote.

    \b
    Example:
      ragbench report run.json -o report.html
      ragbench report run.json -o summary.md
      ragbench report run.json -o scores.csv --format csv
    """
    name = name or _BY_SUFFIX.get(output.suffix.lower())
    if name is None:
        raise UsageError(
            f"{output}: a report ends in .html, or in .md for Markdown; for others give --format"
        )
    report = read_report(run)
    old = read_report(baseline) if baseline else None
    if name == "html":
        earlier = sorted((read_report(path) for path in trend), key=lambda each: each.run.started)
        if history is not None:
            earlier = History(history).runs(before=report.run.started) + earlier
        write_html(output, report, trend=earlier, baseline=old, lang=lang)
    else:
        context = ReportContext(report.run, lang=lang, history=history, baseline=lambda: old)
        written = find_format(name)(output, context)
        for result in report.results:
            written.add(result)
        written.finish(report)
    _say(output, as_json)


def _say(output: Path, as_json: bool) -> None:
    if as_json:
        print_json({"output": str(output)})
    else:
        note(str(output))
