"""The digest covers everything in the key, and nothing else."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.engine.keys import digest_of, payload_text
from tests.engine.helpers import Service

BASE = {
    "model": "m1",
    "temperature": 0.0,
    "prompt": "Судите по тексту",
    "question": "質問",
    "answer": "A",
    "contexts": ["c1", "c2"],
    "base_url": "http://a/v1",
}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def digest(key: Any, run: str = "r", **options: Any) -> str:
    return digest_of(Service().ask(key, **options).call, run)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "m2"},
        {"temperature": 0.7},
        {"prompt": "Судите по тексту."},
        {"answer": "A "},
        {"contexts": ["c2", "c1"]},
        {"contexts": ["c1c2"]},
        {"contexts": ["c1", "c2", ""]},
        {"base_url": "http://b/v1"},
        {"temperature": "0.0"},
        {"vote": 1},
        {"answer": None},
    ],
)
def test_whatever_shapes_the_reply_makes_another_digest(change: dict[str, Any]) -> None:
    assert digest(BASE | change) != digest(BASE)


def test_the_order_of_keys_and_the_kind_of_sequence_do_not_matter() -> None:
    assert digest(dict(reversed(BASE.items()))) == digest(BASE | {"contexts": ("c1", "c2")}) == digest(BASE)


@given(json_values, json_values)
def test_digests_are_equal_just_where_the_json_is(left: Any, right: Any) -> None:
    same = json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)
    assert (digest(left) == digest(right)) == same


def test_provider_and_scope_are_part_of_it_and_the_run_only_in_run_scope() -> None:
    assert digest("q", provider="p1") != digest("q", provider="p2")
    assert digest("q", run="a") == digest("q", run="b")
    assert digest("q", run="a", scope="run") != digest("q", run="b", scope="run")


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ({"a": [1, {"b": math.nan}]}, r"'p'\.input\.a\[1\]\.b: nan"),
        ({"a": {1: "x"}}, r"\.input\.a: JSON keys are texts, got 1"),
        ({"a": {"s": {1, 2}}}, r"\.input\.a\.s: set is not JSON"),
        ([b"x"], r"\.input\[0\]: bytes is not JSON"),
    ],
)
def test_what_is_not_json_is_named(key: Any, place: str) -> None:
    with pytest.raises(TypeError, match=place):
        digest(key)


@given(json_values | st.text(st.characters()))  # with lone surrogates
def test_payloads_come_back_as_they_were(payload: Any) -> None:
    text = payload_text(payload, "reply")
    text.encode()
    assert json.loads(text) == payload


def test_a_payload_that_is_not_json_is_named() -> None:
    with pytest.raises(TypeError, match=r"reply\.scores\[1\]: inf is not a finite number"):
        payload_text({"scores": [0.5, math.inf]}, "reply")
