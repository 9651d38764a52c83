"""``ragbench compare``: two runs, question by question."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ragbench.clean import clean
from pytest_ragbench.cli.shared import Exit, emit, json_option, settings_of
from pytest_ragbench.gates.baseline import Comparison, compare_all
from pytest_ragbench.gates.rules import parse_rule
from pytest_ragbench.gates.verdicts import Conditions, Verdict, evaluate
from pytest_ragbench.report.earlier import read_baseline
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
@json_option
def command(old: str, new: str, history: Path | None, gates: tuple[str, ...], as_json: bool) -> int:
    """Compare two runs, question by question: reports (--ragbench-json), or branches whose last run the history has.

    Says for each metric by how much NEW differs from OLD, whether chance may explain it, which questions moved
    most, broke or were mended, and what makes the runs incomparable. With --gate the exit code is 1 where one
    fails, 9 where one can't do its work.

    \b
      ragbench compare main.json branch.json
      ragbench compare main.json branch.json --gate "faithfulness no worse than baseline"
      ragbench compare main feature/chunking --history runs.sqlite
    """
    rules = [parse_rule(text) for text in gates]
    if history is None and not (Path(old).exists() and Path(new).exists()):
        configured = settings_of({}).history
        history = Path(configured).expanduser() if configured else None
    before, after = (read_baseline(each, history=history) for each in (old, new))
    found = compare_all(after, before)
    verdicts = evaluate(rules, after.observed, Conditions(baseline=before, new=after))
    data = {
        "old": before.name,
        "new": after.name,
        "metrics": [as_dict(comparison.metric_record()) for comparison in found],
        "gates": [as_dict(verdict.record()) for verdict in verdicts],
    }
    emit(data, lambda: _text(found, verdicts), as_json=as_json)
    if any(verdict.outcome == "FAIL" for verdict in verdicts):
        return Exit.QUALITY
    return 9 if any(verdict.broken for verdict in verdicts) else Exit.OK


def _text(found: list[Comparison], verdicts: list[Verdict]) -> str:
    lines = [f"{verdict.outcome:<10} {verdict.rule.text}   {verdict.reason}" for verdict in verdicts]
    lines += [line for comparison in found for line in comparison.lines()]
    return "\n".join(clean(line) for line in lines) or "the two runs have no metric in common"
