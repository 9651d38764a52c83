"""Who is left out of a set, and who is missed in it: one rule, whoever asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import pytest_ragbench as rb
from pytest_ragbench import runtime
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.model.sample_sets import RagSamples
from pytest_ragbench.runtime import Runtime, using
from pytest_ragbench.scoring.sets import SetRequest, prepare_set
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
        with pytest.raises(rb.UsageError, match="mrr needs context_ids, .*; sample no chunks"):
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


def test_the_field_that_most_questions_lack_is_named() -> None:
    one, *two = rb.RagSample("a?", cluster="x"), *[rb.RagSample(name, reference="r") for name in "bc"]
    for samples in ([one, *two], [*two, one]):
        with pytest.raises(rb.UsageError, match="intra_cluster_similarity: no question has cluster"):
            rb.score_over(samples, "intra_cluster_similarity", text="reference")


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


# --- coverage ----------------------------------------------------------------------------------


@pytest.mark.parametrize("coverage", [True, False, -0.1, 1.01, "0.5", None])
def test_coverage_is_a_share(coverage: Any) -> None:
    with pytest.raises(rb.UsageError, match=r"mrr: coverage must lie in 0\.\.1, got"):
        rb.score_over([FOUND], "mrr", coverage=coverage)


@pytest.mark.parametrize("coverage", [0, 0.0, 1, 1.0])
def test_coverage_may_be_all_or_nothing(coverage: float) -> None:
    assert rb.score_over([FOUND], "mrr", coverage=coverage).value == 1.0


def test_a_share_of_coverage_is_no_matter_of_float_noise() -> None:
    """0.28 of 25 is 7.000000000000001 to Python."""
    seven = [FOUND.with_(id=f"s{n}") for n in range(7)]
    found = rb.score_over(failing(*seven, errors=18), "mrr", coverage=0.28)
    assert (found.details["n_scored"], found.details["n_unscored"]) == (7, 18)
    with pytest.raises(rb.EndpointError, match="6 of 25 have a score, 19 do not"):
        rb.score_over(failing(*seven[:6], errors=19), "mrr", coverage=0.28)


def test_without_any_score_no_coverage_helps() -> None:
    with pytest.raises(rb.EndpointError, match="0 of 2 have a score"):
        rb.score_over(failing(errors=2), "mrr", coverage=0)


@pytest.mark.parametrize(("errors", "named"), [(5, "(q1, q2, q3, q4, q5)"), (6, "(q1, q2, q3, q4, q5 ...)")])
def test_the_first_five_without_a_score_are_named(errors: int, named: str) -> None:
    with pytest.raises(rb.EndpointError, match="it is down") as caught:
        rb.score_over(failing(FOUND, errors=errors), "mrr", coverage=1.0)
    assert named in str(caught.value)


def test_failed_requests_of_a_metric_over_a_set(configured: Runtime) -> None:
    """Held against coverage before the judge is asked, and counted in the score."""
    turns = [rb.RagSample(f"q{n}", f"answer {n}", session="s", id=f"q{n}") for n in range(3)]
    judge = Scripted(
        check_consistency=lambda _: {"verdicts": {"2": {"verdict": True}, "3": {"verdict": True}}}
    )
    samples = failing(*turns, errors=1)
    name = "multi_turn_consistency"
    with pytest.raises(
        rb.EndpointError, match=r"multi_turn_consistency: 3 of 4 have a score, 1 do not \(q3\)"
    ):
        rb.assert_over(samples, name, ">=0.5", judge=judge)
    assert judge.asked == []
    found = rb.assert_over(samples, name, ">=0.5", judge=judge, coverage=0.75)
    assert (found.value, found.details["n_requests_failed"], len(judge.asked)) == (1.0, 1, 1)
    assert "n_requests_failed" not in rb.score_over(turns, name, judge=judge).details
    with pytest.raises(rb.EndpointError, match="0 of 1 have a score"):
        rb.score_over(failing(errors=1), name, judge=judge, coverage=0)


def test_a_judge_that_can_not_do_the_task_of_a_metric_over_a_set() -> None:
    class Splitter:
        name = "splitter"
        tasks = ("split_claims",)

        async def ask(self, task: Any) -> Any:
            raise AssertionError("it was asked")

    turns = [rb.RagSample(f"q{n}", f"answer {n}", session="s") for n in range(2)]
    with pytest.raises(rb.UsageError, match="the judge 'splitter' can't do 'check_consistency'"):
        rb.score_over(turns, "multi_turn_consistency", judge=Splitter())


# --- right refusals ----------------------------------------------------------------------------

DECLINES = rb.RagSample("Who won?", "I don't know.", reference="-", should_abstain=True, id="declines")
INVENTS = rb.RagSample("Who won?", "The blue team won.", reference="-", should_abstain=True, id="invents")
ANSWERS = rb.RagSample("How long?", "30 days.", reference="30 days.", id="answers")


def test_a_right_refusal_is_left_out_and_counted() -> None:
    found = rb.score_over([DECLINES, INVENTS, ANSWERS], "exact_match")
    assert found.details["values"] == {"invents": 0.0, "answers": 1.0}
    assert (found.details["n_right_refusals"], found.details["n_total"]) == (1, 2)
    assert found.reason == "mean of 2 of 2, 1 left out"
    assert "n_right_refusals" not in rb.score_over([ANSWERS], "exact_match").details


def test_a_wrong_refusal_counts() -> None:
    wrong = DECLINES.with_(should_abstain=False, id="wrong")
    assert rb.score_over([wrong, ANSWERS], "exact_match").details["values"] == {"wrong": 0.0, "answers": 1.0}


def test_refusals_alone_are_nothing_to_score() -> None:
    with pytest.raises(
        rb.UsageError, match="exact_match: there is nothing to score, as every answer rightly"
    ):
        rb.score_over([DECLINES], "exact_match")


def test_a_metric_of_refusals_or_of_no_answer_leaves_none_out() -> None:
    assert rb.score_over([DECLINES, INVENTS], "abstention", judge="local").details["values"] == {
        "declines": 1.0,
        "invents": 0.0,
    }
    retrieved = DECLINES.with_(context_ids=["a"], relevant_ids=["a"])
    assert rb.score_over([retrieved], "mrr").details["values"] == {"declines": 1.0}


# --- what the score of a set tells -------------------------------------------------------------


def test_the_worst_ten_are_the_evidence() -> None:
    samples = [FOUND.with_(id=f"s{n}", context_ids=[*"bcdefghijklm"[:n], "a"]) for n in range(12)]
    found = rb.score_over(samples, "mrr")
    assert [each.text for each in found.evidence] == [f"s{n}" for n in range(11, 1, -1)]
    assert found.evidence[0].value == pytest.approx(1 / 12)
    assert found.evidence_title == "worst"
    assert (found.details["min"], found.details["max"]) == (pytest.approx(1 / 12), 1.0)
    assert found.details["direction"] == "higher"


def test_where_lower_is_better_the_highest_are_the_worst() -> None:
    def said(user: str) -> Any:
        return {"verdict": "rude" in user, "reason": "as it is"}

    samples = [rb.RagSample("q", "kind", id="kind"), rb.RagSample("q", "rude", id="rude")]
    found = rb.score_over(
        samples, "aspect", judge=Scripted(check_aspect=said), definition="It insults.", direction="lower"
    )
    assert [(each.text, each.value) for each in found.evidence] == [("rude", 1.0), ("kind", 0.0)]


def test_judges_votes_and_calls_of_a_set_are_those_of_its_samples(configured: Runtime) -> None:
    settings = Settings(votes=3)
    judge = Scripted(grade_relevance={"grade": 0.9, "reason": "fine"})
    judge.ragbench_key = {"model": str(uuid4())}  # type: ignore[attr-defined]  # stored, and not yet
    blank, one, two = (rb.RagSample("q", f"{said} ", id=said) for said in ("", "one", "two"))
    with using(Runtime(lambda: settings, configured.engine, configured.judge, configured.embedder)):
        found = rb.score_over([blank, one], "answer_relevancy_holistic", judge=judge)
        more = rb.score_over([one, two], "answer_relevancy_holistic", judge=judge)
        again = rb.score_over([one, two], "answer_relevancy_holistic", judge=judge)
    assert found.judge is not None
    assert "Scripted" in found.judge
    assert (found.embedder, found.votes, found.usage.calls) == (None, 2, 2)
    assert found.value == pytest.approx(0.45)
    assert [each.cached for each in (found, more, again)] == [False, False, True]
    assert (more.usage.calls, again.usage.calls, again.duration) == (2, 0, 0.0)


def test_disagreements_of_a_panel_are_counted(configured: Runtime) -> None:
    def grading(name: str, grade: float) -> Any:
        return callable_judge(Scripted(grade_relevance={"grade": grade, "reason": ""}), name)

    panel = Panel((grading("strict", 0.2), grading("lenient", 0.9)), aggregate="mean")
    samples = [
        rb.RagSample("q", "a", id="one"),
        rb.RagSample("q", "b", id="two"),
        rb.RagSample("q", "", id="blank"),
    ]
    found = rb.assert_over(samples, "answer_relevancy_holistic", ">=0.3", judge=panel)
    assert found.reason == "mean of 3 of 3, judges disagree on 2"
    assert found.judge == "strict, lenient"


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_question_whose_urls_are_null_is_left_out_by_every_door(door: Door) -> None:
    found = [
        rb.RagSample(name, context_urls=["http://w/1"], relevant_urls=urls, id=name)
        for name, urls in (("a", ["http://w/1"]), ("b", None), ("c", ["http://w/2"]))
    ]
    score = door(found, "url_mrr", ">=0")
    assert (score.value, score.details["n_total"], score.details["n_without_relevant_urls"]) == (0.5, 2, 1)


def over_in_yaml(samples: Any, limit: str) -> rb.Score:
    path = Path("a.rag.yaml")
    path.write_text(f"questions: [a?]\nover: [{limit}]\n", encoding="utf-8")
    [case] = load_suite(path.absolute())
    check_samples(case, samples)
    score = runtime.current().results[-1].score
    assert score is not None
    return score


def test_over_in_yaml_takes_options_and_coverage() -> None:
    graded = rb.RagSample("a?", context_ids=["b", "a"], relevant_ids={"a": 3, "b": 1}, id="graded")
    linear, exponential = (
        over_in_yaml([graded], f"{{metric: ndcg@2, threshold: '>=0', gain: {gain}}}").value
        for gain in ("linear", "exponential")
    )
    assert exponential == rb.score_over([graded], "ndcg@2", gain="exponential").value != linear
    partly = failing(FOUND, errors=1)
    assert over_in_yaml(partly, "{metric: mrr, threshold: 1, coverage: 0.5}").details["n_unscored"] == 1
    with pytest.raises(rb.EndpointError):
        over_in_yaml(partly, "{metric: mrr, threshold: 1}")


def test_a_metric_over_a_set_takes_its_options_from_the_configuration(configured: Runtime) -> None:
    settings = Settings.model_validate({"metrics": {"intra_cluster_similarity": {"text": "reference"}}})
    here = Runtime(
        settings=lambda: settings,
        engine=configured.engine,
        judge=configured.judge,
        embedder=configured.embedder,
    )
    samples = [rb.RagSample(f"{n}?", "same", reference=f"r{n}", cluster="x") for n in range(2)]
    for name, options in (("reference", {}), ("answer", {"text": "answer"})):
        request = SetRequest(metric="intra_cluster_similarity", items=samples, options=options)
        assert prepare_set(here, request).parts[0].options == {"text": name}
