"""Variants by rule, and what a judge makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.mutation.rules import KINDS, variants, without_chunks
from pytest_ragbench.samples import RagSample
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture

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
    less = without_chunks(RagSample("?", EN, ["A.", "B."]), [1])
    assert less is not None
    assert less.sample.contexts == ("B.",)
    assert without_chunks(RagSample("?", EN, ["A."]), [1]) is None


@given(st.text(max_size=80))
def test_any_answer_can_be_changed(answer: str) -> None:
    for variant in variants(RagSample("?", answer, ["c"], id="q")):
        assert variant.kind in KINDS
        assert variant.sample.answer != answer or variant.kind in ("chunks_reversed", "other_contexts")


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


def test_what_can_not_be_mutated_is_a_usage_error(cli: Cli) -> None:  # noqa: F811
    report(cli)
    assert "judges no answer" in cli("mutate", "run.json", "-m", "mrr").err
    ran = cli("mutate", "run.json", "-t", ">=0.8", "-m", "answer_relevancy_holistic", "--judge", "local")
    assert (ran.code, "no answer of the report passed" in ran.err) == (4, True)
