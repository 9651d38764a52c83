"""Variants by rule, and what a judge makes of them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.metrics.registry import find
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.mutation.outcome import failed_share
from pytest_ragbench.mutation.rules import KINDS, rankings, variants, without_chunks
from pytest_ragbench.mutation.running import (
    Original,
    Trial,
    kinds_for,
    originals,
    try_out,
    variants_of,
)
from pytest_ragbench.report.reading import report_from
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.scoring.asking import context

EN = "You can return a product within 30 days. The courier needs the receipt."
RU = "Товар можно вернуть в течение 30 дней. Курьеру нужен чек."
JA = "商品は30日以内に返品できます。領収書が必要です。"


def made(answer: str, **more: Any) -> dict[str, str]:
    sample = RagSample("?", answer, [answer, "Another chunk."], id="q", **more)
    return {variant.kind: variant.sample.answer or "" for variant in variants(sample)}


@pytest.mark.parametrize(
    ("answer", "kind", "changed"),
    [
        (EN, "number", EN.replace("30", "37")),
        (EN, "unit", EN.replace("days", "months")),
        (EN, "negation", EN.replace("can return", "cannot return")),
        (EN, "rephrased", EN.replace("within 30", "in no more than 30")),
        (EN, "reordered", "The courier needs the receipt. You can return a product within 30 days."),
        (RU, "number", RU.replace("30", "37")),
        (RU, "unit", RU.replace("дней", "месяцев")),
        (RU, "negation", RU.replace("можно", "нельзя")),
        (RU, "rephrased", RU.replace("в течение", "на протяжении")),
        (JA, "number", JA.replace("30", "37")),
        (JA, "unit", JA.replace("日以内", "か月以内")),
        (JA, "negation", JA.replace("できます", "できません")),
        (JA, "reordered", "領収書が必要です。商品は30日以内に返品できます。"),
    ],
)
def test_variants(answer: str, kind: str, changed: str) -> None:
    assert made(answer)[kind] == changed


def test_where_there_is_nothing_to_change_there_is_no_variant() -> None:
    assert set(made("Yes.")) == {"added_claim", "chunks_reversed"}
    assert "number" not in made("The B2B team answers.")
    assert "reordered" not in made("Bring the receipt. It proves the date.")
    assert made("The firm was founded in 1998.")["number"] == "The firm was founded in 2005.".replace(
        "2005", "2001"
    )


def test_other_questions_lend_answer_and_chunks() -> None:
    one, two = RagSample("a?", EN, ["A."], id="a"), RagSample("b?", "Parcels are blue.", ["B."], id="b")
    found = {variant.kind: variant.sample for variant in variants(one, [two])}
    assert found["other_answer"].answer == "Parcels are blue."
    assert found["other_contexts"].contexts == ("B.",)
    same = RagSample("c?", "Something else.", ["A."], id="c")
    assert "other_answer" not in {variant.kind for variant in variants(one, [same])}
    bare = RagSample("d?", "Answered without a chunk.", id="d")
    assert not {"other_answer", "other_contexts"} & {variant.kind for variant in variants(one, [bare])}
    assert "other_answer" in {variant.kind for variant in variants(bare, [two])}
    less = without_chunks(RagSample("?", EN, ["A.", "B."]), [1])
    assert less is not None
    assert less.sample.contexts == ("B.",)
    assert without_chunks(RagSample("?", EN, ["A."]), [1]) is None


DATED = "Anna Berg opened it on 12 March 2024. Since then parcels go through Osaka."
DATED_RU = "Склад открыли 12 марта 2024 года. С тех пор посылки идут через Казань."
DATED_JA = "倉庫は3月12日に開きました。荷物は大阪市を通ります。"


@pytest.mark.parametrize(
    ("answer", "kind", "changed"),
    [
        (DATED, "name", DATED.replace("Osaka", "Harlow")),
        (DATED, "date", DATED.replace("March", "August")),
        (DATED_RU, "name", DATED_RU.replace("Казань", "Заречье")),
        (DATED_RU, "date", DATED_RU.replace("марта", "августа")),
        (DATED_JA, "name", DATED_JA.replace("大阪", "松原")),
        (DATED_JA, "date", DATED_JA.replace("3月12日", "8月12日")),
        ("It was on 2024-11-05.", "date", "It was on 2024-04-05."),
        ("Срок до 05.11.2024 включительно.", "date", "Срок до 05.04.2024 включительно."),
        ("We close on Sunday.", "date", "We close on Wednesday."),
        ("В понедельник закрыто.", "date", "В четверг закрыто."),
        ("Ask for Jane Smith, or for John.", "name", "Ask for Harlow, or for John."),
        ("Мы закрыты в понедельник.", "date", "Мы закрыты в четверг."),
        ("月曜日は休みです。", "date", "木曜日は休みです。"),
        ("You may March in.", "date", None),
        ("We ask in English on Monday.", "name", None),
        ("Мы ответим Вам завтра.", "name", None),
    ],
)
def test_names_and_dates(answer: str, kind: str, changed: str | None) -> None:
    assert made(answer).get(kind) == changed


@pytest.mark.parametrize(
    ("answer", "reference", "rest"),
    [
        (EN, "Products can be returned within 30 days.", "The courier needs the receipt."),
        (RU, "Курьеру нужен чек.", "Товар можно вернуть в течение 30 дней."),
        (JA, "領収書が必要です。", "商品は30日以内に返品できます。"),
        (EN, "Parcels are blue.", None),
        ("You have 30 days to return it.", "30 days", None),
        ("Return it within 30 days. That is 30 days to return it.", "Return within 30 days.", None),
    ],
)
def test_a_claim_is_dropped_where_the_reference_misses_it(
    answer: str, reference: str, rest: str | None
) -> None:
    assert made(answer, reference=reference).get("dropped_claim") == rest
    assert "dropped_claim" not in made(answer)


def test_rankings() -> None:
    sample = RagSample(
        "?", contexts=list("ABCDE"), context_ids=list("abcde"), relevant_ids=["a", "c"], id="q"
    )
    found = {each.kind: each for each in rankings(sample, [0, 2])}
    assert found["ranking_reversed"].sample.context_ids == tuple("edcba")
    assert found["ranking_reversed"].sample.contexts == tuple("EDCBA")
    assert found["tail_reversed"].sample.context_ids == tuple("abced")
    assert [each.kind for each in rankings(sample, [4])] == []
    assert [each.kind for each in rankings(sample, [2])] == ["tail_reversed"]  # in the middle of five
    assert rankings(sample, []) == []
    assert [each.kind for each in rankings(sample, [0, 1, 4])] == []  # the first stays first


def test_kinds_that_say_something_of_a_metric() -> None:
    assert kinds_for(find("ndcg@10")) == {
        "ranking_reversed",
        "tail_reversed",
        "without_support",
        "other_contexts",
    }
    assert kinds_for(find("faithfulness")) >= {"number", "name", "date", "without_support", "rephrased"}
    assert "dropped_claim" not in kinds_for(find("faithfulness"))
    assert "dropped_claim" in kinds_for(find("answer_correctness"))
    assert "number" not in kinds_for(find("answer_relevancy"))
    assert kinds_for(find("noise_sensitivity")) == frozenset()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_any_answer_can_be_changed(answer: str) -> None:
    for variant in variants(RagSample("?", answer, ["c"], id="q")):
        assert variant.kind in KINDS
        assert variant.sample.answer != answer or variant.kind in ("chunks_reversed", "other_contexts")


class Grader:
    """Finds anything that is not in the chunks; or can't be reached."""

    name = "grader"
    tasks = None

    def __init__(self, *, dead: bool = False) -> None:
        self.dead = dead
        self.asked = 0

    async def ask(self, task: Task[Any]) -> Answered[Any]:
        self.asked += 1
        if self.dead:
            raise JudgeError("down", code="timeout")
        grade = 1 if task.answer in task.contexts else 0  # type: ignore[attr-defined]
        return Answered(
            task.read({"answer_correctness": 1, "groundedness": grade, "error_message": "no"}), self.name
        )


def report(cli: Cli) -> None:  # noqa: F811
    results = []
    for place, answer in enumerate((EN, RU, JA, "Delivery takes 5 hours in the city.")):
        sample = {
            "id": f"q{place}",
            "question": "How?",
            "answer": answer,
            "contexts": ["Unrelated words.", answer],
        }
        evidence = [{"text": answer, "ok": True, "chunk": 2}]
        score = {
            "metric": "faithfulness",
            "tier": "generation",
            "sample": 0,
            "value": 1.0,
            "threshold": ">=0.8",
        }
        results.append(
            {
                "test": f"t[{place}]",
                "outcome": "passed",
                "samples": [sample],
                "scores": [{**score, "evidence": evidence}],
            }
        )
    run = {"schema": "ragbench-report", "version": 1, "run": {"id": "r", "started": 1}, "complete": True}
    cli.write("run.json", json.dumps({**run, "results": results}))


def test_the_local_judge_catches_what_it_can(cli: Cli) -> None:  # noqa: F811
    report(cli)
    ran = cli("mutate", "run.json", "--judge", "local", "--json")
    assert ran.code == 0
    kinds = {row["kind"]: row for row in ran.data["kinds"]}
    assert kinds["number"]["share"] == 1.0
    assert kinds["added_claim"]["share"] == 1.0
    assert kinds["without_support"]["right"] == 4
    assert kinds["chunks_reversed"]["share"] == 1.0
    assert ran.data["caught"] > 0.7
    shown = cli("mutate", "run.json", "--judge", "local", "--catch", "==1")
    assert shown.code == (0 if ran.data["caught"] == 1 else 1)
    assert "bad variants caught:" in shown.out


def test_gates_are_decided_again_for_faulty_runs(cli: Cli) -> None:  # noqa: F811
    report(cli)
    rules = [
        "--gate",
        "faithfulness mean >= 0.9",
        "--gate",
        "faithfulness no worse than baseline",
        "--gate",
        "mrr >= 0.5",
    ]
    ran = cli("mutate", "run.json", "--judge", "local", *rules, "--json")
    decided = {(gate["gate"].split(" ", 1)[1], gate["kind"]): gate for gate in ran.data["gates"]}
    assert decided["mean >= 0.9", "added_claim"]["verdict"] == "FAIL"
    assert decided["mean >= 0.9", "chunks_reversed"]["verdict"] == "PASS"
    assert decided["mean >= 0.9", "number"]["n_changed"] == 4
    # Against the run itself: four questions changed are too few to be sure.
    assert decided["no worse than baseline", "added_claim"]["verdict"] == "UNDECIDED"
    assert {gate["gate"].split(" ")[0] for gate in ran.data["gates"]} == {"faithfulness"}
    shown = cli("mutate", "run.json", "--judge", "local", *rules).out
    assert "    FAIL       faithfulness mean >= 0.9   number 4/4, " in shown
    assert "  ! UNDECIDED  faithfulness no worse than baseline   number 4/4, " in shown
    assert "    PASS       faithfulness mean >= 0.9   still good: " in shown


def test_rankings_of_a_run_without_a_judge(cli: Cli) -> None:  # noqa: F811
    results = []
    for place in range(6):
        names = [f"{place}{letter}" for letter in "abcdef"]
        sample = {
            "id": f"q{place}",
            "question": f"{place}?",
            "context_ids": names,
            "relevant_ids": {names[0]: 1},
        }
        score = {"metric": "mrr", "tier": "retrieval", "sample": 0, "value": 1.0, "threshold": ">=0.5"}
        results.append({"test": f"t[{place}]", "outcome": "passed", "samples": [sample], "scores": [score]})
    run = {"schema": "ragbench-report", "version": 1, "run": {"id": "r", "started": 1}, "complete": True}
    cli.write("run.json", json.dumps({**run, "results": results}))
    ran = cli("mutate", "run.json", "-m", "mrr", "--gate", "mrr mean >= 0.5", "--json")
    assert {row["kind"]: row["right"] for row in ran.data["kinds"]} == {
        "other_contexts": 6,
        "without_support": 6,
        "ranking_reversed": 6,
        "tail_reversed": 6,
    }
    assert (ran.data["judge"], ran.data["caught"], ran.data["wrongly_failed"]) == (None, 1.0, 0.0)
    assert [gate["verdict"] for gate in ran.data["gates"]] == ["FAIL"] * 3 + ["PASS"]
    weak = cli("mutate", "run.json", "-m", "mrr", "-t", ">=0.1", "--catch", ">=0.9")
    assert (weak.code, "ranking_reversed passed, but is wrong" in weak.out) == (1, True)


def test_a_grade_is_mutated_by_its_name() -> None:
    told = report_from(
        {
            "schema": "ragbench-report",
            "version": 1,
            "run": {"id": "r", "started": 1},
            "results": [
                {
                    "test": "t",
                    "outcome": "passed",
                    "samples": [{"id": "q", "question": "?", "answer": EN, "contexts": [EN]}],
                    "scores": [
                        {"metric": "search_rag_groundedness", "tier": "end_to_end", "sample": 0, "value": 1.0,
                         "threshold": ">=0.7"},
                    ],
                }
            ],
        }
    )  # fmt: skip

    def judged_by(judge: Grader) -> Original:
        [original] = originals(told, "search_rag_groundedness", None, context(judge))
        return original

    grader = Grader()
    trials = asyncio.run(try_out(variants_of([judged_by(grader)])))
    assert {trial.kind: trial.survived for trial in trials}["number"] is False
    assert {trial.metric for trial in trials} == {"search_rag_groundedness"}
    ours = judged_by(grader)
    other = replace(ours, name="search_rag_answer_correctness", part="answer_correctness")
    grader.asked = 0
    both = asyncio.run(try_out(variants_of([ours, other])))
    assert (len(both), grader.asked) == (2 * len(trials), len(trials))  # two grades of each call
    dead = asyncio.run(try_out(variants_of([judged_by(Grader(dead=True))])))
    assert {trial.passed for trial in dead} == {None}
    assert failed_share(dead, good=False) is None
    assert [Trial.of(json.loads(json.dumps(trial.to_dict()))) for trial in trials] == trials


def test_what_can_not_be_mutated_is_a_usage_error(cli: Cli) -> None:  # noqa: F811
    report(cli)
    assert "judges neither answers nor chunks" in cli("mutate", "run.json", "-m", "noise_sensitivity").err
    ran = cli("mutate", "run.json", "-t", ">=0.8", "-m", "answer_relevancy_holistic", "--judge", "local")
    assert (ran.code, "no answer of the report passed" in ran.err) == (4, True)
