"""``ragbench report``: a page for people from a run's JSON report."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ragbench.cli.shared import json_option, note, print_json
from pytest_ragbench.languages import DEFAULT, known_languages
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.reading import read_report


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
@json_option
def command(
    run: Path, output: Path, trend: tuple[Path, ...], history: Path | None, baseline: Path | None, lang: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Make a report, for the browser or in Markdown, from RUN, a file that `pytest --ragbench-json` wrote.

    \b
    Example:
      ragbench report run.json -o report.html
      ragbench report run.json -o summary.md
    """
    from pytest_ragbench.report.html import write_html

    if output.suffix.lower() == ".md":
        from pytest_ragbench.report.markdown import markdown_report

        text = markdown_report(read_report(run))
        output.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        _say(output, as_json)
        return
    if output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{output}: a report ends in .html, or in .md for Markdown")
    report = read_report(run)
    earlier = sorted((read_report(path) for path in trend), key=lambda report: report.run.started)
    if history is not None:
        from pytest_ragbench.report.history import History

        earlier = History(history).runs(before=report.run.started) + earlier
    old = read_report(baseline) if baseline else None
    write_html(output, report, trend=earlier, baseline=old, lang=lang)
    _say(output, as_json)


def _say(output: Path, as_json: bool) -> None:
    if as_json:
        print_json({"output": str(output)})
    else:
        note(str(output))
