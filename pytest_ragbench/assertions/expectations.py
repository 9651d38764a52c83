"""What an answer must be like, checked without a judge: words, patterns, time, citations, JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from pytest_ragbench.assertions.answer_checks import CHECKS, OF_THE_QUESTION, bare
from pytest_ragbench.assertions.expression import compiled
from pytest_ragbench.assertions.failure import failure_text
from pytest_ragbench.assertions.schemas import schema_of, validator
from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.metrics.registry import find
from pytest_ragbench.model.errors import QualityFailure, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.thresholds import parse_threshold
from pytest_ragbench.scoring.helper_spec import HelperSpec, helper
from pytest_ragbench.text import is_blank
from pytest_ragbench.text.identify import checked_code


def as_list(value: Any) -> Any:
    """A single value as a list of one."""
    return value if isinstance(value, (list, tuple)) else [value]


def _not_blank(texts: tuple[str, ...]) -> tuple[str, ...]:
    if not texts or any(map(is_blank, texts)):
        raise ValueError("must be a string, or a list of strings, none of them blank")
    return texts


def _patterns(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"{text!r} is not a regular expression: {error}") from None
    return texts


def _paths(found: dict[str, Any]) -> dict[str, Any]:
    for path in found:
        try:
            # Now, and not when the first answer has been paid for.
            jmespath.compile(bare(path))
        except JMESPathError as error:
            raise ValueError(f"{path!r} is not a JMESPath expression: {str(error).splitlines()[0]}") from None
    return found


Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(as_list, json_schema_input_type=str | list[str]),
    AfterValidator(_not_blank),
]
Patterns = Annotated[Texts, AfterValidator(_patterns)]
JsonPaths = Annotated[dict[str, Any], AfterValidator(_paths)]


def _schema(value: Any, info: ValidationInfo) -> Any:
    file = isinstance(value, (str, Path))
    schema = schema_of(value, (info.context or {}).get("folder")) if file else value
    where = f"{value}: " if file else ""
    if not isinstance(schema, bool) and not isinstance(schema, Mapping):
        raise ValueError(
            f"{where}must be a JSON Schema (a mapping), a file that holds one, or true for any JSON"
        )
    if schema is False:
        raise ValueError(f"{where}false holds for no answer; not_regex and python say what JSON must not be")
    try:
        if schema is not True and schema != {}:
            validator(schema)
    except (UsageError, ValueError) as error:
        raise ValueError(f"{where}{error}") from None
    return schema


def _language(code: str) -> str:
    return code if code == OF_THE_QUESTION else checked_code(code.strip().casefold())


def _expressions(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        compiled(text)
    return texts


Schema = Annotated[Any, PlainValidator(_schema, json_schema_input_type=bool | str | dict[str, Any])]
Language = Annotated[str, AfterValidator(_language)]
Expressions = Annotated[Texts, AfterValidator(_expressions)]


class Similar(BaseModel):
    """What an answer is similar to, by a metric that compares it with a reference and asks no judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    to: Texts = Field(description="Texts; one that the answer is similar to is enough.")
    threshold: str = Field(default=">=0.8", coerce_numbers_to_str=True, description="Of the metric.")
    metric: str = Field(
        default="semantic_similarity", description="Also string_similarity, token_f1, rougeL, bleu ..."
    )

    @model_validator(mode="after")
    def _measurable(self) -> Similar:
        try:
            known = find(self.metric)
            if known.tasks or known.of == "set" or set(known.needs) != {"answer", "reference"}:
                raise UsageError(f"{self.metric} does not compare an answer with a reference without a judge")
            parse_threshold(self.threshold, known.scale)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return self


Similarity = Annotated[
    Similar,
    BeforeValidator(
        lambda value: value if isinstance(value, (Mapping, Similar)) else {"to": value},
        json_schema_input_type=str | list[str] | Similar,
    ),
]


class Expectations(BaseModel):
    """All that is given must hold. Texts are compared without case, width (``３０`` is ``30``) and spacing."""

    # A misspelt expectation that is ignored would be one that always holds.
    model_config = ConfigDict(frozen=True, extra="forbid")

    contains: Texts | None = Field(default=None, description="The answer holds each of these texts.")
    contains_any: Texts | None = Field(
        default=None, description="The answer holds one of these texts at least."
    )
    not_contains: Texts | None = Field(default=None, description="The answer holds none of these texts.")
    equals: Texts | None = Field(default=None, description="The answer is one of these texts.")
    regex: Patterns | None = Field(
        default=None, description="Each pattern is found in the answer, as it was written."
    )
    not_regex: Patterns | None = Field(default=None, description="No pattern is found in the answer.")
    max_latency: float | None = Field(
        default=None, gt=0, le=3600, description="Seconds that the service may take."
    )
    max_first_token: float | None = Field(
        default=None, gt=0, le=3600, description="Seconds until a streamed answer may begin."
    )
    cites: Texts | None = Field(
        default=None,
        description="Ids of chunks that the answer refers to: by the id, or by [n] for the n-th chunk.",
    )
    retrieves: Texts | None = Field(default=None, description="Ids that are among the retrieved chunks.")
    abstains: bool | None = Field(default=None, description="Whether the answer says that it has none.")
    json_path: JsonPaths | None = Field(
        default=None,
        description="JMESPath over the answer, which is JSON, and the value that is found there.",
    )
    json_schema: Schema | None = Field(
        default=None,
        description="The answer is JSON as this JSON Schema, or the one in this file, has it; true: any JSON.",
    )
    language: Language | None = Field(
        default=None,
        description="The answer's language: en, ru, ja ..., or 'question' for that of the question.",
    )
    similar: Similarity | None = Field(
        default=None, description="What the answer is similar to, or {to, threshold, metric}."
    )
    max_cost: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="US dollars that the answer may cost."
    )
    python: Expressions | None = Field(
        default=None,
        description="Expressions of one line that are true: len(answer) < 200. They run as your own code.",
    )

    @model_validator(mode="before")
    @classmethod
    def _other_names(cls, given: Any) -> Any:
        """``contains-any`` is ``contains_any``, and ``contains_all`` is what ``contains`` means."""
        if not isinstance(given, Mapping):
            return given
        found: dict[str, Any] = {}
        for key, value in given.items():
            name = str(key).replace("-", "_")
            name = "contains" if name == "contains_all" else name
            if name in found:
                raise ValueError(f"{name} is given twice; contains and contains_all are one")
            found[name] = value
        return found

    def problems(self, sample: RagSample) -> list[str]:
        """What does not hold, a line each; empty where all does.

        Raises
        ------
        UsageError
            The sample has no answer, ids or latency to look at.
        """
        found: list[str] = []
        for name in type(self).model_fields:
            # All of them, not the first: who mends an answer wants to see everything.
            wanted = getattr(self, name)
            if wanted is not None:
                found += CHECKS[name](sample, wanted)
        return found


def _expectations(wanted: Mapping[str, Any]) -> Expectations:
    try:
        return Expectations.model_validate(wanted)
    except ValidationError as error:
        raise UsageError(f"assert_expected: {said(error)}") from None


@helper(HelperSpec(name="assert_expected", asserted=False, threshold_from=None, check=_expectations))
def assert_expected(sample: RagSample, **wanted: Any) -> None:
    """Assert what needs no judge: ``assert_expected(sample, contains="30 days", max_latency=2)``.

    Parameters
    ----------
    wanted
        Fields of :class:`Expectations`: ``contains``, ``contains_any``, ``not_contains``, ``equals``, ``regex``,
        ``not_regex``, ``max_latency``, ``max_first_token`` (seconds), ``max_cost`` (US dollars), ``cites``,
        ``retrieves``, ``abstains``, ``json_path``, ``json_schema`` (a mapping, or a file, seen from the working
        directory), ``language``, ``similar``, ``python``.

    Raises
    ------
    QualityFailure
        Naming everything that does not hold.
    UsageError
        An unknown expectation or value, or a sample without what it looks at.
    """
    __tracebackhide__ = True
    if problems := _expectations(wanted).problems(sample):
        raise QualityFailure(failure_text(sample, [], said=problems))


def said(error: ValidationError) -> str:
    """The first thing that is wrong, in one line."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return f"unknown expectation {name!r}; {did_you_mean(name, Expectations.model_fields)}"
    name = ".".join(str(part) for part in first["loc"])
    return f"{name}: {first['msg'].removeprefix('Value error, ')}"


__all__ = ["Expectations", "assert_expected"]
