"""``ragbench history``: earlier runs, listed and plotted in the terminal."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from pytest_ragbench.cli.shared import configured_history, emit, json_option, note
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.history import History
from pytest_ragbench.report.layout import aligned, cut, pad
from pytest_ragbench.report.reading import read_report
from pytest_ragbench.report.summary import known_metric, means_of
from pytest_ragbench.report.writing import as_dict

_STEPS = "▁▂▃▄▅▆▇█"


@click.command("history")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "-n", "count", type=click.IntRange(1, 10_000), default=20, show_default=True, help="So many runs."
)
@click.option("--branch", metavar="NAME", help="Only runs of this branch.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric; may be given again."
)
@click.option(
    "--add",
    "added",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="RUN",
    help="First add a run's JSON report.",
)
@click.option("--keep", type=click.IntRange(1), metavar="N", help="First forget all but the latest N runs.")
@json_option
def command(
    file: Path | None,
    count: int,
    branch: str | None,
    metrics: tuple[str, ...],
    added: tuple[Path, ...],
    keep: int | None,
    as_json: bool,
) -> None:
    """List the runs in FILE, by default the file of the setting `history`, and plot the means of their metrics.

    \b
    Example:
      pytest tests/rag --ragbench-history=history.sqlite
      ragbench history history.sqlite --branch main
    """
    if file is None:
        file, reports = configured_history()
    else:
        reports = None
    history = History(file)
    for path in added:
        history.add(read_report(path), reports=reports)
    if not history.path.exists():
        raise UsageError(f"history {history.path}: there is no such file")
    if keep is not None:
        note(f"{history.prune(keep)} runs forgotten")
    runs = history.runs(count, branch=branch)
    emit([_told(run) for run in runs], lambda: _shown(runs, metrics), as_json=as_json)


def _told(run: RunReport) -> dict[str, Any]:
    return {
        name: value for name, value in as_dict(run).items() if name not in ("results", "schema", "version")
    }


def _shown(runs: Sequence[RunReport], wanted: Sequence[str]) -> str:
    """A line for each run, and below them one for each metric with its means as bars."""
    if not runs:
        return "no runs"
    columns = shutil.get_terminal_size((100, 24)).columns
    rows = [["started", "commit", "branch", "outcome"]]
    for run in runs:
        git = run.run.git
        commit = git.commit[:8] + ("+" if git.dirty else "") if git else "-"
        started = f"{datetime.fromtimestamp(run.run.started, UTC):%Y-%m-%d %H:%M}"
        counts = run.summary.outcomes.items() if run.summary else ()
        outcome = ", ".join(f"{number} {name}" for name, number in counts) or "-"
        rows.append(
            [
                started,
                commit,
                (git.branch if git else None) or "-",
                outcome + ("" if run.complete else " (incomplete)"),
            ]
        )
    left = ("started", "commit", "branch", "outcome")
    lines = aligned(rows, left=left, drop=("commit",), shrink="outcome", columns=columns)
    means = [means_of(run) for run in runs]
    names = wanted or list(dict.fromkeys(name for run in reversed(means) for name in run))
    lines.append("")
    wide = min(32, max((len(name) for name in names), default=0))
    for name in names:
        values = [run.get(name) for run in means]
        told = [value for value in values if value is not None]
        if not told:
            lines.append(f"{pad(cut(name, wide), wide)}  in none of these runs")
            continue
        change = f"{told[-1] - told[-2]:+.3f}" if len(told) > 1 else ""
        lines.append(f"{pad(cut(name, wide), wide)}  {bars(name, values)}  {told[-1]:.3f}  {change}".rstrip())
    return "\n".join(lines)


def bars(metric: str, values: Sequence[float | None]) -> str:
    """The values as bars on the metric's own range, so that a small change looks small; a gap for None."""
    found = known_metric(metric.partition(" (")[0])  # of one of several systems, too
    present = [value for value in values if value is not None]
    low = found.low if found and math.isfinite(found.low) else min([0.0, *present])
    high = found.high if found and math.isfinite(found.high) else max([low + 1.0, *present])

    def bar(value: float | None) -> str:
        if value is None:
            return " "
        share = (min(max(value, low), high) - low) / (high - low)
        return _STEPS[min(len(_STEPS) - 1, int(share * len(_STEPS)))]

    return "".join(bar(value) for value in values)
