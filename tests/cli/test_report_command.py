from __future__ import annotations

import json

from tests.cli.conftest import Cli

RUN = json.dumps(
    {
        "schema": "ragbench-report",
        "version": 1,
        "run": {"id": "r", "started": 1.0},
        "results": [],
        "complete": True,
    }
)


def test_report(cli: Cli) -> None:
    cli.write("run.json", RUN)
    assert cli("report", "run.json", "-o", "out/page.html").code == 0
    assert "RAG quality" in (cli.path / "out/page.html").read_text(encoding="utf-8")


def test_markdown(cli: Cli) -> None:
    cli.write("run.json", RUN)
    assert cli("report", "run.json", "-o", "out.md", "--json").data == {"output": "out.md"}
    assert (cli.path / "out.md").read_text(encoding="utf-8").startswith("## RAG quality: no tests")


def test_any_format_by_its_name(cli: Cli) -> None:
    score = '{"metric": "mrr", "tier": "retrieval", "value": 0.5}'
    results = f'[{{"test": "t[a]", "outcome": "failed", "scores": [{score}]}}]'
    cli.write("run.json", RUN.replace("[]", results))
    for name in ("csv", "json", "history", "markdown"):
        assert cli("report", "run.json", "-o", f"out.{name}", "--format", name).code == 0
    assert ",mrr,0.5," in (cli.path / "out.csv").read_text(encoding="utf-8-sig")
    assert json.loads((cli.path / "out.json").read_text(encoding="utf-8"))["results"][0]["test"] == "t[a]"
    assert cli("history", "out.history", "--json").data[0]["run"]["id"] == "r"
    assert "no report format 'pdf'" in cli("report", "run.json", "-o", "out", "--format", "pdf").err


def test_what_cannot_be_is_told(cli: Cli) -> None:
    cli.write("run.json", RUN.replace("ragbench-report", "other"))
    done = cli("report", "run.json", "-o", "page.html")
    assert (done.code, "run.json: no report of --ragbench-json" in done.err) == (4, True)
    assert cli("report", "none.json", "-o", "page.html").code == 4
    assert "ends in .html, or in .md" in cli("report", "run.json", "-o", "page.txt").err
    assert not list(cli.path.glob("page*"))
