from __future__ import annotations

from pytest_ragbench.cli.shared import Exit
from pytest_ragbench.metrics.registry import all_metrics
from tests.cli.conftest import Cli


def test_every_metric_is_listed(cli: Cli) -> None:
    rows = {row["name"]: row for row in cli("metrics", "--json").data["metrics"]}
    assert set(rows) == set(all_metrics())
    assert rows["faithfulness"]["needs"] == ["question", "answer", "contexts"]
    assert rows["noise_sensitivity"]["direction"] == "lower"
    ours = {name: row for name, row in rows.items() if not name.startswith("test_")}  # other tests' own
    assert [name for name, row in ours.items() if not row["summary"]] == []
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
