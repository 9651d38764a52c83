"""Question files, tables and databases as lists of ``Question``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.questions.contexts import parse_contexts as parse_contexts
    from pytest_ragbench.questions.ids import test_id as test_id
    from pytest_ragbench.questions.ids import test_ids as test_ids
    from pytest_ragbench.questions.inline import question_from as question_from
    from pytest_ragbench.questions.inline import questions_from as questions_from
    from pytest_ragbench.questions.loader import load_questions as load_questions

__getattr__ = lazily(
    __name__,
    contexts="parse_contexts",
    ids="test_id test_ids",
    inline="question_from questions_from",
    loader="load_questions",
)
