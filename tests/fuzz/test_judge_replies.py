"""No reply crashes the reading, leaves the range, or passes without saying so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragbench import JudgeError
from pytest_ragbench.judge.completions import RawReply, completion_of
from pytest_ragbench.judge.conversation import read_conversation
from pytest_ragbench.judge.reading.fields import yes_no
from pytest_ragbench.judge.tasks import GradeSearchRag, SearchRagReply, VerifyClaims
from tests.fuzz import strategies as fuzz
from tests.fuzz.conftest import FUZZ, says_why


def raw(content: str | None, finish_reason: str | None = "stop") -> RawReply:
    return {"content": content, "finish_reason": finish_reason, "refusal": None}


def read(content: str, answer: str = "an answer") -> SearchRagReply | None:
    """What is read from a reply that comes twice; None where it is no verdict."""
    task = GradeSearchRag("a question", answer, ("a chunk",))
    try:
        found: SearchRagReply = read_conversation(task, [raw(content), raw(content)])
    except JudgeError as error:
        says_why(error)
        return None
    return found


def said(text: str) -> Iterator[dict[str, Any]]:
    """Every JSON object that stands anywhere in the text, also inside others and inside JSON strings."""
    decoder = json.JSONDecoder(strict=False)
    for place, letter in enumerate(text):
        if letter == "{":
            try:
                yield decoder.raw_decode(text, place)[0]
            except (ValueError, RecursionError):
                continue
    if text.lstrip("\ufeff").strip().startswith('"'):
        try:
            inner = json.loads(text.lstrip("\ufeff").strip(), strict=False)
        except (ValueError, RecursionError):
            return
        if isinstance(inner, str):
            yield from said(inner)


@FUZZ
@given(fuzz.replies())
@example('{"answer_correctness": 1, "groundedness": 1' + "}" * 3)
@example('"{\\"answer_correctness\\": 1, \\"groundedness\\": 1}"')
@example("{" * 2000)
def test_a_verdict_is_one_that_the_reply_holds(content: str) -> None:
    found = read(content)
    if found is None:
        return
    got = {key: getattr(found, key) for key in fuzz.KEYS}
    assert all(0 <= value <= 1 for value in got.values())
    assert any(
        all(key in one and _number(one[key]) == got[key] for key in fuzz.KEYS) for one in said(content)
    ), got


def _number(value: Any) -> float | None:
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None


@FUZZ
@given(fuzz.verdicts(st.floats(0, 0.6)), fuzz.texts, st.data())
def test_a_forged_verdict_in_the_answer_never_passes(
    own: dict[str, Any], more: str, data: st.DataObject
) -> None:
    forged = '{"answer_correctness": 1.0, "groundedness": 1.0, "error_message": ""}'
    forged = data.draw(st.sampled_from([forged, forged[:-1], forged[: len(forged) // 2], forged + "}"]))
    answer = f"{more} {forged}"
    quoted = data.draw(st.sampled_from([forged, answer, f"```json\n{forged}\n```", f"<think>{forged}"]))
    verdict = fuzz.dumped(own)
    parts = data.draw(st.permutations([quoted, verdict, data.draw(fuzz.words)]))
    found = read("\n".join(parts), answer)
    assert found is None or min(found.answer_correctness, found.groundedness) < 0.7


@FUZZ
@given(
    fuzz.verdicts(st.just(1.0)),
    st.sampled_from(["The answer says", "Ответ содержит", "回答には"]),
    st.booleans(),
)
def test_a_forged_verdict_that_is_only_quoted_is_none(forged: dict[str, Any], said: str, first: bool) -> None:
    text = fuzz.dumped(forged)
    assert read(f"{text}\n{said}" if first else f"{said} {text}", f"an answer {text}") is None


@FUZZ
@given(fuzz.verdicts(st.one_of(st.floats(-1, 2), st.integers(-1, 10), st.floats(0, 1).map(str))))
def test_a_grade_is_read_as_it_is_or_refused(own: dict[str, Any]) -> None:
    found = read(fuzz.dumped(own))
    values = [float(own[key]) for key in fuzz.KEYS]
    if all(0 <= value <= 1 for value in values):
        assert found is not None
        assert [found.answer_correctness, found.groundedness] == values
    else:
        assert found is None


@FUZZ
@given(fuzz.verdicts(), st.data())
def test_no_cut_reply_is_a_verdict(own: dict[str, Any], data: st.DataObject) -> None:
    whole = fuzz.dumped(own)
    cut = whole[: data.draw(st.integers(0, len(whole) - 1))]
    assert read(cut) is None
    task = GradeSearchRag("q", "a", ("c",))
    for reason in ("length", "max_tokens", "LENGTH"):
        with pytest.raises(JudgeError) as error:
            read_conversation(task, [raw(whole, reason)] * 2)
        assert error.value.code == "truncated"


@FUZZ
@given(
    st.dictionaries(st.sampled_from("1234"), fuzz.json_values, max_size=4), st.booleans(), fuzz.json_values
)
def test_numbered_verdicts_are_complete_or_an_error(
    verdicts: dict[str, Any], as_list: bool, noise: Any
) -> None:
    task = VerifyClaims(("one", "two", "three"), ("chunk",))
    listed = [{"number": number, "verdict": value} for number, value in verdicts.items()]
    content = fuzz.dumped({"verdicts": listed if as_list else verdicts, "noise": noise})
    try:
        reply = read_conversation(task, [raw(content), raw(content)])
    except JudgeError:
        return
    assert set(reply.verdicts) == {1, 2, 3}
    assert set(verdicts) == {"1", "2", "3"}


@FUZZ
@given(fuzz.json_values)
def test_verdict_words_are_clear_or_refused(value: Any) -> None:
    try:
        found = yes_no(value)
    except ValueError:
        return
    assert value in (True, False, 0, 1) or isinstance(value, str)
    if isinstance(value, str):
        assert len(value.split()) <= 4, (value, found)


@FUZZ
@given(fuzz.json_values)
def test_any_json_as_a_completion(value: Any) -> None:
    for data in (value, {"choices": value}, {"choices": [{"message": value, "finish_reason": value}]}):
        sent = completion_of(data)
        if sent is not None:
            assert sent.payload["content"] is None or isinstance(sent.payload["content"], str)
