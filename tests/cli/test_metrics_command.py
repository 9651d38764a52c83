from __future__ import annotations

import pytest

from pytest_ragbench.cli.shared import Exit
from pytest_ragbench.metrics.purposes import PURPOSES
from pytest_ragbench.metrics.registry import all_metrics
from tests.cli.conftest import Cli
from tests.metrics import of_other_tests


def test_every_metric_is_listed(cli: Cli) -> None:
    rows = {row["name"]: row for row in cli("metrics", "--json").data["metrics"]}
    assert set(rows) == set(all_metrics())
    assert rows["faithfulness"]["needs"] == ["question", "answer", "contexts"]
    assert rows["noise_sensitivity"]["direction"] == "lower"
    others = of_other_tests()
    assert [name for name, row in rows.items() if not row["summary"] and name not in others] == []
    text = cli("metrics").out
    assert [name for name in rows if f"\n{name} " not in text] == []


def test_choices(cli: Cli) -> None:
    def names(*args: str) -> set[str]:
        return {row["name"] for row in cli("metrics", "--json", *args).data["metrics"]}

    free = names("--reference-free")
    assert {"faithfulness", "answer_relevancy"} <= free
    assert not {"answer_correctness", "ndcg", "rouge1"} & free
    assert {"rouge1", "ndcg"} <= names("--no-judge")
    assert "faithfulness" not in names("--no-judge")
    assert names("--tier", "embedding") < set(all_metrics())
    assert cli("metrics", "--tier", "retreival").code == Exit.USAGE


def test_one_in_full(cli: Cli) -> None:
    ran = cli("metrics", "ndcg@10", "noise_sensitivity")
    assert "needs    context_ids, relevant_ids" in ran.out
    assert "lower is better" in ran.out
    assert "up to" in ran.out
    assert "'ndcg@0'" in cli("metrics", "ndcg@0").err


def test_every_metric_of_ours_has_a_purpose() -> None:
    named = [name for purpose in PURPOSES for name in purpose.metrics]
    assert len(named) == len(set(named))
    ours = set(all_metrics()) - of_other_tests()
    assert set(named) == ours


@pytest.mark.parametrize(
    ("problem", "first"),
    [
        ("wrong answers", "answer_correctness"),
        ("wrong answer", "answer_correctness"),
        ("hallucinations", "faithfulness"),
        ("did it make something up", "faithfulness"),
        ("invented facts", "faithfulness"),
        ("missing documents", "hit_rate"),
        ("search misses documents", "hit_rate"),
        ("ranking", "ndcg"),
        ("irrelevant chunks", "precision"),
        ("off topic", "answer_relevancy"),
        ("refusals", "abstention"),
        ("can I trust the judge", "cohen_kappa"),
        ("unreliable juge", "cohen_kappa"),
        ("tone", "aspect"),
        ("ndcg", "ndcg"),
    ],
)
def test_metrics_for_a_problem(cli: Cli, problem: str, first: str) -> None:
    assert cli("metrics", "--for", problem, "--json").data["metrics"][0]["name"] == first


def test_a_problem_that_no_metric_is_for_and_a_field_that_no_metric_needs(cli: Cli) -> None:
    ran = cli("metrics", "--for", "quantum entanglement")
    assert ran.code == Exit.USAGE
    assert "Did it make something up?" in ran.err
    assert cli("metrics", "--for", "!").code == Exit.USAGE
    assert cli("metrics", "faithfulness", "--for", "ranking").code == Exit.USAGE
    ran = cli("metrics", "--have", "answer,referense")
    assert ran.code == Exit.USAGE
    assert "'referense'" in ran.err


def test_metrics_that_the_columns_at_hand_allow(cli: Cli) -> None:
    found = cli("metrics", "--for", "wrong answers", "--have", "answer, reference", "--json").data["metrics"]
    assert [row["name"] for row in found] == ["factual_correctness", "semantic_similarity"]
    assert {row["purpose"] for row in found} == {"Is the answer right?"}
