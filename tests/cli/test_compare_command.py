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
