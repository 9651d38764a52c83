"""Two reports side by side."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Cli
from tests.gates.runs import report, run
from tests.gates.test_comparisons import refusals, set_up


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


def test_refusals_without_claims_are_equal(cli: Cli) -> None:
    cli.write("good.json", json.dumps(report(refusals([1.0] * 8))))
    cli.write("bad.json", json.dumps(report(refusals([0.0] * 8))))
    cli.write("more.json", json.dumps(report(refusals([1.0] * 4, 8))))
    gate = ("--gate", "faithfulness no worse than baseline")
    same = cli("compare", "good.json", "good.json", *gate)
    assert (same.code, same.out.startswith("PASS")) == (0, True)
    assert cli("compare", "good.json", "bad.json", *gate).code == 1
    more = cli("compare", "good.json", "more.json", *gate)
    assert (more.code, "on_no_claims" in more.out) == (9, True)


def test_the_configuration_counts(cli: Cli) -> None:
    """Its gates and what holds for them; those that are typed stay where they are left out."""
    cli.write("old.json", json.dumps(report(run([0.9] * 10))))
    cli.write("new.json", json.dumps(report(run([0.5] * 3 + [0.9] * 7))))
    gate = ("--gate", "faithfulness no worse than baseline")
    assert cli("compare", "old.json", "new.json", *gate).code == 0  # undecided: three changed
    cli.write("ragbench.toml", '[gates]\nfaithfulness = "mean >= 0.8"\n[gating]\nundecided = "fail"\n')
    assert cli("compare", "old.json", "new.json", *gate).code == 10
    configured = cli("compare", "old.json", "new.json")
    assert (configured.code, "FAIL       faithfulness mean >= 0.8" in configured.out) == (1, True)
    assert cli("compare", "old.json", "new.json", "--no-gates").code == 0
    assert cli("compare", "old.json", "new.json", "--no-gates", *gate).code == 10


def test_a_metric_that_nobody_knows_here(cli: Cli) -> None:
    """Its direction comes with the scores; where it does not, that is said and nothing is guessed."""
    for name, value in (("old", 0.3), ("new", 0.5)):
        cli.write(f"{name}.json", json.dumps(report(set_up([value] * 8, direction="lower"))))
        cli.write(f"{name}-0.1.json", json.dumps(report(run([value] * 8, "m", judge="grader"))))
    gate = ("--gate", "m no worse than baseline by more than 0.1")
    ran = cli("compare", "old.json", "new.json", *gate)
    assert (ran.code, "FAIL" in ran.out, "0.200 worse" in ran.out) == (1, True, True)
    assert cli("compare", "new.json", "old.json", *gate).code == 0
    for command in (
        ("compare", "old-0.1.json", "new-0.1.json"),
        ("merge", "new-0.1.json", "--baseline", "old-0.1.json"),
    ):
        ran = cli(*command, *gate)
        assert (ran.code, "which way m is better isn't in the report" in ran.err) == (4, True)
    assert "0.200 higher" in cli("compare", "old-0.1.json", "new-0.1.json").out
    # With one that says it, the other is understood too.
    assert cli("compare", "old-0.1.json", "new.json", *gate).code == 1


def test_reports_of_earlier_versions_are_compared(cli: Cli) -> None:
    earlier = str(Path(__file__).parents[1] / "ground" / "data" / "report-0.1.0.json")
    ran = cli("compare", earlier, earlier)
    assert (ran.code, "the same as the baseline" in ran.out) == (0, True)


def test_the_history_keeps_what_was_configured(cli: Cli) -> None:
    for name, judge in (("old", "a"), ("new", "b")):
        told = report(set_up([0.5] * 8, judge=judge))
        told["run"] |= {"id": name, "git": {"commit": "abc" * 9, "branch": name}}
        cli.write(f"{name}.json", json.dumps(told))
    cli("history", "runs.sqlite", "--add", "old.json", "--add", "new.json")
    ran = cli("compare", "old", "new", "--history", "runs.sqlite", "--gate", "m no worse than baseline")
    assert (ran.code, "the judge was a and is b" in ran.out) == (0, True)
