"""One question from columns that a test wrote itself, under any of the names that files may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_ragbench.questions import readers
from pytest_ragbench.questions.loader import _Mapper, _with_ids
from pytest_ragbench.questions.reading import Problems, Row, Source
from pytest_ragbench.samples import Question


def question_from(columns: Mapping[str, Any], *, default_id: str, where: str = "question") -> Question:
    """The question that ``columns`` describe; ``where`` names it in messages.

    Raises
    ------
    QuestionFileError
        A misspelt or missing column, or a value of the wrong kind.
    """
    problems = Problems()
    source = Source(Path(where), where, problems=problems)
    drafts = _Mapper(readers.reader("json"), source, ()).drafts([Row(0, dict(columns))])
    problems.raise_any()
    [question] = _with_ids(drafts, problems)
    own = drafts[0].fields.get("id")
    return replace(question, id=own if own is not None else default_id, location=None)
