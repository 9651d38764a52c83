"""What an answer must be like, checked without a judge: words, patterns, time, citations, JSON."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pytest_ragbench.assertions.failure import failure_text
from pytest_ragbench.judge import local
from pytest_ragbench.model.errors import QualityFailure, UsageError
from pytest_ragbench.model.samples import RagSample, document_id
from pytest_ragbench.scoring.helper_spec import HelperSpec, helper
from pytest_ragbench.text import is_blank


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
            jmespath.compile(_bare(path))
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
                found += _CHECKS[name](sample, wanted)
        return found


@helper(HelperSpec(name="assert_expected", asserted=False, threshold_from=None))
def assert_expected(sample: RagSample, **wanted: Any) -> None:
    """Assert what needs no judge: ``assert_expected(sample, contains="30 days", max_latency=2)``.

    Parameters
    ----------
    wanted
        Fields of :class:`Expectations`: ``contains``, ``contains_any``, ``not_contains``, ``equals``, ``regex``,
        ``not_regex``, ``max_latency``, ``max_first_token`` (seconds), ``cites``, ``retrieves``, ``abstains``,
        ``json_path``.

    Raises
    ------
    QualityFailure
        Naming everything that does not hold.
    UsageError
        An unknown expectation or value, or a sample without what it looks at.
    """
    __tracebackhide__ = True
    try:
        expectations = Expectations.model_validate(wanted)
    except ValidationError as error:
        raise UsageError(f"assert_expected: {said(error)}") from None
    if problems := expectations.problems(sample):
        raise QualityFailure(failure_text(sample, [], said=problems))


def said(error: ValidationError) -> str:
    """The first thing that is wrong, in one line."""
    first = error.errors()[0]
    name = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return f"unknown expectation {name!r}; known: {', '.join(Expectations.model_fields)}"
    return f"{name}: {first['msg'].removeprefix('Value error, ')}"


def _folded(text: str) -> str:
    # People compare what they see, not code points and line breaks.
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _answer(sample: RagSample, what: str) -> str:
    if sample.answer is None:
        raise UsageError(f"{what} for sample {sample.label} needs an answer, which it does not have")
    return _composed(sample.answer)


def _composed(text: str) -> str:
    # An answer or a pattern typed on macOS may have its accents and Hangul decomposed.
    return unicodedata.normalize("NFC", text)


def _contains(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    answer = _folded(_answer(sample, "contains"))
    yield from (f"the answer does not contain {text!r}" for text in wanted if _folded(text) not in answer)


def _contains_any(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    answer = _folded(_answer(sample, "contains_any"))
    if not any(_folded(text) in answer for text in wanted):
        yield f"the answer contains none of {', '.join(map(repr, wanted))}"


def _not_contains(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    answer = _folded(_answer(sample, "not_contains"))
    yield from (f"the answer contains {text!r}" for text in wanted if _folded(text) in answer)


def _equals(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    answer = _folded(_answer(sample, "equals"))
    if answer not in map(_folded, wanted):
        yield f"the answer is not {' or '.join(map(repr, wanted))}"


def _regex(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    answer = _answer(sample, "regex")
    # As it was written: a pattern says itself whether case counts.
    missed = (text for text in wanted if not re.search(_composed(text), answer))
    yield from (f"nothing in the answer matches {text!r}" for text in missed)


def _not_regex(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    answer = _answer(sample, "not_regex")
    for text in wanted:
        if match := re.search(_composed(text), answer):
            yield f"{match[0]!r} in the answer matches {text!r}"


def _max_latency(sample: RagSample, wanted: float) -> Iterator[str]:
    if sample.latency is None:
        raise UsageError(f"max_latency for sample {sample.label} needs a latency, which was not measured")
    if sample.latency > wanted:
        yield f"the answer took {sample.latency:.2f} s, wanted at most {wanted:g} s{_how_measured(sample)}"


def _max_first_token(sample: RagSample, wanted: float) -> Iterator[str]:
    if sample.first_token is None:
        raise UsageError(
            f"max_first_token for sample {sample.label} needs a streamed answer, and this one came as a whole"
        )
    if sample.first_token > wanted:
        took = f"the answer began after {sample.first_token:.2f} s"
        yield f"{took}, wanted at most {wanted:g} s{_how_measured(sample)}"


def _how_measured(sample: RagSample) -> str:
    """What a reader has to know of a latency."""
    said = [f"one of {sample.at_once} questions at a time"] if (sample.at_once or 1) > 1 else []
    said += ["of a stored answer"] if sample.cached else []
    return f" ({', '.join(said)})" if said else ""


def _ids(sample: RagSample, what: str) -> tuple[str, ...]:
    if sample.context_ids is None:
        raise UsageError(
            f"{what} for sample {sample.label} needs ids of the chunks, which the reply does not have: "
            "map them (rag.reply.context_ids)"
        )
    return tuple(sample.context_ids)


def _cites(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    answer = _answer(sample, "cites")
    ids = _ids(sample, "cites")
    # [1], [1, 3] and 【2】: models cite chunks by rank.
    numbers = {
        int(number)
        for group in re.findall(r"[\[【]([\d\s,;]+)[\]】]", answer)
        for number in re.findall(r"\d+", group)
    }
    for name in map(document_id, wanted):
        ranks = {place for place, id in enumerate(ids, start=1) if id == name}
        # doc-1 must not be found in doc-12.
        named = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", answer)
        if not named and not ranks & numbers:
            where = "" if ranks else ", which was not retrieved"
            yield f"the answer does not cite {name!r}{where}"


def _retrieves(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    ids = _ids(sample, "retrieves")
    missed = (name for name in wanted if document_id(name) not in ids)
    yield from (f"{name!r} is not among the retrieved chunks" for name in missed)


def _abstains(sample: RagSample, wanted: bool) -> Iterator[str]:
    if local.is_abstention(_answer(sample, "abstains")) != wanted:
        yield "the answer does not decline to answer" if wanted else "the answer declines to answer"


def _json_path(sample: RagSample, wanted: Mapping[str, Any]) -> Iterator[str]:
    try:
        data = json.loads(_answer(sample, "json_path"))
    except ValueError as error:
        yield f"the answer is not JSON: {error}"
        return
    for path, value in wanted.items():
        found = jmespath.search(_bare(path), data)
        # To Python True == 1, to JSON they are two values.
        if found != value or isinstance(found, bool) != isinstance(value, bool):
            has, should = (json.dumps(each, ensure_ascii=False) for each in (found, value))
            yield f"at {path} the answer has {has}, wanted {should}"


def _bare(path: str) -> str:
    """Also takes the beginning that JSONPath has: ``$.price``."""
    return path.removeprefix("$.") if path != "$" else "@"


_CHECKS: dict[str, Any] = {
    "contains": _contains,
    "contains_any": _contains_any,
    "not_contains": _not_contains,
    "equals": _equals,
    "regex": _regex,
    "not_regex": _not_regex,
    "max_latency": _max_latency,
    "max_first_token": _max_first_token,
    "cites": _cites,
    "retrieves": _retrieves,
    "abstains": _abstains,
    "json_path": _json_path,
}

__all__ = ["Expectations", "assert_expected"]
