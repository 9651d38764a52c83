"""``ragbench score``: answers that already exist, from a file."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_ragbench.building import judge_name
from pytest_ragbench.cli.shared import (
    Exit,
    configured,
    emit,
    engine_of,
    json_option,
    note,
    settings_of,
    table,
)
from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.thresholds import parse_threshold

if TYPE_CHECKING:
    from pytest_ragbench.batch import Totals
    from pytest_ragbench.model.thresholds import Threshold
    from pytest_ragbench.settings import Settings


_DEFAULT = ("faithfulness", "answer_relevancy_holistic")


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-m", "--metric", "metrics", multiple=True, metavar="NAME",
              help="A metric; may be repeated. Default: faithfulness and answer_relevancy_holistic.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path),
              help="Scores, by suffix as .jsonl, .csv or .parquet. Default: NAME.scores.jsonl.")  # fmt: skip
@click.option("-t", "--threshold", "thresholds", multiple=True, metavar="LIMIT",
              help="Exit with 1 where the mean of a metric misses it, e.g. -t 'faithfulness>=0.8'.")  # fmt: skip
@click.option("--column", "columns", multiple=True, metavar="OURS=THEIRS",
              help="What a column is, where its name is not known: --column answer=bot_text.")  # fmt: skip
@click.option("--format", "format", metavar="KIND", help="Of FILE, where its suffix does not say.")
@click.option("--encoding", metavar="NAME", help="Of FILE, where it is not UTF-8: cp1251, cp932 ...")
@click.option("--delimiter", metavar="LETTER", help="Of a CSV, where it is not found.")
@click.option("--share", type=click.FloatRange(0, 1, min_open=True), default=1.0, metavar="X",
              help="Score this share of the rows (0.01: one in a hundred), always the same ones.")  # fmt: skip
@click.option("--seed", type=int, default=0, help="Of --share: another seed, other rows.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after N rows.")
@click.option(
    "--keep-going", is_flag=True, help="Pass over rows that can't be read; they are counted and named."
)
@click.option("--fresh", is_flag=True, help="Replace the output; forget an interrupted run.")
@configured("judge", "embedder", "store")
@json_option
def command(
    file: Path, metrics: tuple[str, ...], output: Path | None, thresholds: tuple[str, ...], columns: tuple[str, ...],
    format: str | None, encoding: str | None, delimiter: str | None, share: float, seed: int, limit: int | None,
    keep_going: bool, fresh: bool, as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Score answers that already exist: no service is asked.

    FILE holds a row for each answer, with the columns of a question file and `answer` and `contexts`
    (production logs, an export). It is read as it goes, so it may be of any size. Interrupted, the same
    command goes on where it stopped. `ragbench metrics --reference-free` lists what logs are enough for.

    \b
      ragbench score logs.jsonl -m faithfulness -o scores.csv
      ragbench score answers.parquet -m answer_correctness --judge openai:gpt-4o-mini
      ragbench score logs.csv --share 0.01 -t 'faithfulness>=0.8' --json
    """
    from pytest_ragbench.batch import Job, score_file

    limits = _limits(thresholds)
    settings = settings_of(options)
    # A threshold names its metric: with -t alone there is no need for -m.
    names = list(dict.fromkeys([*(metrics or () if limits else metrics or _DEFAULT), *limits]))
    job = Job(
        path=file, output=output or Path(f"{file.stem}.scores.jsonl"), metrics=names, format=format,
        encoding=encoding, delimiter=delimiter, columns=_pairs(columns), keep_going=keep_going,
        share=share, seed=seed, limit=limit,
        thresholds={name: wanted.text for name, wanted in limits.items()},
    )  # fmt: skip
    progress = _Progress()
    with engine_of(settings) as engine:
        try:
            totals = score_file(job, engine, settings, fresh=fresh, progress=progress)
        except KeyboardInterrupt:
            progress.end()
            note(f"interrupted; the rows that are done are in {job.part}: the same command goes on there")
            raise
        except QuestionFileError:
            progress.end()
            # With nothing done yet, there is nothing to go on from.
            if job.part.is_file() and job.part.stat().st_size:
                note(
                    f"the rows before are done, in {job.part}: the same command with --keep-going goes on there"
                )
            raise
        finally:
            progress.end()
    missed = {name: limit for name, limit in limits.items() if _misses(totals, name, limit)}
    result = totals.to_dict() | {
        "output": str(job.output),
        "missed": {name: limit.text for name, limit in missed.items()},
    }
    result |= {"judge": _judge(settings, names)}
    emit(result, lambda: _text(result, totals), as_json=as_json)
    if missed:
        return Exit.QUALITY
    return Exit.UNSCORED if totals.failed else Exit.OK


def _limits(given: tuple[str, ...]) -> dict[str, Threshold]:
    from pytest_ragbench.metrics.registry import find

    limits = {}
    for text in given:
        # Before anything is scored: a limit with a slip would be found after hours.
        match = _LIMIT.fullmatch(text.strip())
        if match is None:
            raise click.UsageError(
                f"--threshold {text!r}: write a metric and its limit, as 'faithfulness>=0.8'"
            )
        limits[match[1]] = parse_threshold(match[2], find(match[1]).scale)
    return limits


# "faithfulness=0.8" means a bare number, but the signs of "==1" belong to the limit.
_LIMIT = re.compile(r"([A-Za-z_][\w@]*)\s*(?:=(?![=]))?\s*(\S.*)")


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for text in given:
        # At the first one only: a name of theirs may hold another.
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise click.UsageError(f"--column {text!r}: write OURS=THEIRS")
        pairs[name.strip()] = value.strip()
    return pairs


def _misses(totals: Totals, name: str, limit: Threshold) -> bool:
    found = totals.by_metric[name]
    # Without any score there is no mean to miss it; the exit code says 8 then.
    return found.n > 0 and not limit.met(found.mean)


def _judge(settings: Settings, names: list[str]) -> str | None:
    from pytest_ragbench.metrics.registry import find

    # Not named where no metric asks it: it had no part in the scores.
    return judge_name(settings) if any(find(name).tasks for name in names) else None


def _text(result: dict[str, Any], totals: Totals) -> str:
    rows = []
    for name, found in totals.by_metric.items():
        bands = ", ".join(f"{band} {count}" for band, count in found.bands.items()) or "-"
        mean = f"{found.mean:.3f}" if found.n else "-"
        ends = f"{found.low:.2f}..{found.high:.2f}" if found.n else "-"
        rows.append([name, mean, ends, f"{found.n} of {totals.rows}", bands, result["missed"].get(name, "")])
    lines = [table(["metric", "mean", "range", "scored", "bands", "missed"], rows)]
    for name, found in totals.by_metric.items():
        lines += [f"{name}: {count} without a score ({code})" for code, count in found.unscored.items()]
    if totals.bad_rows:
        unread = "1 row" if totals.bad_rows == 1 else f"{totals.bad_rows} rows"
        lines.append(f"{unread} can't be read")
    judge = [f"judge {result['judge']}"] if result["judge"] else []
    return "\n".join([*lines, ", ".join([*judge, f"scores in {result['output']}"])])


class _Progress:
    """Rows and speed on stderr: one line that is rewritten on a terminal, a line each half minute elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._started = self._said = time.monotonic()
        self._first: int | None = None
        self._shown = False

    def __call__(self, totals: Totals) -> None:
        if self._first is None:
            # Rows of an interrupted run are there already, and would flatter the speed.
            self._first = totals.rows - 1
        now = time.monotonic()
        # A log of CI keeps every line.
        if now - self._said < (0.2 if self._terminal else 30.0):
            return
        self._said = now
        speed = (totals.rows - self._first) / (now - self._started)
        text = f"{totals.rows:,} rows, {speed:,.0f}/s" + (
            f", {totals.unscored:,} unscored" if totals.unscored else ""
        )
        click.echo(f"\r{text}\x1b[K" if self._terminal else text, err=True, nl=not self._terminal)
        self._shown = True

    def end(self) -> None:
        if self._terminal and self._shown:
            self._shown = False
            click.echo("", err=True)
