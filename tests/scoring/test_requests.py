"""What a request becomes once it has passed its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.metrics.registry import find
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import Location, RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import Context, ScoreRequest, prepare, wait_for_scores
from pytest_ragbench.scoring.configured import configured_options
from pytest_ragbench.scoring.requests import MetricSetup, Prepared, check_judge, shortcut
from pytest_ragbench.settings import Settings
from tests.metrics.scripted import Scripted, claims, verdicts
from tests.scoring.asking import context

JUDGE = callable_judge(Scripted(split_claims=claims("30 days."), verify_claims=verdicts(1)), "grader")
OTHER = callable_judge(Scripted(), "other")
SAMPLE = RagSample("How long?", "30 days.", ["30 days."], reference="30 days.", id="q1")


def prepared(name: str = "faithfulness", sample: RagSample = SAMPLE, **more: Any) -> Prepared:
    settings = more.pop("settings", None)
    judge = more.pop("judged_by", JUDGE)
    return prepare(context(judge, settings=settings), ScoreRequest(metric=name, sample=sample, **more))


def limit(**more: Any) -> str | None:
    found = prepared(**more).limit
    return None if found is None else found.text


# --- thresholds --------------------------------------------------------------------------------


def test_the_questions_threshold_wins_over_the_calls_and_that_over_the_configurations() -> None:
    configured = Settings(thresholds={"faithfulness": ">=0.6"})
    own = SAMPLE.with_(thresholds={"faithfulness": ">=0.9", "bleu": 3})
    assert limit(settings=configured, threshold=">=0.7", sample=own) == ">=0.9"
    assert limit(settings=configured, threshold=">=0.7") == ">=0.7"
    assert limit(settings=configured) == ">=0.6"
    assert limit() is None
    assert limit(name="aspect", options={"definition": "It is polite."}) == "==1"


def test_what_is_asserted_needs_a_threshold() -> None:
    with pytest.raises(
        UsageError, match=r"was given no threshold: write assert_faithfulness\(sample, '>=0.8'\)"
    ):
        prepared(asserted=True)
    assert prepared(asserted=True, threshold=0.5).asserted


def test_an_unreadable_threshold_of_a_question_names_its_place() -> None:
    wrong = SAMPLE.with_(thresholds={"faithfulness": "<=0.5"})
    with pytest.raises(UsageError, match="^question q1: "):
        prepared(sample=wrong)
    with pytest.raises(UsageError, match="^q.csv:2: question q1: "):
        prepared(sample=replace(wrong, location=Location("q.csv", 2)))


@pytest.mark.parametrize(
    ("grades", "own", "expected"),
    [
        ({"threshold": 0.5, "groundedness": None}, {}, {"groundedness": ">=0.5"}),
        ({"threshold": 0.5, "groundedness": 0.9}, {}, {"groundedness": ">=0.9"}),
        (
            {"threshold": 0.5, "groundedness": 0.9},
            {"search_rag_groundedness": 0.2},
            {"groundedness": ">=0.2"},
        ),
        ({"groundedness": None, "answer_correctness": 0.4}, {}, {"answer_correctness": ">=0.4"}),
        ({"threshold": 0.5}, {}, {}),
    ],
)
def test_thresholds_of_grades(
    grades: Mapping[str, Any], own: Mapping[str, Any], expected: Mapping[str, str]
) -> None:
    found = prepared("search_rag", SAMPLE.with_(thresholds=own), grades=grades).part_limits
    assert {name: each.text for name, each in found.items()} == expected


# --- votes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gates", "must_pass", "configured", "votes"),
    [
        ({"must_pass": ""}, True, 1, 3),
        ({"must_pass": ""}, True, 5, 5),
        ({"must_pass": ""}, False, 1, 1),
        ({"must_pass[smoke]": ""}, True, 1, 3),
        ({"faithfulness": ">= 0.8"}, True, 1, 1),
        ({}, True, 2, 2),
    ],
)
def test_a_question_that_a_gate_hangs_on_has_three_votes(
    gates: dict[str, str], must_pass: bool, configured: int, votes: int
) -> None:
    settings = Settings(votes=configured).model_copy(update={"gates": gates})
    sample = SAMPLE.with_(must_pass=must_pass)
    assert prepared(sample=sample, settings=settings).votes == votes
    assert prepared(sample=sample, settings=settings, votes=7).votes == 7


# --- requests that come to one score -----------------------------------------------------------


def test_requests_that_come_to_the_same_score_are_alike() -> None:
    assert prepared().is_like(prepared())
    assert prepared(threshold=0.5, asserted=True).is_like(prepared(threshold=0.9))
    assert prepared(sample=replace(SAMPLE)).is_like(prepared())
    assert not prepared().is_like(prepared("hallucination"))
    others: list[dict[str, Any]] = [
        {"judged_by": OTHER}, {"votes": 3}, {"repeat": 1}, {"fresh": True}, {"options": {"on_no_claims": 1}},
        {"sample": SAMPLE.with_(answer="40 days.")}, {"watch": lambda tools: None},
    ]  # fmt: skip
    for other in others:
        assert not prepared().is_like(prepared(**other)), other
        assert not prepared(**other).is_like(prepared()), other


def test_where_a_threshold_has_a_say_in_the_score_it_has_to_be_the_same() -> None:
    """Votes and judges of a panel are counted by the side of the threshold that they are on."""
    panel = Panel((JUDGE, OTHER))
    for how in ({"votes": 3}, {"judged_by": panel}):
        assert prepared(threshold=0.5, **how).is_like(prepared(threshold=0.5, **how))
        assert not prepared(threshold=0.5, **how).is_like(prepared(threshold=0.6, **how))


def test_a_score_from_ahead_is_taken_as_it_is() -> None:
    """Without a trip to the engine; only what was not computed ahead of the test is waited for."""
    served: list[str] = []
    ahead = Score(metric="faithfulness", value=0.25)
    one, two = prepared(), prepared(sample=SAMPLE.with_(id="q2"))

    class Engine:
        def wait(self, coroutine: Any, meanwhile: Any) -> Any:
            coroutine.close()
            served.append("waited")
            return [Score(metric="faithfulness", value=0.75)]

    known = Context(
        settings=Settings, engine=Engine, judge=lambda: JUDGE, embedder=lambda: JUDGE,  # type: ignore[arg-type, return-value]
        prefetched=lambda each: ahead if each is one else None, served=lambda: served.append("served"),
    )  # fmt: skip
    assert wait_for_scores(known, [one]) == [ahead]
    assert served == ["served"]
    found = wait_for_scores(known, [two, one])
    assert [each.value for each in found if isinstance(each, Score)] == [0.75, 0.25]
    assert served == ["served", "waited"]


def test_the_same_measurement_of_another_sample() -> None:
    original = prepared(threshold=0.5, votes=3)
    other = SAMPLE.with_(answer="40 days.")
    again = original.for_sample(other, None)
    assert (again.given, again.limit, again.votes, again.judge) == (other, None, 3, JUDGE)
    with pytest.raises(UsageError, match="faithfulness needs contexts, .*; sample q1"):
        original.for_sample(SAMPLE.with_(contexts=None), None)


# --- judges ------------------------------------------------------------------------------------


class Able:
    name = "able"
    probabilities = True

    def __init__(self, *tasks: str) -> None:
        self.tasks = tasks or None


def test_a_judge_that_can_not_do_a_task_is_refused() -> None:
    metric = find("answer_relevancy")  # "write_questions|grade_relevance": either will do
    for able in (Able(), Able("write_questions"), Able("grade_relevance", "split_claims")):
        check_judge(metric, able)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="answer_relevancy: the judge 'able' can't do 'write_questions'"):
        check_judge(metric, Able("split_claims"))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="can't do 'verify_claims'"):
        check_judge(find("faithfulness"), Able("split_claims"))  # type: ignore[arg-type]


def test_judge_and_embedder_of_a_file_are_built_once() -> None:
    built: list[str] = []

    def build(name: str, made: Any) -> Any:
        built.append(name)
        return made

    vectors: Any = Able()
    known = Context(
        settings=Settings, engine=lambda: vectors,
        judge=lambda: build("judge", JUDGE), embedder=lambda: build("embedder", vectors),
    )  # fmt: skip
    setup = MetricSetup(known, ScoreRequest(metric="answer_relevancy", sample=RagSample("")))
    assert setup.prepare(SAMPLE.with_(answer=" ")).judge is None
    assert built == []
    assert (setup.judge_for(), setup.embedder_for()) == (JUDGE, vectors)
    for _ in range(2):
        found = setup.prepare(SAMPLE)
        assert (found.judge, found.embedder) == (JUDGE, vectors)
    assert built == ["judge", "embedder"]


def test_what_is_scored_without_a_call_needs_no_judge() -> None:
    none = context()
    for sample in (SAMPLE.with_(answer="\u200b"), SAMPLE.with_(answer="")):
        found = prepare(none, ScoreRequest(metric="answer_relevancy", sample=sample))
        assert (found.judge, found.embedder) == (None, None)
    assert (
        prepare(none, ScoreRequest(metric="context_recall", sample=SAMPLE.with_(contexts=[]))).judge is None
    )
    with pytest.raises(UsageError, match="not given to this test"):
        prepare(none, ScoreRequest(metric="faithfulness", sample=SAMPLE))


@pytest.mark.parametrize(
    ("name", "sample", "expected"),
    [
        ("faithfulness", SAMPLE, None),
        ("faithfulness", SAMPLE.with_(answer=" "), (0.0, "empty answer")),
        ("faithfulness", SAMPLE.with_(contexts=["", " "]), None),
        ("context_recall", SAMPLE.with_(contexts=["", " "]), (0.0, "no contexts retrieved")),
        ("context_recall", SAMPLE.with_(contexts=["", "30 days."]), None),
        ("hallucination", SAMPLE.with_(answer=" "), (1.0, "empty answer")),
        ("answer_relevancy_holistic", SAMPLE.with_(contexts=[]), None),
        ("answer_relevancy", SAMPLE.with_(answer=" "), (0.0, "empty answer")),
        ("context_recall", SAMPLE.with_(answer=" "), None),
    ],
)
def test_blank_answers_and_no_contexts(
    name: str, sample: RagSample, expected: tuple[float, str] | None
) -> None:
    assert shortcut(find(name), sample) == expected


# --- options of the configuration --------------------------------------------------------------


def test_a_name_with_its_cutoff_wins_over_the_metric_that_it_is_of() -> None:
    for order in (["ndcg", "ndcg@10"], ["ndcg@10", "ndcg"]):
        gains = {"ndcg": {"gain": "linear"}, "ndcg@10": {"gain": "exponential"}}
        settings = Settings.model_validate({"metrics": {name: gains[name] for name in order}})
        assert configured_options(settings, "ndcg@10", {}) == {"gain": "exponential"}
        assert configured_options(settings, "ndcg@5", {}) == {"gain": "linear"}
        assert configured_options(settings, "ndcg@10", {"gain": "linear"}) == {"gain": "linear"}
        assert configured_options(settings, "mrr", {}) == {}


def test_none_asks_for_what_is_configured() -> None:
    settings = Settings.model_validate(
        {"metrics": {"faithfulness": {"verdicts": "probability", "yes_from": 0.7}}}
    )
    configured = {"verdicts": "probability", "yes_from": 0.7}
    assert configured_options(settings, "faithfulness", {"verdicts": None, "yes_from": None}) == configured
    assert configured_options(settings, "faithfulness", {"verdicts": "json"}) == {"verdicts": "json"}
    json = Settings.model_validate({"metrics": {"faithfulness": {"verdicts": "json"}}})
    assert configured_options(json, "faithfulness", {}) == {"verdicts": "json"}
