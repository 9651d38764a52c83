"""Question files and the cells in them."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path
from typing import Any

from pytest_ragbench import Question, load_questions
from pytest_ragbench.questions import test_ids
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op

_FIELDS = {
    "contexts": "contexts",
    "needs_contexts": "contexts",
    "reference": "reference",
    "ground_truth": "reference",
    "answer": "answer",
}


@op("load_questions", "load")
def load_one(given: Input) -> Outcome:
    """Write the bytes to a file of that name and load it."""
    path = write_file(given)
    before = set(Path.cwd().rglob("*"))
    options = {**given.get("options", {})}
    if needs := given.get("needs"):
        options["needs"] = [_FIELDS.get(name, name) for name in needs]
    outcome = observe(lambda: _neutral(load_questions(path, **options)), phrases=_phrases(given))
    made = set(Path.cwd().rglob("*")) - before
    outcome.facts["files_compared"] = True
    if made:
        outcome.problems.append(f"loading made files: {sorted(str(file) for file in made)}")
    return outcome


def write_file(given: Input, folder: Path | None = None) -> Path:
    name = str(given.get("filename", given.get("name", "q.jsonl")))
    path = (folder or Path.cwd()) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if "bytes_b64" in given:
        path.write_bytes(base64.b64decode(given["bytes_b64"]))
    elif "text" in given:
        path.write_bytes(str(given["text"]).encode())
    elif "generate" in given:
        path.write_bytes(generated(given["generate"]).encode())
    return path


def generated(wanted: Input) -> str:
    """``head``, ``rows`` times the text ``row``, and ``tail``; ``{n}`` is the row's number from 1."""
    rows = [str(wanted["row"]).replace("{n}", str(n)) for n in range(1, int(wanted["rows"]) + 1)]
    return (
        str(wanted.get("head", "")) + str(wanted.get("join", "\n")).join(rows) + str(wanted.get("tail", "\n"))
    )


def _phrases(given: Input) -> dict[str, list[str]]:
    return {"line": ["line", f"{given.get('filename')}:"], "header": ["header", "columns found"]}


def _neutral(questions: list[Question]) -> list[dict[str, Any]]:
    ids = test_ids(questions)
    if len(set(ids)) != len(questions):
        raise AssertionError(f"node ids are not unique: {ids}")
    return [_columns(question) for question in questions]


def _columns(question: Question) -> dict[str, Any]:
    """A question under the neutral names of the cases."""
    return {
        "id": question.id,
        "question": question.question,
        "reference": question.reference,
        "answer": question.answer,
        "contexts": _list(question.contexts),
        "reference_contexts": _list(question.reference_contexts),
        "context_ids": _list(question.context_ids),
        "relevant_ids": None if question.relevant_ids is None else dict(question.relevant_ids),
        "reference_ids": None if question.relevant_ids is None else list(question.relevant_ids),
        "tags": list(question.tags),
        "must_pass": question.must_pass,
        "should_abstain": question.should_abstain,
        "thresholds": dict(question.thresholds),
        "session": question.session,
        "cluster": question.cluster,
        "lang": question.lang,
        "metadata": dict(question.metadata),
    }


def _list(texts: tuple[str, ...] | None) -> list[str] | None:
    return None if texts is None else list(texts)


@op("parse_contexts", items="cells", single="cell")
def contexts(given: Input) -> Outcome:
    """One cell that holds contexts, in a CSV file and (what a CSV can't hold: there alone) in a JSONL one."""
    cell = given["cell"]
    by_suffix = {"jsonl": json.dumps({"question": "q", "contexts": cell}, ensure_ascii=False)}
    if isinstance(cell, str):
        table = io.StringIO(newline="")
        csv.writer(table).writerows([("question", "contexts"), ("q", cell)])
        by_suffix = {"csv": table.getvalue(), **by_suffix}
    outcomes = []
    for suffix, text in by_suffix.items():
        path = Path(f"cell.{suffix}")
        path.write_bytes(text.encode())
        outcomes.append(observe(lambda path=path: _list(load_questions(path)[0].contexts) or []))  # type: ignore[misc]
    first, *others = outcomes
    first.problems += [
        f"in a JSONL file it is {other.told()}, in a CSV {first.told()}"
        for other in others
        if (other.kind, other.value) != (first.kind, first.value)
    ]
    return first
