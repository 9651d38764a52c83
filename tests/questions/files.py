"""Write a question file and read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import Question
from pytest_ragbench.questions import load_questions


def load(name: str, content: str | bytes, **options: Any) -> list[Question]:
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return load_questions(name, **options)


def refused(name: str, content: str | bytes, **options: Any) -> str:
    with pytest.raises(QuestionFileError) as caught:
        load(name, content, **options)
    return str(caught.value)
