"""``ragbench matrix``: several systems side by side."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from pytest_ragbench.cli.shared import emit, history_of, json_option, note, settings_of
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.earlier import find_report
from pytest_ragbench.report.html.matrix import write_matrix
from pytest_ragbench.report.matrix import Matrix, matrix_of
from pytest_ragbench.report.matrix_text import matrix_lines
from pytest_ragbench.report.systems import columns_of

_MORE = "-o matrix.html, or --questions N"


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="[NAME=]RUN...")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a page, FILE.html, as well.",
)
@click.option(
    "-m", "--metric", "metrics", multiple=True, metavar="NAME", help="Only this; may be given several times."
)
@click.option(
    "--questions", default=10, show_default=True, metavar="N", help="So many are listed; the page has all."
)
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the last runs of branches are; default: the file of the setting `history`.",
)
@json_option
def command(
    runs: tuple[str, ...],
    output: Path | None,
    metrics: tuple[str, ...],
    questions: int,
    history: Path | None,
    as_json: bool,
) -> None:
    """Put runs of the same questions side by side: questions down, systems across.

    Each RUN is a report (--ragbench-json), or a branch whose last run the history has; a run of several systems
    (--ragbench-retrievers) is as many columns. Says for each metric who is
    ahead, at how many questions, and whether the difference is more than chance; and shows the questions at which
    the systems differ most.

    \b
      ragbench matrix small.json large.json
      ragbench matrix run-of-both.json
      ragbench matrix bm25=a.json vectors=b.json both=c.json -o matrix.html
      ragbench matrix a.json b.json -m faithfulness -m ndcg@10 --json
    """
    if output is not None and output.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{output}: the page's name ends in .html")
    matrix = matrix_of(_read(runs, history), metrics)
    if output is not None:
        write_matrix(output, matrix)
    columns = shutil.get_terminal_size().columns
    emit(_data(matrix), lambda: "\n".join(matrix_lines(matrix, columns, questions, _MORE)), as_json=as_json)
    if output is not None and not as_json:
        note(str(output))


def _read(runs: tuple[str, ...], history: Path | None) -> list[tuple[str, RunReport]]:
    found = []
    for given in runs:
        name, equals, rest = given.partition("=")
        # A path may have an equals sign, too.
        named = bool(equals) and not Path(given).exists()
        place = rest if named else given
        if history is None and not Path(place).exists():
            history = history_of(settings_of({}))
        report, _ = find_report(place, base=Path(), history=history)
        name = name if named else Path(place).stem if Path(place).exists() else place
        found.append((name, report))
    return columns_of(found)


def _data(matrix: Matrix) -> dict[str, Any]:
    names = [system.name for system in matrix.systems]
    return {
        "systems": [
            {
                "name": system.name, "questions": system.questions, "passed": system.passed, "cost": system.cost,
                "latency_p50": system.latency, "settings": system.report.run.settings,
            }
            for system in matrix.systems
        ],
        "metrics": [
            {
                "metric": contest.metric,
                "direction": "higher" if contest.higher else "lower",
                "questions": contest.n,
                "means": dict(zip(names, contest.means, strict=True)),
                "wins": dict(zip(names, contest.wins, strict=True)),
                "pairs": [
                    {
                        "better": names[duel.better], "worse": names[duel.worse], "difference": duel.difference,
                        "p": duel.p, "more_than_chance": duel.is_real, "incomparable": duel.why_not or None,
                    }
                    for duel in contest.duels
                ],
            }
            for contest in matrix.contests
        ],
        "questions": [
            {
                "id": line.name,
                "question": line.question,
                "spread": line.spread,
                "systems": {
                    name: None
                    if cell is None
                    else {"answer": cell.answer, "outcome": cell.outcome, "scores": dict(cell.scores)}
                    for name, cell in zip(names, line.cells, strict=True)
                },
            }
            for line in matrix.lines
        ],
    }  # fmt: skip
