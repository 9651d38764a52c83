"""``ragbench mutate``: does the suite catch anything?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_ragbench.cli.shared import Exit, configured, emit, engine_of, json_option, settings_of, table

if TYPE_CHECKING:
    from pytest_ragbench.mutation.running import Trial


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
@configured("judge", "store")
@json_option
def command(
    report: Path,
    metric: str,
    threshold: str | None,
    limit: int,
    catch: str | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Make the answers of REPORT that passed worse, and see whether the judge notices.

    By rule, in English, Russian and Japanese: a number, unit or negation changed, a claim added, the answer or
    the chunks of another question, the supporting chunk removed. Others are only rephrased or reordered, and should
    still pass. What slipped through is shown.

    \b
      ragbench mutate run.json
      ragbench mutate run.json -m faithfulness --judge openai:gpt-4o-mini --catch '>=0.9'
    """
    from pytest_ragbench import building
    from pytest_ragbench.metrics.scoring import configured as metric_options
    from pytest_ragbench.mutation.running import originals, summary, try_out, variants_of
    from pytest_ragbench.report.reading import read_report
    from pytest_ragbench.thresholds import Scale, parse_threshold

    wanted = parse_threshold(catch, Scale("catch")) if catch is not None else None
    passed = originals(read_report(report), metric, threshold)[:limit]
    made = variants_of(passed, metric)
    settings = settings_of(options)
    with engine_of(settings) as engine:
        judge = building.judge(None, engine, settings)
        trials = engine.wait(try_out(made, metric, judge, metric_options(settings, metric, {})))
    rows = summary(trials)
    bad = [trial for trial in trials if not trial.variant.good and trial.passed is not None]
    caught = sum(not trial.survived for trial in bad) / len(bad) if bad else None
    data = {
        "metric": metric,
        "judge": judge.name,
        "originals": len(passed),
        "caught": caught,
        "kinds": rows,
        "survivors": [_told(trial) for trial in trials if trial.survived],
    }
    emit(data, lambda: _text(data), as_json=as_json)
    if trials and all(trial.passed is None for trial in trials):
        return Exit.UNSCORED
    return Exit.QUALITY if wanted is not None and (caught is None or not wanted.met(caught)) else Exit.OK


def _told(trial: Trial) -> dict[str, Any]:
    variant = trial.variant
    return {
        "kind": variant.kind,
        "good": variant.good,
        "id": variant.sample.id,
        "change": variant.change,
        "question": variant.sample.question,
        "answer": variant.sample.answer,
        "value": trial.value,
        "threshold": trial.threshold.text,
        "reason": trial.reason,
    }


def _text(data: dict[str, Any]) -> str:
    from pytest_ragbench.report.clean import one_line

    lines = []
    for row in data["kinds"]:
        share = "-" if row["share"] is None else f"{row['share']:.2f} ({row['low']:.2f} to {row['high']:.2f})"
        verdict = "still passes" if row["good"] else "is caught"
        lines.append(
            [row["kind"], verdict, share, f"{row['right']}/{row['n']}", str(row["n_unscored"] or "-")]
        )
    text = [
        f"{data['metric']}, judge {data['judge']}: variants of {data['originals']} answers that passed",
        table(["variant", "right if it", "share (95 %)", "right", "unscored"], lines),
    ]
    if data["caught"] is not None:
        text.append(f"bad variants caught: {data['caught']:.2f}")
    survivors = data["survivors"]
    if survivors:
        text.append("judged wrongly:")
    for each in survivors[:20]:
        what = "failed, but is as good as before" if each["good"] else "passed, but is wrong"
        text.append(
            f"  {each['kind']:<16} {what}   {one_line(each['id'], 60)}   {one_line(each['change'], 100)}"
            f"   {one_line(each['answer'] or '', 160)}"
        )
    if len(survivors) > 20:
        text.append(f"  ... and {len(survivors) - 20} more (--json has all)")
    return "\n".join(text)
