"""Question sets in the formats that other tools read."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import Question
from pytest_ragbench.model.scores import plain
from pytest_ragbench.questions.columns import FIELDS

_RAGAS = {
    "question": "user_input",
    "answer": "response",
    "reference": "reference",
    "contexts": "retrieved_contexts",
    "reference_contexts": "reference_contexts",
    "context_ids": "retrieved_context_ids",
    "relevant_ids": "reference_context_ids",
}
_DEEPEVAL = {
    "question": "input",
    "answer": "actual_output",
    "reference": "expected_output",
    "contexts": "retrieval_context",
    "reference_contexts": "context",
}


def columns_of(question: Question) -> dict[str, Any]:
    """The given fields of a question by our names, in plain data. Relevant ids that all have grade 1 are a list."""
    found: dict[str, Any] = {}
    for name in FIELDS:
        value = getattr(question, name)
        # False and empty are the defaults; leaving them out keeps files short and re-readable.
        if value is None or value is False or (name in ("tags", "thresholds") and not value):
            continue
        if name == "relevant_ids" and set(value.values()) <= {1.0}:
            value = list(value)
        found[name] = plain(value)
    return found | ({"metadata": plain(question.metadata)} if question.metadata else {})


Fields = dict[str, Any]


def _ours(found: Fields, metadata: Fields) -> Fields:
    return {**found, **metadata}


def _renamed(names: Mapping[str, str], extra: str) -> Callable[[Fields, Fields], Fields]:
    """A row with the columns ``names`` gives our fields; all other fields go into the column ``extra``."""

    def row(found: Fields, metadata: Fields) -> Fields:
        named = {theirs: found.pop(ours) for ours, theirs in names.items() if ours in found}
        rest = {**found, **metadata}
        return {**named, **({extra: rest} if rest else {})}

    return row


def _langsmith(found: Fields, metadata: Fields) -> Fields:
    inputs = {"question": found.pop("question")}
    outputs = {"answer": found.pop("reference")} if "reference" in found else {}
    rest = {**found, **metadata}
    return {"inputs": inputs, "outputs": outputs, **({"metadata": rest} if rest else {})}


def _promptfoo(found: Fields, metadata: Fields) -> Fields:
    case: Fields = {"description": found.pop("id"), "vars": found}
    if any(isinstance(value, list) for value in found.values()):
        case["options"] = {"disableVarExpansion": True}  # or promptfoo makes a test of each item of a list
    return {**case, **({"metadata": metadata} if metadata else {})}


def _row(question: Question, target: str) -> Fields:
    found = columns_of(question)
    metadata = found.pop("metadata", {})
    return _ROWS[target](found, metadata)


_ROWS: dict[str, Callable[[Fields, Fields], Fields]] = {
    "own": _ours,
    "ragas": _renamed(_RAGAS, "metadata"),
    "deepeval": _renamed(_DEEPEVAL, "additional_metadata"),
    "langsmith": _langsmith,
    "promptfoo": _promptfoo,
}

TARGETS = tuple(_ROWS)
"""The tools whose column names a file may have."""
_FILES = {
    "own": ("jsonl", "json", "yaml", "csv", "tsv", "xlsx", "parquet"),
    "ragas": ("jsonl", "json", "csv", "parquet"),
    "deepeval": ("json", "jsonl", "csv"),
    "langsmith": ("jsonl", "json"),
    "promptfoo": ("yaml", "json", "jsonl"),
}


def write_questions(questions: Sequence[Question], path: Path, target: str = "own") -> None:
    """Write questions for this package, RAGAS, DeepEval, LangSmith or promptfoo; the suffix is the format.

    Parameters
    ----------
    path
        The file; replaced where it exists.
    target
        One of :data:`TARGETS`.

    Raises
    ------
    UsageError
        An unknown target, a format that it doesn't read, a missing library, or a file that can't be written.
    """
    if target not in _ROWS:
        raise UsageError(f"unknown target {target!r}; there are {', '.join(TARGETS)}")
    kind = {"yml": "yaml", "ndjson": "jsonl"}.get(path.suffix.lower()[1:], path.suffix.lower()[1:])
    if kind not in _FILES[target]:
        raise UsageError(f"{path}: {target} is written as {', '.join(f'.{kind}' for kind in _FILES[target])}")
    rows = [_row(question, target) for question in questions]
    if (target, kind) == ("deepeval", "csv"):
        rows = [_joined(row, path) for row in rows]
    try:
        path.write_bytes(_WRITE[kind](rows))
    except OSError as error:
        raise UsageError(f"{path}: can't be written: {error.strerror}") from None
    except ImportError as error:
        extra = {"openpyxl": "excel", "pyarrow": "parquet"}.get(str(error.name).partition(".")[0], "")
        raise UsageError(f"{path}: needs {error.name}: pip install 'pytest-ragbench[{extra}]'") from None


def _joined(row: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Contexts as in DeepEval's CSV: joined by ``|``, with the two columns by which DeepEval's files are recognised."""
    found = {**row, "tools_called": None, "source_file": None}
    for name in ("retrieval_context", "context"):
        texts = found.get(name)
        if texts is None:
            continue
        if any("|" in text for text in texts):
            raise UsageError(
                f"{path}: a context of {found['input'][:40]!r} holds '|', which separates contexts in DeepEval's CSV; "
                "write .json or .jsonl"
            )
        found[name] = "|".join(texts)
    return found


def _lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _json(rows: Sequence[Mapping[str, Any]]) -> bytes:
    return (json.dumps(list(rows), ensure_ascii=False, indent=2) + "\n").encode()


def _yaml(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import yaml

    text: str = yaml.safe_dump(list(rows), allow_unicode=True, sort_keys=False, width=110)
    return text.encode()


def _table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Header and cells. Lists and objects are JSON; an empty answer looks like a missing one."""
    header = list(dict.fromkeys(name for row in rows for name in row))
    return header, [[_text(row.get(name)) for name in header] for row in rows]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _delimited(delimiter: str) -> Callable[[Sequence[Mapping[str, Any]]], bytes]:
    def write(rows: Sequence[Mapping[str, Any]]) -> bytes:
        header, cells = _table(rows)
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter).writerows([header, *cells])
        return file.getvalue().encode("utf-8-sig")  # without the mark, Excel reads another encoding

    return write


def _xlsx(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import openpyxl

    header, cells = _table(rows)
    # Cells are written one by one: append() would turn "=1+1" into a formula.
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "questions"
    for number, row in enumerate([header, *cells], start=1):
        for column, text in enumerate(row, start=1):
            cell = sheet.cell(number, column)
            cell.value = text or None
            if text:
                cell.data_type = "s"  # never a formula
    file = io.BytesIO()
    book.save(file)
    return file.getvalue()


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # Parquet wants one type in a column, and objects differ from row to row.
    plain_rows = [
        {name: _text(cell) if isinstance(cell, Mapping) else cell for name, cell in row.items()}
        for row in rows
    ]
    header = list(dict.fromkeys(name for row in plain_rows for name in row))
    columns = {}
    for name in header:
        cells = [row.get(name) for row in plain_rows]
        mixed = len({type(cell) for cell in cells if cell is not None}) > 1
        columns[name] = [_text(cell) or None for cell in cells] if mixed else cells
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file)
    return file.getvalue()


_WRITE: dict[str, Callable[[Sequence[Mapping[str, Any]]], bytes]] = {
    "jsonl": _lines,
    "json": _json,
    "yaml": _yaml,
    "csv": _delimited(","),
    "tsv": _delimited("\t"),
    "xlsx": _xlsx,
    "parquet": _parquet,
}
