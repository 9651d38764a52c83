"""``ragbench export``: a question set for another tool, or in another format."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from pytest_ragbench.clean import counted
from pytest_ragbench.cli.shared import check_replaces, emit, json_option
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.questions import load_questions
from pytest_ragbench.questions.writers import TARGETS, write_questions
from pytest_ragbench.report.reading import read_report
from pytest_ragbench.traces.phoenix import send_experiment


def _send(report: Path, url: str | None, dataset: str | None, *, as_json: bool) -> None:

    url = url or os.environ.get("PHOENIX_COLLECTOR_ENDPOINT")
    if not url or not url.startswith(("http://", "https://")):
        raise UsageError("give the server's --url, such as http://localhost:6006")
    told = send_experiment(read_report(report), url, dataset=dataset)
    emit(asdict(told), str(told), as_json=as_json)
    if told.problem:
        raise SystemExit(1)


@click.command()
@click.argument("questions")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option(
    "--as", "target", type=click.Choice(TARGETS), default="own", help="Whose names of columns to write."
)
@click.option("--format", "format", metavar="KIND", help="Of QUESTIONS, where its suffix does not say.")
@click.option("--encoding", metavar="NAME", help="Of QUESTIONS, where it is not UTF-8.")
@click.option("--table", metavar="NAME", help="Sheet of a workbook, or table of a database.")
@click.option(
    "--to", "to", type=click.Choice(["phoenix"]), help="Send a JSON report as an experiment, instead."
)
@click.option("--url", metavar="URL", help="Of that server. Default: $PHOENIX_COLLECTOR_ENDPOINT.")
@click.option("--dataset", metavar="NAME", help="Of the experiment. Default: that of the question files.")
@click.option("--force", is_flag=True, help="Replace OUTPUT.")
@json_option
def command(
    questions: str, output: Path | None, to: str | None, url: str | None, dataset: str | None,
    target: str, format: str | None, encoding: str | None, table: str | None,
    force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write a question set in another format, or for another tool.

    QUESTIONS is what tests take: a file, a pattern, a directory or a database. The suffix of OUTPUT chooses
    the format: .jsonl, .json, .yaml, .csv, .tsv, .xlsx, .parquet.

    \b
      ragbench export questions.xlsx questions.jsonl
      ragbench export questions.csv golden.json --as deepeval
      ragbench export run.json --to phoenix --url http://localhost:6006
    """
    if to is not None:
        _send(Path(questions), url, dataset, as_json=as_json)
        return
    if output is None:
        raise UsageError("OUTPUT is missing: the file to write the questions to")
    # Before the questions are read, which may take a database a while.
    check_replaces(output, force=force)
    found = load_questions(questions, format=format, encoding=encoding, table=table)
    write_questions(found, output, target)
    told = {"questions": len(found), "output": str(output), "as": target}
    emit(told, f"{counted(len(found), 'question')} written to {output}", as_json=as_json)
