"""``ragbench mutate``: does the suite catch anything?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_ragbench.cli.shared import Exit, configured, emit, engine_of, json_option, settings_of
from pytest_ragbench.gates.rules import parse_rule, parse_rules
from pytest_ragbench.model.thresholds import Scale, parse_threshold
from pytest_ragbench.report.reading import read_report
from pytest_ragbench.report.writing import as_dict
from pytest_ragbench.scoring import context_of


@click.command()
@click.argument("report", type=click.Path(path_type=Path))
@click.option("-m", "--metric", default="faithfulness", metavar="NAME", help="Default: faithfulness.")
@click.option("-t", "--threshold", metavar="LIMIT", help="In place of those in the report: '>=0.8'.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, metavar="N", help="Answers to start from; default 50."
)
@click.option(
    "--catch", metavar="LIMIT", help="Exit with 1 where the share of bad ones caught misses it: '>=0.9'."
)
@click.option(
    "--gate",
    "gates",
    multiple=True,
    metavar="RULE",
    help="See what this gate makes of them, besides those configured. May be given several times.",
)
@configured("judge", "embedder", "store")
@json_option
def command(
    report: Path,
    metric: str,
    threshold: str | None,
    limit: int,
    catch: str | None,
    gates: tuple[str, ...],
    as_json: bool,
    **options: Any,
) -> int:
    """Make the answers of REPORT that passed worse, and see whether judge, threshold and gates notice.

    By rule, in English, Russian and Japanese: a number, date, unit, name or negation changed, a claim added or
    dropped, the answer or the chunks of another question, the supporting chunk removed, the ranking reversed. Others
    are only rephrased or reordered, and should still pass. What slipped through is shown.

    \b
      ragbench mutate run.json
      ragbench mutate run.json -m faithfulness --judge openai:gpt-4o-mini --catch '>=0.9'
      ragbench mutate run.json -m ndcg@10 --gate "ndcg@10 >= 0.8"
    """
    from pytest_ragbench.gates.baseline import baseline_of
    from pytest_ragbench.mutation.outcome import outcome, text
    from pytest_ragbench.mutation.running import originals, try_out, variants_of

    # First, since what follows is paid for.
    wanted = parse_threshold(catch, Scale("catch")) if catch is not None else None
    settings = settings_of(options)
    rules = [*parse_rules(settings.gates), *(parse_rule(text) for text in gates)]
    read = read_report(report)
    with engine_of(settings) as engine:
        passed = originals(read, metric, threshold, context_of(engine, settings))[:limit]
        judge = next((each.prepared.judge for each in passed if each.prepared.judge), None)
        made = variants_of(passed)
        trials = engine.wait(try_out(made))
    found = outcome(trials, rules, baseline_of(read, name=str(report)).observed)
    data: dict[str, Any] = {
        "metric": metric,
        "judge": judge.name if judge else None,
        "originals": len(passed),
        "caught": None,
        "wrongly_failed": None,
    }
    data |= {"kinds": [], "survivors": [], **(as_dict(found.metrics[0]) if found.metrics else {})}
    data["gates"] = as_dict(found)["gates"]
    emit(data, lambda: "\n".join([f"judge {data['judge'] or 'none'}", *text(found)]), as_json=as_json)
    # A judge that gave no verdict at all caught nothing and missed nothing.
    if trials and all(trial.passed is None for trial in trials):
        return Exit.UNSCORED
    share = data["caught"]
    return Exit.QUALITY if wanted is not None and (share is None or not wanted.met(share)) else Exit.OK
