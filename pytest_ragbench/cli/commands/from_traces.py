"""``ragbench from-traces``: regression questions out of traces of a service in use."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_ragbench.clean import counted
from pytest_ragbench.cli.shared import check_replaces, emit, json_option
from pytest_ragbench.questions.writers import write_questions
from pytest_ragbench.traces.reading import questions_from_traces


@click.command()
@click.argument("traces", type=click.Path(path_type=Path, dir_okay=False), nargs=-1, required=True)
@click.argument("output", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--below", type=float, default=0.5, show_default=True, help="A score below it is a bad one.")
@click.option("--all", "every", is_flag=True, help="Take every question, whatever was said of its answer.")
@click.option("--force", is_flag=True, help="Replace OUTPUT.")
@json_option
def command(
    traces: tuple[Path, ...], output: Path, below: float, every: bool, force: bool, as_json: bool
) -> None:
    """Write the questions whose answers had bad feedback or low scores, each once, as a question file.

    TRACES is OTLP-JSON, or an export of Phoenix (spans) or Langfuse (traces, or observations), as JSON or JSON
    lines. Annotations and scores may be files of their own beside it.

    \b
      ragbench from-traces traces.jsonl regressions.jsonl
      ragbench from-traces spans.json annotations.json regressions.jsonl
    """
    check_replaces(output, force=force)
    found = questions_from_traces(*traces, below=below, every=every)
    write_questions(found, output, "own")
    told = {"questions": len(found), "output": str(output)}
    emit(told, f"{counted(len(found), 'question')} written to {output}", as_json=as_json)
