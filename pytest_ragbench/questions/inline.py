"""Questions that a program has in memory, under any of the names that columns of files may have."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import Question
from pytest_ragbench.questions.mapping import RowMapper, questions_from_rows
from pytest_ragbench.questions.rows import Problems, Row, Source


def question_from(columns: Mapping[str, Any], *, default_id: str, where: str = "question") -> Question:
    """The question that ``columns`` describe; messages call it ``where``.

    Raises
    ------
    QuestionFileError
        A misspelt or missing column, or a value of the wrong kind.
    """
    problems = Problems()
    source = Source(Path(where), where, problems=problems)
    drafts = RowMapper(source).drafts([Row(0, dict(columns))])
    problems.raise_any()
    [draft] = drafts
    return replace(draft.question(draft.id or default_id), location=None)


def questions_from(value: Any, *, where: str = "questions") -> list[Question]:
    """The questions in a list, a table or a dataset.

    Parameters
    ----------
    value
        A list (or any iterable) of strings, mappings of columns and Questions; a pandas or polars data frame; a
        Hugging Face dataset; the rows of a RAGAS or LangSmith dataset. Names of columns as in question files.
    where
        What messages call it; rows are counted from 1.

    Raises
    ------
    QuestionFileError
        As :func:`~pytest_ragbench.load_questions`.
    """
    problems = Problems()
    source = Source(Path(where), where, problems=problems)
    rows = [
        item if isinstance(item, Question) else Row(number, record_cells(item, number, source))
        for number, item in enumerate(_items(value, where), start=1)
    ]
    # Ready-made questions keep their place among those that are mapped.
    mapped = [row for row in rows if isinstance(row, Row)]
    questions = iter(questions_from_rows(mapped, source))
    problems.raise_any()
    found = [item if isinstance(item, Question) else next(questions) for item in rows]
    if not found:
        raise QuestionFileError(f"{where}: no questions")
    return found


def _items(value: Any, where: str) -> Iterable[Any]:
    """The rows of any library's table, without importing the library."""
    # By method names, so that no library has to be imported to find out whose table it is.
    for method, arguments in (("to_dicts", {}), ("to_dict", {"orient": "records"}), ("to_pylist", {})):
        if callable(getattr(value, method, None)) and not isinstance(
            value, Mapping
        ):  # polars, pandas, pyarrow
            try:
                return list(getattr(value, method)(**arguments))
            except TypeError:
                continue
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        hint = "; choose a split of it, as dataset['test']" if isinstance(value, Mapping) else ""
        raise QuestionFileError(
            f"{where}: wanted a list of questions or a table, got {type(value).__name__}{hint}"
        )
    return value


def record_cells(item: Any, number: int, source: Source) -> dict[str, Any]:
    """The columns of a string (a question) or a mapping, in plain data; anything else is reported."""
    if isinstance(item, str):
        return {"question": item}
    if not isinstance(item, Mapping):
        source.report(number, f"wanted a string or a mapping of columns, got {type(item).__name__}")
        return {"question": "-"}
    return {str(name): _plain(cell) for name, cell in item.items()}


def _plain(cell: Any) -> Any:
    """A cell in plain data; NaN, NA and NaT are how tables write a missing value."""
    if hasattr(cell, "tolist"):  # numpy
        cell = cell.tolist()
    if isinstance(cell, float) and math.isnan(cell):
        return None
    if type(cell).__name__ in ("NAType", "NaTType"):
        return None
    return [_plain(part) for part in cell] if isinstance(cell, (list, tuple)) else cell
