"""``ragbench generate``: questions from documents, or other ways to ask those that there are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_ragbench import building
from pytest_ragbench.cli.shared import (
    Exit,
    check_replaces,
    configured,
    emit,
    engine_of,
    json_option,
    note,
    settings_of,
)
from pytest_ragbench.generation.documents import passages
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.questions.writers import write_questions

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.generation.writing import Generated
    from pytest_ragbench.settings import Settings


_KINDS = ("single", "multi", "paraphrased", "unanswerable")


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), required=True,
              help="The question file: .jsonl, .json, .yaml, .csv, .tsv, .xlsx or .parquet.")  # fmt: skip
@click.option(
    "-n", "--count", type=click.IntRange(min=1), default=20, help="How many questions (default 20)."
)
@click.option("--kind", "kinds", type=click.Choice(_KINDS), multiple=True,
              help="Only questions of this kind; may be repeated. Default: all, in turn.")  # fmt: skip
@click.option("--variants", type=click.IntRange(min=1), metavar="N",
              help="SOURCE is a question file: write N other ways to ask each of its questions.")  # fmt: skip
@click.option("--seed", type=int, default=0, help="Another seed, other passages.")
@click.option("--force", is_flag=True, help="Replace the output.")
@configured("judge", "embedder", "store")
@json_option
def command(
    source: Path, output: Path, count: int, kinds: tuple[str, ...], variants: int | None, seed: int, force: bool,
    as_json: bool, **options: Any,
) -> int:  # fmt: skip
    """Write a question set from documents, with the configured LLM.

    SOURCE is a document, or a directory with .md, .txt and .rst files. Questions come with the right answer, the
    passages that hold it and their ids; each is checked by the judge, and duplicates are left out. Review them
    before you rely on them. An interrupted run asks again for nothing that is in the store.

    \b
      ragbench generate docs/ -o questions.jsonl --judge openai:gpt-4o-mini
      ragbench generate docs/ -o hard.xlsx -n 50 --kind multi --kind unanswerable
      ragbench generate questions.jsonl -o variants.jsonl --variants 2
    """
    # Before anything is paid for.
    check_replaces(output, force=force)
    settings = settings_of(options)
    with engine_of(settings) as engine:
        found = _variants(source, variants, engine, settings) if variants else _generated(
            source, count, kinds, seed, engine, settings
        )  # fmt: skip
    if not found.questions:
        # The first failure says more than that there is no question.
        raise found.failed[0] if found.failed else UsageError(f"{source}: no question came of it")
    write_questions(found.questions, output)
    told = {
        "questions": len(found.questions),
        "output": str(output),
        "rejected": [{"question": text, "why": why} for text, why in found.rejected],
        "failed": [str(error) for error in found.failed],
    }
    emit(told, lambda: _text(told), as_json=as_json)
    return Exit.UNSCORED if found.failed else Exit.OK


def _generated(
    source: Path, count: int, kinds: tuple[str, ...], seed: int, engine: Engine, settings: Settings
) -> Generated:
    from pytest_ragbench.generation.writing import generate

    judge = building.judge(None, engine, settings)
    found = passages(source)
    try:
        embedder = building.embedder(None, engine, settings)
    except UsageError as error:
        note(f"duplicates are found by their letters only: {error}")
        embedder = None
    return engine.wait(
        generate(
            found, judge, count=count, kinds=kinds or _KINDS, embedder=embedder, seed=seed,  # type: ignore[arg-type]
            progress=lambda done: note(f"{len(done.questions)} of {count} questions"),
        )
    )  # fmt: skip


def _variants(source: Path, number: int, engine: Engine, settings: Settings) -> Generated:
    from pytest_ragbench.generation.writing import Generated, paraphrases
    from pytest_ragbench.questions import load_questions

    judge = building.judge(None, engine, settings)
    return Generated(engine.wait(paraphrases(load_questions(source), judge, count=number)))


def _text(told: dict[str, Any]) -> str:
    lines = [
        f"{told['questions']} questions written to {told['output']}: review them before you rely on them"
    ]
    lines += [f"left out: {each['question']} ({each['why']})" for each in told["rejected"]]
    lines += [f"no reply: {failure}" for failure in told["failed"]]
    return "\n".join(lines)
