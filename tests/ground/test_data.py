from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pytest_ragbench
from pytest_ragbench import EndpointError, Question, RagSample, Score, UsageError
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.model.samples import Location, sample_from
from pytest_ragbench.model.scores import Finding, Usage, plain


def test_none_and_empty_are_different() -> None:
    assert RagSample("q").contexts is None
    assert RagSample("q", contexts=[]).contexts == ()


def test_relevant_ids_are_grades_by_text_id() -> None:
    assert RagSample("q", relevant_ids=[1, "2"]).relevance == {"1": 1.0, "2": 1.0}  # type: ignore[list-item]
    assert RagSample("q", relevant_ids={"a": 2}).relevance == {"a": 2.0}
    assert RagSample("q").relevance is None


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"contexts": "one long text"}, "contexts must be a list of strings, got str"),
        ({"contexts": ["a", None]}, r"contexts\[1\]"),
        ({"contexts": 3}, "contexts"),
        ({"context_ids": "abc"}, "context_ids must be a list of ids"),
        ({"contexts": ["a"], "context_ids": ["1", "2"]}, "context_ids has 2 entries for 1 contexts"),
        ({"contexts": ["a"], "context_scores": []}, "context_scores has 0 entries"),
        ({"answer": 5}, "answer must be a string"),
        ({"reference": ["r"]}, "reference must be a string"),
        ({"relevant_ids": {"a": "high"}}, r"relevant_ids\['a'\]"),
        ({"relevant_ids": {"a": float("nan")}}, "finite grade"),
    ],
)
def test_a_sample_that_cannot_be_is_refused(columns: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        RagSample("q", **columns)


def test_the_reply_completes_the_question() -> None:
    question = Question(
        id="a",
        question="q",
        reference="r",
        metadata={"k": 1, "m": 2},
        location=Location("q.csv", 3),
        tags=("t",),
    )
    sample = sample_from(question, answer="a", contexts=["c"], metadata={"m": 3}, latency=0.5)
    assert (sample.reference, sample.answer, sample.contexts) == ("r", "a", ("c",))
    assert sample.metadata == {"k": 1, "m": 3}
    assert (str(sample.location), sample.tags, sample.label) == ("q.csv:3", ("t",), "a")
    assert sample.with_(answer="b").answer == "b"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "high", None, [1]])
def test_a_score_is_finite(value: Any) -> None:
    with pytest.raises(UsageError, match="m: a score must be a finite number"):
        Score(metric="m", value=value)


@pytest.mark.parametrize("value", [np.float64(0.25), np.float32(0.25), Decimal("0.25"), 0.25])
def test_a_score_holds_a_plain_float(value: Any) -> None:
    score = Score(metric="m", value=value, evidence=(Finding("c", True),), details={"part": value})
    assert type(score.value) is float
    assert float(score) == 0.25
    told = score.to_dict()
    assert type(told["details"]["part"]) is float
    assert json.loads(json.dumps(told)) == told


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner),
    )
)
def test_plain_values_are_of_exact_builtin_types(value: Any) -> None:
    def check(item: Any) -> None:
        assert type(item) in (type(None), bool, int, float, str, list, dict)
        for inner in item.values() if isinstance(item, dict) else item if isinstance(item, list) else ():
            check(inner)

    check(plain(value))
    assert plain(plain(value)) == plain(value)


def test_usage_adds_up() -> None:
    assert Usage(1, 2, 3) + Usage(1, 1, 1, 0.5) == Usage(2, 3, 4, 0.5)
    assert (Usage(1, 2, 3) + Usage()).tokens == 5


def test_samples_of_a_set_hide_no_failure() -> None:
    questions = [Question(id=str(n), question="q") for n in range(3)]
    found: list[RagSample | EndpointError] = [
        RagSample("q", id="0"),
        EndpointError("down"),
        RagSample("q", id="2"),
    ]
    samples = RagSamples(questions, found)
    assert len(samples) == 3
    assert [sample.id for sample in samples.answered] == ["0", "2"]
    assert list(samples.failed) == ["1"]
    assert samples[0].id == "0"
    assert len(samples[:1]) == 1
    with pytest.raises(EndpointError, match="down"):
        list(samples)
    with pytest.raises(EndpointError, match="down"):
        samples[1]


def test_public_names_have_docstrings_and_are_found() -> None:
    for name in pytest_ragbench.__all__:
        assert getattr(pytest_ragbench, name).__doc__, name
    assert set(pytest_ragbench.__all__) <= set(dir(pytest_ragbench))
    with pytest.raises(AttributeError, match="nothing_here"):
        pytest_ragbench.nothing_here  # noqa: B018
