"""``ragbench compare``: two runs, question by question."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pytest_ragbench.cli.shared import Exit, emit, json_option

if TYPE_CHECKING:
    from pytest_ragbench.gates.baseline import Comparison
    from pytest_ragbench.gates.verdicts import Verdict


@click.command()
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="RULE",
    help="Decide: 'faithfulness no worse than baseline by more than 0.02'. May be given several times.",
)
@json_option
def command(old: Path, new: Path, gates: tuple[str, ...], as_json: bool) -> int:
    """Compare the reports of two runs (--ragbench-json), question by question.

    Says for each metric by how much NEW differs from OLD, whether chance may explain it, which questions moved
    most, broke or were mended, and what makes the runs incomparable. With --gate the exit code is 1 where one
    fails, 9 where one can't do its work.

    \b
      ragbench compare main.json branch.json
      ragbench compare main.json branch.json --gate "faithfulness no worse than baseline"
    """
    from pytest_ragbench.gates.baseline import compare_all, read_baseline
    from pytest_ragbench.gates.rules import parse_rule
    from pytest_ragbench.gates.verdicts import Conditions, evaluate

    rules = [parse_rule(text) for text in gates]
    before, after = read_baseline(old), read_baseline(new)
    found = compare_all(after, before)
    verdicts = evaluate(rules, after.observed, Conditions(baseline=before, new=after))
    data = {
        "old": str(old),
        "new": str(new),
        "metrics": [{"metric": comparison.metric, **comparison.to_dict()} for comparison in found],
        "gates": [verdict.to_dict() for verdict in verdicts],
    }
    emit(data, lambda: _text(found, verdicts), as_json=as_json)
    if any(verdict.outcome == "FAIL" for verdict in verdicts):
        return Exit.QUALITY
    return 9 if any(verdict.broken for verdict in verdicts) else Exit.OK


def _text(found: list[Comparison], verdicts: list[Verdict]) -> str:
    from pytest_ragbench.report.clean import clean

    lines = [f"{verdict.outcome:<10} {verdict.rule.text}   {verdict.reason}" for verdict in verdicts]
    lines += [line for comparison in found for line in comparison.lines()]
    return "\n".join(clean(line) for line in lines) or "the two runs have no metric in common"
