from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pytest_ragbench.model.report import GitRecord
from pytest_ragbench.report.writing import to_json
from tests.cli.conftest import Cli
from tests.ground.test_merging import ONE, TWO, record, shard


@pytest.fixture
def shards(cli: Cli) -> list[str]:
    return [str(cli.write(each.name, to_json(each.report))) for each in (ONE, TWO)]


def test_merged_report_table_and_exit_code(cli: Cli, shards: list[str]) -> None:
    ran = cli("merge", *shards, "-o", "merged.json", "--shards", "2")
    assert ran.code == 1  # a test failed in one of them
    assert "3 results of 2 shards, written to merged.json" in ran.out
    assert "2 passed, 1 quality failure" in ran.out
    merged = json.loads((cli.path / "merged.json").read_text(encoding="utf-8"))
    assert merged["complete"] is True
    assert len(merged["results"]) == 3


def test_gates_see_all_results(cli: Cli, shards: list[str]) -> None:
    good = [shard(f"{n}.json", n, *(record(f"{n}-{k}", 1.0) for k in range(30))) for n in range(2)]
    paths = [str(cli.write(each.name, to_json(each.report))) for each in good]
    ran = cli("merge", *paths, "--gate", "mrr >= 0.9", "--json")
    assert (ran.code, [gate["verdict"] for gate in ran.data["gates"]]) == (0, ["PASS"])
    cli.write("ragbench.toml", '[gates]\nmrr = "mean>=0.9"\n')
    ran = cli("merge", *shards, "--no-gates")
    assert "FAIL" not in ran.out
    ran = cli("merge", paths[0], "--shards", "2", "--json")
    assert (ran.code, ran.data["complete"]) == (3, False)
    assert ran.data["gates"][0]["verdict"] != "PASS"


def test_the_baseline_may_be_a_branch(cli: Cli) -> None:
    [one] = [shard("0.json", 0, *(record(f"0-{k}", 1.0) for k in range(6)))]
    path = str(cli.write(one.name, to_json(one.report)))
    git = GitRecord(commit="a" * 40, branch="main")
    cli.write("main.json", to_json(replace(one.report, run=replace(one.report.run, git=git))))
    cli("history", "runs.sqlite", "--add", "main.json")
    cli.write("ragbench.toml", 'history = "runs.sqlite"\n[gating]\nbaseline = "main"\n')
    ran = cli("merge", path, "--gate", "mrr no worse than baseline", "--json")
    assert (ran.code, ran.data["gates"][0]["verdict"]) == (0, "PASS")
    assert ran.data["baseline"]["name"].startswith("main (run of ")
