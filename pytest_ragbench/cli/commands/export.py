"""``ragbench export``: a question set for another tool, or in another format."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ragbench.cli.shared import check_replaces, emit, json_option
from pytest_ragbench.questions import load_questions
from pytest_ragbench.questions.writers import TARGETS, write_questions


@click.command()
@click.argument("questions")
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--as", "target", type=click.Choice(TARGETS), default="own", help="Whose names of columns to write."
)
@click.option("--format", "format", metavar="KIND", help="Of QUESTIONS, where its suffix does not say.")
@click.option("--encoding", metavar="NAME", help="Of QUESTIONS, where it is not UTF-8.")
@click.option("--table", metavar="NAME", help="Sheet of a workbook, or table of a database.")
@click.option("--force", is_flag=True, help="Replace OUTPUT.")
@json_option
def command(
    questions: str, output: Path, target: str, format: str | None, encoding: str | None, table: str | None,
    force: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write a question set in another format, or for another tool.

    QUESTIONS is what tests take: a file, a pattern, a directory or a database. The suffix of OUTPUT chooses
    the format: .jsonl, .json, .yaml, .csv, .tsv, .xlsx, .parquet.

    \b
      ragbench export questions.xlsx questions.jsonl
      ragbench export questions.csv golden.json --as deepeval
    """
    # Before the questions are read, which may take a database a while.
    check_replaces(output, force=force)
    found = load_questions(questions, format=format, encoding=encoding, table=table)
    write_questions(found, output, target)
    told = {"questions": len(found), "output": str(output), "as": target}
    emit(told, f"{len(found)} questions written to {output}", as_json=as_json)
