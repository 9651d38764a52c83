"""``ragbench compare``: two runs, question by question."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ragbench.clean import clean
from pytest_ragbench.cli.shared import Exit, emit, history_of, json_option, settings_of
from pytest_ragbench.gates.baseline import scales_of
from pytest_ragbench.gates.deciding import RunGates
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import rules_of
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.earlier import find_report, read_baseline
from pytest_ragbench.report.writing import as_dict


@click.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--history",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Where the last runs of branches are; default: the file of the setting `history`.",
)
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="RULE",
    help="Decide: 'faithfulness no worse than baseline by more than 0.02'. May be given several times.",
)
@click.option(
    "--no-gates", is_flag=True, help="Leave out the gates of the configuration; those of --gate count."
)
@json_option
def command(
    old: str, new: str, history: Path | None, gates: tuple[str, ...], no_gates: bool, as_json: bool
) -> int:
    """Compare two runs, question by question: reports (--ragbench-json), or branches whose last run the history has.

    Says for each metric by how much NEW differs from OLD, whether chance may explain it, which questions moved
    most, broke or were mended, and what makes the runs incomparable. Gates, those of the configuration and those
    of --gate, are decided as in a run of NEW with OLD as its baseline: the exit code is 1 where one fails, 9 where
    one can't do its work, and 10 where one is undecided and `gating.undecided` is "fail".

    \b
      ragbench compare main.json branch.json
      ragbench compare main.json branch.json --gate "faithfulness no worse than baseline"
      ragbench compare main feature/chunking --history runs.sqlite
    """
    settings = settings_of({})
    if history is None and not (Path(old).exists() and Path(new).exists()):
        history = history_of(settings)
    before = read_baseline(old, history=history)
    report, name = find_report(new, base=Path(), history=history)
    scale_of = scales_of(Observations(report.results), before.observed)
    rules = rules_of(settings.gates, gates, only_typed=no_gates, scale_of=scale_of)
    held = RunGates(rules, settings.gating, before)
    for result in report.results:
        held.add(result)
    # Whatever its tests came to: what is asked here is what the gates say.
    decided = RunReport(
        run=report.run, complete=report.complete, preflight=report.preflight, exit_code=Exit.OK
    )
    held.finish(decided)
    compared = decided.baseline.metrics if decided.baseline else ()
    data = {
        "old": before.name,
        "new": name,
        "metrics": [as_dict(each) for each in compared],
        "gates": [as_dict(each) for each in decided.gates],
    }
    emit(data, lambda: _text(held), as_json=as_json)
    return decided.exit_code or Exit.OK


def _text(held: RunGates) -> str:
    lines = [line for outcome, line in held.lines() if outcome]
    lines += [line for comparison in held.comparisons for line in comparison.lines()]
    if not held.comparisons:
        lines.append("the two runs have no metric in common")
    return "\n".join(clean(line) for line in lines)
