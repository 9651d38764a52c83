"""``ragbench merge``: the shards of a run, as one run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from pytest_ragbench.cli.shared import emit, history_of, json_option, note, settings_of
from pytest_ragbench.gates.baseline import scales_of
from pytest_ragbench.gates.deciding import RunGates
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import rules_of
from pytest_ragbench.metrics.registry import TIERS
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.earlier import read_baseline
from pytest_ragbench.report.merging import Shard, merge, read_shards, summary_of
from pytest_ragbench.report.summary import table
from pytest_ragbench.report.usage import call_lines
from pytest_ragbench.report.writing import as_dict
from pytest_ragbench.settings import Settings


@click.command()
@click.argument("reports", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="REPORT...")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Where the merged report goes."
)
@click.option(
    "--shards",
    type=click.IntRange(1),
    metavar="N",
    help="There should be N reports; with fewer the run is not complete.",
)
@click.option("--newest", is_flag=True, help="Of a test that several shards ran, take the later result.")
@click.option(
    "--mixed",
    is_flag=True,
    help="Warn of shards of different commits, judges or versions, don't refuse them.",
)
@click.option(
    "--gate", "gates", multiple=True, metavar="RULE", help="A gate beside those of the configuration."
)
@click.option(
    "--baseline",
    metavar="FILE|REF",
    help="A report to compare with, or a branch that the history has a run of.",
)
@click.option(
    "--no-gates", is_flag=True, help="Leave out the gates of the configuration; those of --gate count."
)
@json_option
def command(
    reports: tuple[Path, ...], output: Path | None, shards: int | None, newest: bool, mixed: bool,
    gates: tuple[str, ...], baseline: str | None, no_gates: bool, as_json: bool,
) -> int:  # fmt: skip
    """Merge the reports (--ragbench-json) of the shards of one run; gates are held against all results.

    Run the shards with --ragbench-no-gates: a gate on a part of the questions tells something else. The exit
    code is that of one run of all tests.

    \b
      pytest tests/rag --ragbench-json shard1.json --ragbench-no-gates ...   # on one machine
      pytest tests/rag --ragbench-json shard2.json --ragbench-no-gates ...   # on another
      ragbench merge shard1.json shard2.json --shards 2 -o merged.json
    """
    settings = settings_of({})
    read = read_shards(reports)
    held = _gates(settings, gates, baseline, no_gates, read)
    merged = merge(read, newest=newest, expected=shards, mixed=mixed, gates=held)
    data = as_dict(merged)
    if output is not None:
        output.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
    for warning in merged.warnings:
        note(f"warning: {warning}")
    lines = [line for _, line in held.lines()] if held else []
    emit({name: value for name, value in data.items() if name != "results"},
         lambda: "\n".join(_shown(merged, lines, output)), as_json=as_json)  # fmt: skip
    return merged.exit_code or 0


def _gates(
    settings: Settings, typed: Sequence[str], baseline: str | None, no_gates: bool, shards: Sequence[Shard]
) -> RunGates | None:
    given = baseline or settings.gating.baseline
    history = history_of(settings)
    old = read_baseline(given, history=history) if given else None
    seen = Observations(result for shard in shards for result in shard.report.results)
    scale_of = scales_of(seen, *([old.observed] if old else []))
    rules = rules_of(settings.gates, typed, only_typed=no_gates, scale_of=scale_of)
    return RunGates(rules, settings.gating, old) if rules or old else None


def _shown(merged: RunReport, lines: list[str], output: Path | None) -> Iterator[str]:
    summary = summary_of(merged)
    if summary.rows:
        yield from table(summary.ordered_rows(TIERS), summary.bands())
    if summary.worst:
        yield "the worst questions:"
        yield from (line for bad in summary.worst for line in bad.lines(200))
    yield summary.outcome_line() or "no results"
    yield from call_lines(summary.usage)
    yield from lines
    parts = [f"{len(merged.results)} results of {len(merged.run.shards)} shards"]
    parts += [] if merged.complete else ["not complete"]
    parts += [f"written to {output}"] if output is not None else []
    yield ", ".join(parts)
