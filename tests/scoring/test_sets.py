"""Who is left out of a set, and who is missed in it: one rule, whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pytest_ragbench as rb
from pytest_ragbench import runtime
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.runtime import Runtime, using
from pytest_ragbench.settings import Settings
from pytest_ragbench.specs.loading import load_suite
from pytest_ragbench.specs.running import check_samples
from tests.metrics.scripted import Scripted

FOUND = rb.RagSample("a?", context_ids=["a", "b"], relevant_ids=["a"], id="found")
SECOND = rb.RagSample("b?", context_ids=["a", "b"], relevant_ids=["b"], id="second")
NO_IDS = rb.RagSample("c?", context_ids=["a", "b"], id="no ids")
NO_CHUNKS = rb.RagSample("d?", relevant_ids=["a"], id="no chunks")


def failing(*samples: rb.RagSample, errors: int) -> RagSamples:
    questions = [rb.Question(id=f"q{n}", question="?") for n in range(len(samples) + errors)]
    return RagSamples(questions, [*samples, *[rb.EndpointError("it is down", code="timeout")] * errors])


def in_yaml(samples: Any, metric: str, threshold: Any) -> rb.Score:
    path = Path("a.rag.yaml")
    limits = f"[{metric}]" if threshold is None else f"{{{metric}: '{threshold}'}}"
    path.write_text(f"questions: [a?]\nover: {limits}\n", encoding="utf-8")
    [case] = load_suite(path.absolute())
    check_samples(case, samples)
    score = runtime.current().results[-1].score
    assert score is not None
    return score


def scored(samples: Any, metric: str, threshold: Any) -> rb.Score:
    return rb.score_over(samples, metric, coverage=1.0)


Door = Callable[[Any, str, Any], rb.Score]
DOORS: list[Door] = [rb.assert_over, rb.assert_retrieval, in_yaml, scored]


@pytest.fixture(autouse=True)
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Any:
    monkeypatch.chdir(tmp_path)
    settings = Settings(thresholds={"mrr": ">=0.7", "recall@1": ">=0.1"})
    here = runtime.current()
    own = Runtime(settings=lambda: settings, engine=here.engine, judge=here.judge, embedder=here.embedder)
    with using(own):
        yield own


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
class TestEveryDoor:
    def test_questions_without_ids_are_left_out_and_counted(self, door: Door) -> None:
        found = door([FOUND, SECOND, NO_IDS], "mrr", ">=0.5")
        assert found.value == 0.75
        counts = {
            name: found.details[name]
            for name in ("n_scored", "n_unscored", "n_total", "n_without_relevant_ids")
        }
        assert counts == {"n_scored": 2, "n_unscored": 0, "n_total": 2, "n_without_relevant_ids": 1}
        assert found.details["values"] == {"found": 1.0, "second": 0.5}
        assert found.reason == "mean of 2 of 2, 1 left out"

    def test_where_no_question_has_any_the_test_is_wrong(self, door: Door) -> None:
        with pytest.raises(rb.UsageError, match="mrr: no question has relevant_ids; add such a column"):
            door([NO_IDS, NO_IDS], "mrr", ">=0.5")

    def test_a_reply_without_chunks_is_no_bad_retrieval(self, door: Door) -> None:
        with pytest.raises(rb.UsageError, match="mrr for sample no chunks needs context_ids"):
            door([FOUND, NO_CHUNKS, NO_IDS], "mrr", ">=0.5")

    def test_a_failed_request_is_held_against_coverage(self, door: Door) -> None:
        with pytest.raises(rb.EndpointError, match=r"mrr: 2 of 3 have a score, 1 do not \(q2\)") as caught:
            door(failing(FOUND, SECOND, errors=1), "mrr", ">=0.5")
        assert caught.value.code == "coverage"
        with pytest.raises(rb.EndpointError, match="0 of 2 have a score"):
            door(failing(errors=2), "mrr", ">=0.5")


@pytest.mark.parametrize(
    "door", [rb.assert_over, rb.assert_retrieval, in_yaml], ids=lambda door: door.__name__
)
def test_the_threshold_of_the_configuration(door: Door) -> None:
    assert door([FOUND, SECOND], "mrr", None).value == 0.75
    with pytest.raises(rb.QualityFailure, match="mrr 0.50, wanted >=0.7: mean of 1 of 1"):
        door([SECOND], "mrr", None)
    assert door([FOUND, SECOND], "recall@1", None).value == 0.5


def test_no_threshold_anywhere() -> None:
    for door in (rb.assert_over, rb.assert_retrieval):
        with pytest.raises(rb.UsageError, match=r"ndcg was given no threshold.*\[thresholds\]"):
            door([FOUND], "ndcg")


def test_a_question_without_reference_is_left_out_too() -> None:
    with_one = rb.RagSample("q", "30 days", reference="30 days", id="one")
    found = rb.assert_over([with_one, rb.RagSample("q", "It depends.", id="two")], "exact_match", "==1")
    assert (found.value, found.details["n_without_reference"]) == (1.0, 1)
    with pytest.raises(rb.UsageError, match="exact_match: no question has reference"):
        rb.assert_over([rb.RagSample("q", "It depends.")], "exact_match", "==1")


def test_what_is_left_out_of_a_metric_over_a_set() -> None:
    samples = [
        rb.RagSample("q", "30 days it takes", reference="30 days it takes"),
        rb.RagSample("q", "It depends."),
    ]
    found = rb.score_over(samples, "corpus_bleu")
    assert found.value == pytest.approx(100)
    assert found.details["n_without_reference"] == 1


def test_votes_of_a_metric_over_a_set(configured: Runtime) -> None:
    turns = [rb.RagSample(f"q{n}", f"answer {n}", session="s") for n in range(2)]
    judge = Scripted(check_consistency=lambda _: {"verdicts": {"2": {"verdict": True}}})
    settings = Settings(votes=3)
    with using(Runtime(lambda: settings, configured.engine, configured.judge, configured.embedder)):
        found = rb.score_over(turns, "multi_turn_consistency", judge=judge)
    assert (found.value, found.details["votes"], len(judge.asked)) == (1.0, [1.0, 1.0], 2)


def test_a_set_in_which_a_judge_confirms(configured: Runtime) -> None:
    """The threshold of the set tells whose score is a failure that has to be confirmed."""

    def grading(name: str, grade: float) -> Any:
        return callable_judge(Scripted(grade_relevance={"grade": grade, "reason": ""}), name)

    panel = Panel((grading("first", 0.2), grading("second", 0.9)), kind="confirm")
    samples = [rb.RagSample("q", "a", id="one")]
    assert rb.assert_over(samples, "answer_relevancy_holistic", ">=0.8", judge=panel).value == 0.9
    assert rb.score_over(samples, "answer_relevancy_holistic", judge=panel).value == 0.2


def test_samples_without_an_id_and_with_one_text_stay_apart() -> None:
    same = [rb.RagSample("a?", context_ids=["a", "b"], relevant_ids=[name]) for name in ("a", "b", "a")]
    assert rb.score_over(same, "mrr").details["values"] == {"'a?'": 1.0, "'a?' #2": 0.5, "'a?' #3": 1.0}
