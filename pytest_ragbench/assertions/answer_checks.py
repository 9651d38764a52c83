"""What each expectation looks at in a sample, and what is said where it does not hold."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jmespath

from pytest_ragbench import runtime
from pytest_ragbench.assertions.expression import evaluated
from pytest_ragbench.assertions.schemas import validator
from pytest_ragbench.judge import local
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample, document_id
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import ScoreRequest, prepare, wait_for_scores
from pytest_ragbench.text.identify import EXTRA, is_in_language, is_surely, language_of

if TYPE_CHECKING:
    from pytest_ragbench.assertions.expectations import Similar

OF_THE_QUESTION = "question"
"""In the place of a language's code: that of the question."""


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
        found = jmespath.search(bare(path), data)
        # To Python True == 1, to JSON they are two values.
        if found != value or isinstance(found, bool) != isinstance(value, bool):
            has, should = (json.dumps(each, ensure_ascii=False) for each in (found, value))
            yield f"at {path} the answer has {has}, wanted {should}"


def bare(path: str) -> str:
    """Also takes the beginning that JSONPath has: ``$.price``."""
    return path.removeprefix("$.") if path != "$" else "@"


def _language(sample: RagSample, wanted: str) -> Iterator[str]:
    answer = _answer(sample, "language")
    if not any(map(str.isalpha, answer)):
        return  # "30" is in no language
    code = wanted
    if wanted == OF_THE_QUESTION:
        code = sample.lang or language_of(sample.question)
    whose = ", that of the question" if wanted == OF_THE_QUESTION else ""
    told = code != "und" and (wanted == code or sample.lang is not None or is_surely(sample.question, code))
    if code == "und" or not is_in_language(answer, code):
        if not told:
            raise UsageError(
                f"language of sample {sample.label}: that of the question can't be told; give it a lang, or {EXTRA}"
            )
        found = language_of(answer)
        given = "in a language that can't be told" if found == "und" else f"in {found!r}"
        yield f"the answer is {given}, wanted {code!r}{whose}"


def _json_schema(sample: RagSample, wanted: Any) -> Iterator[str]:
    try:
        data = json.loads(_answer(sample, "json_schema"))
    except ValueError as error:
        yield f"the answer is not JSON: {error}"
        return
    if wanted is True or wanted == {}:  # any JSON: no library is needed to see that
        return
    for wrong in sorted(validator(wanted).iter_errors(data), key=lambda each: each.json_path):
        yield f"the answer's JSON at {wrong.json_path}: {' '.join(wrong.message.split())[:200]}"


def _similar(sample: RagSample, wanted: Similar) -> Iterator[str]:
    _answer(sample, "similar")
    context = runtime.current()
    # A threshold in the question's row for this metric is meant for its reference.
    prepared = [
        prepare(
            context,
            ScoreRequest(metric=wanted.metric, sample=sample.with_(reference=text, thresholds={}),
                         threshold=wanted.threshold, asserted=True),
        )
        for text in wanted.to
    ]  # fmt: skip
    best: tuple[float, str] | None = None
    for text, one, found in zip(wanted.to, prepared, wait_for_scores(context, prepared), strict=True):
        if not isinstance(found, Score):
            raise found
        limit = one.limit
        if limit is None or limit.met(found.value):
            return
        if best is None or found.value > best[0]:
            best = (
                found.value,
                f"{wanted.metric} {limit.shown(found.value)} to {text!r}, wanted {limit.text}",
            )
    if best is not None:
        yield f"the answer is not similar: {best[1]}"


def _max_cost(sample: RagSample, wanted: float) -> Iterator[str]:
    cost = sample.metadata.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, (int, float)):
        raise UsageError(
            f"max_cost for sample {sample.label} needs metadata with a number named cost, in US dollars, which the "
            "reply does not have: map it, as rag.reply.metadata = '{cost: usage.cost}'"
        )
    if cost > wanted:
        yield f"the answer cost ${cost:.6g}, wanted at most ${wanted:.6g}"


def _python(sample: RagSample, wanted: tuple[str, ...]) -> Iterator[str]:
    for text in wanted:
        if not evaluated(text, sample):
            yield f"not true: {text}"


CHECKS: dict[str, Callable[[RagSample, Any], Iterator[str]]] = {
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
    "json_schema": _json_schema,
    "language": _language,
    "similar": _similar,
    "max_cost": _max_cost,
    "python": _python,
}

__all__ = ["CHECKS", "OF_THE_QUESTION", "bare"]
