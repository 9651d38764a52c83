"""Two reports side by side."""

from __future__ import annotations

import json

from tests.cli.conftest import Cli
from tests.gates.runs import report, run


def written(cli: Cli) -> None:
    cli.write("old.json", json.dumps(report(run([0.9, 0.8] * 6, limit=0.75))))
    cli.write("new.json", json.dumps(report(run([0.7, 0.6] * 4 + [0.9, 0.8] * 2, limit=0.75))))


def test_what_moved_and_whether_chance_explains_it(cli: Cli) -> None:
    written(cli)
    ran = cli("compare", "old.json", "new.json")
    assert ran.code == 0
    assert (
        "faithfulness: 0.717 after 0.850, 0.133 worse, over 12 questions, 8 of them changed; p 0.004"
        in ran.out
    )
    assert "newly broken: q0, q1" in ran.out


def test_gates_decide_the_exit_code(cli: Cli) -> None:
    written(cli)
    rule = "faithfulness no worse than baseline by more than 0.02"
    assert cli("compare", "old.json", "new.json", "--gate", rule).code == 1
    assert cli("compare", "new.json", "old.json", "--gate", rule).code == 0
    assert cli("compare", "new.json", "old.json", "--gate", "mrr no worse than baseline").code == 9
    data = cli("compare", "old.json", "new.json", "--gate", rule, "--json").data
    assert data["gates"][0]["verdict"] == "FAIL"
    assert data["metrics"][0]["broken"] == [f"q{n}" for n in range(8)]


def test_what_is_no_report_is_a_usage_error(cli: Cli) -> None:
    written(cli)
    assert cli("compare", "old.json", "none.json").code == 4
    cli.write("half.json", json.dumps({**report(run([0.5])), "complete": False}))
    ran = cli("compare", "half.json", "new.json")
    assert (ran.code, "half.json: that run did not end well" in ran.err) == (4, True)


def test_branches_stand_for_their_last_run(cli: Cli) -> None:
    """A report and the history say the same, though the history keeps no text."""
    written(cli)
    for name, branch in (("old", "main"), ("new", "feature/chunks")):
        told = json.loads((cli.path / f"{name}.json").read_text())
        told["run"] = {"id": name, "started": 1_780_000_000.0, "git": {"commit": "abc" * 9, "branch": branch}}
        cli.write(f"{name}.json", json.dumps(told))
    cli("history", "runs.sqlite", "--add", "old.json", "--add", "new.json")
    files = cli("compare", "old.json", "new.json", "--json").data
    for old, new in (("main", "feature/chunks"), ("main", "new.json"), ("old.json", "feature/chunks")):
        ran = cli("compare", old, new, "--history", "runs.sqlite", "--json")
        assert (ran.code, ran.data["metrics"]) == (0, files["metrics"])
    assert ran.data["new"] == "feature/chunks (run of 2026-05-28 20:26, commit abcabcab)"
    unknown = cli("compare", "release", "new.json", "--history", "runs.sqlite")
    assert unknown.code == 4
    assert "has no complete run of a branch release with scores; it has: " in unknown.err
    assert "to name a branch, keep a history" in cli("compare", "main", "new.json").err
