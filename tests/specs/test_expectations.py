from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import QualityFailure, RagSample, UsageError, assert_expected
from pytest_ragbench.text import is_blank

ANSWER = "Вернуть можно в течение ３０ дней [2]. Price: 12 USD."
SAMPLE = RagSample(
    question="Сколько?",
    answer=ANSWER,
    contexts=["a", "b"],
    context_ids=["d1", "d2"],
    latency=1.5,
    first_token=0.4,
)


@pytest.mark.parametrize(
    "wanted",
    [
        {"contains": "вернуть МОЖНО"},
        {"contains": ["30 дней", "price"]},
        {"contains_any": ["31 день", "30 дней"]},
        {"not_contains": "40 дней"},
        {"equals": ["no", ANSWER.upper()]},
        {"regex": r"\d+ USD"},
        {"not_regex": "EUR"},
        {"max_latency": 1.5},
        {"cites": "d2"},
        {"retrieves": ["d1", "d2"]},
        {"abstains": False},
    ],
)
def test_what_holds(wanted: dict[str, Any]) -> None:
    assert_expected(SAMPLE, **wanted)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"contains": ["30 дней", "чек"]}, "does not contain 'чек'"),
        ({"contains_any": ["31", "чек"]}, "contains none of '31', 'чек'"),
        ({"not_contains": "30 ДНЕЙ"}, "contains '30 ДНЕЙ'"),
        ({"equals": "no"}, "is not 'no'"),
        ({"regex": "30"}, "nothing in the answer matches '30'"),
        ({"not_regex": r"\d+ USD"}, "'12 USD' in the answer"),
        ({"max_first_token": 0.3}, "began after 0.40 s, wanted at most 0.3 s"),
        ({"max_latency": 1.4}, "took 1.50 s, wanted at most 1.4 s"),
        ({"cites": "d1"}, "does not cite 'd1'"),
        ({"cites": "d9"}, "which was not retrieved"),
        ({"retrieves": "d9"}, "'d9' is not among"),
        ({"abstains": True}, "does not decline"),
        ({"json_path": {"a": 1}}, "is not JSON"),
    ],
)
def test_what_does_not(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(QualityFailure, match=said):
        assert_expected(SAMPLE, **wanted)


def test_json() -> None:
    sample = SAMPLE.with_(answer='{"items": [{"price": 30, "sold": true}]}')
    assert_expected(
        sample,
        json_path={
            "$.items[0].price": 30,
            "items[0].sold": True,
            "$": {"items": [{"price": 30, "sold": True}]},
        },
    )
    for wanted in ({"items[0].price": "30"}, {"items[0].price": True}, {"items[0].sold": 1}, {"none": 1}):
        with pytest.raises(QualityFailure, match="wanted"):
            assert_expected(sample, json_path=wanted)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"contain": "a"}, "unknown expectation 'contain'"),
        ({"contains": []}, "none of them blank"),
        ({"regex": "("}, "not a regular expression"),
        ({"max_latency": -1}, "greater than 0"),
        ({"json_path": {"a[": 1}}, "not a JMESPath"),
    ],
)
def test_a_wrong_expectation_is_a_usage_error(wanted: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        assert_expected(SAMPLE, **wanted)


@pytest.mark.parametrize("wanted", [{"contains": "a"}, {"cites": "a"}, {"max_latency": 1}])
def test_a_sample_without_what_is_looked_at(wanted: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="needs"):
        assert_expected(RagSample(question="q"), **wanted)


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(QualityFailure) as failure:
        assert_expected(SAMPLE, contains="чек", max_latency=1)
    first = str(failure.value).splitlines()[0]
    assert first == "the answer does not contain 'чек'; the answer took 1.50 s, wanted at most 1 s"


@given(st.text(min_size=1).filter(lambda text: not is_blank(text)), st.text())
def test_contains_and_not_contains_are_opposites(text: str, answer: str) -> None:
    sample = RagSample(question="q", answer=answer)

    def holds(**wanted: Any) -> bool:
        try:
            assert_expected(sample, **wanted)
        except QualityFailure:
            return False
        return True

    assert holds(contains=text) != holds(not_contains=text)
