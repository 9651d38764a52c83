"""What a ``*.rag.yaml`` file may hold. The JSON Schema for editors is made from these classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from pytest_ragbench.assertions.expectations import Expectations, as_list
from pytest_ragbench.questions.columns import FIELDS
from pytest_ragbench.specs.limits import Limit, limits

_TEXT = {"type": "string"}
_NUMBER_OR_TEXT = {"anyOf": [_TEXT, {"type": "number"}, {"type": "null"}]}
_WITH_OPTIONS = {
    "type": "object",
    "properties": {"metric": _TEXT, "threshold": _NUMBER_OR_TEXT},
    "additionalProperties": True,
}
_LIMIT = {"anyOf": [*_NUMBER_OR_TEXT["anyOf"], _WITH_OPTIONS]}


def _parts(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Names = Annotated[tuple[str, ...], BeforeValidator(as_list, json_schema_input_type=str | list[str])]
Limits = Annotated[
    tuple[Limit, ...],
    PlainValidator(limits),
    PlainSerializer(list, return_type=list[Any]),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "object", "additionalProperties": _LIMIT},
                {"type": "array", "items": {"anyOf": [_TEXT, _WITH_OPTIONS]}},
            ]
        }
    ),
]
Expected = Annotated[
    tuple[Expectations, ...],
    BeforeValidator(_parts, json_schema_input_type=Expectations | list[Expectations]),
]
Retriever = Annotated[
    Any, WithJsonSchema({"anyOf": [_TEXT, {"type": "object", "additionalProperties": True}]})
]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class QuestionsFile(_Part):
    """A question file, and how to read it."""

    file: str = Field(
        description="A file, a pattern or a directory, seen from this file; or a database, as sqlite:///support.db."
    )
    table: str | None = Field(
        default=None, description="The table of a database, or the sheet of a workbook."
    )
    query: str | None = Field(default=None, description="A query of a database: SELECT ...")
    tags: Names = Field(default=(), description="Only questions with one of these tags.")
    encoding: str | None = None
    delimiter: str | None = None
    format: str | None = None
    columns: dict[str, str] = Field(default={}, description="Our name of a column -> the file's.")


def _with_columns(schema: dict[str, Any]) -> None:
    schema["properties"] |= {name: {} for name in FIELDS if name not in schema["properties"]}


class QuestionRow(BaseModel):
    """The columns of a question file, and what is expected of the answer."""

    # For editors only: rows are mapped by the question reader, as those of files are.
    model_config = ConfigDict(json_schema_extra=_with_columns)

    question: str
    thresholds: Limits = ()
    expect: Expected = ()


Questions = Annotated[
    Any,
    PlainValidator(lambda value: value, json_schema_input_type=str | QuestionsFile | list[str | QuestionRow]),
]


class _Common(_Part):
    """What a test has, and what ``defaults`` may say for all tests of the file."""

    thresholds: Limits = Field(
        default=(), description="Metric -> threshold (and options) for each answer; a question's own wins."
    )
    over: Limits = Field(
        default=(), description="Metric -> threshold (and options) for the mean over all questions."
    )
    expect: Expected = Field(default=(), description="What each answer must be like; no judge is asked.")
    retriever: Retriever = Field(
        default=None, description="A URL, 'module:object', a name from retrievers, or the keys of [rag]."
    )
    retrievers: Names = Field(
        default=(), description="Run the test with each of these, from the file's retrievers."
    )
    judge: str | None = Field(
        default=None, description="'local', 'openai:MODEL', 'PROVIDER:MODEL', or a name from judges."
    )
    judges: Names = Field(default=(), description="Run the test with each of these, from the file's judges.")
    tags: Names = Field(default=(), description="Marks of the tests, for pytest -m.")
    fixtures: Names = Field(default=(), description="Fixtures to set up before each test.")
    skip: str | None = Field(default=None, description="Why the test is not run.")
    xfail: str | None = Field(default=None, description="Why the test is known to fail.")


class Test(_Common):
    """A test: it becomes one pytest test for each question, and one for ``over``."""

    __test__ = False  # pytest would take the class for a test

    name: str | None = None
    questions: Questions = Field(
        default=None,
        description="A question file, or questions: texts, or columns as in a question file and 'expect'.",
    )


class Suite(Test):
    """A ``*.rag.yaml`` file: one test, or ``tests`` with ``defaults``."""

    defaults: _Common = Field(
        default=_Common(), description="For all tests; what a test says itself is added or wins."
    )
    retrievers: dict[str, Retriever] = Field(  # type: ignore[assignment]
        {}, description="Name -> retriever. Every test runs with each, unless it says otherwise."
    )
    judges: dict[str, str] = Field(  # type: ignore[assignment]
        {}, description="Name -> judge. Every test runs with each, unless it says otherwise."
    )
    tests: tuple[Test, ...] | None = None

    def cases(self, stem: str) -> Sequence[Test]:
        """The tests, defaults applied, each with a name."""
        own = {
            name: getattr(self, name)
            for name in self.model_fields_set & set(Test.model_fields)
            if name not in ("retrievers", "judges")
        }
        # Not validated again: these are the fields of a valid suite.
        tests = (Test.model_construct(set(own), **own),) if self.tests is None else self.tests
        found = []
        for number, test in enumerate(tests, start=1):
            name = test.name or (stem if self.tests is None else f"{stem}-{number}")
            case = _with_defaults(test, self.defaults, name)
            # The file's retrievers and judges are for tests that choose none.
            everywhere = {} if case.retriever or case.retrievers else {"retrievers": tuple(self.retrievers)}
            everywhere |= {} if case.judge or case.judges else {"judges": tuple(self.judges)}
            found.append(case.model_copy(update=everywhere))
        return found


def _with_defaults(test: Test, defaults: _Common, name: str) -> Test:
    given = test.model_fields_set
    merged: dict[str, Any] = {"name": name}
    for field in _Common.model_fields:
        own, other = getattr(test, field), getattr(defaults, field)
        # What is asserted adds up, as a test asks for more than the defaults; anything else is replaced.
        if field in ("thresholds", "over"):
            theirs = {limit.key: replace(limit, in_defaults=True) for limit in other}
            merged[field] = tuple({**theirs, **{limit.key: limit for limit in own}}.values())
        elif field in ("expect", "tags", "fixtures"):
            merged[field] = (*other, *(part for part in own if part not in other))
        else:
            merged[field] = own if field in given and own not in ((), None) else other
    # Naming one retriever replaces the default list of several, and the other way round.
    for one, many in (("retriever", "retrievers"), ("judge", "judges")):
        if one in given and many not in given:
            merged[many] = ()
        elif many in given and getattr(test, many) and one not in given:
            merged[one] = None
    return test.model_copy(update=merged)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a ``*.rag.yaml`` file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Suite.model_json_schema(mode="validation"),
        "title": "pytest-ragbench tests (*.rag.yaml)",
    }
