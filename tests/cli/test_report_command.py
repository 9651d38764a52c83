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


def test_what_cannot_be_is_told(cli: Cli) -> None:
    cli.write("run.json", RUN.replace("ragbench-report", "other"))
    done = cli("report", "run.json", "-o", "page.html")
    assert (done.code, "run.json: no report of --ragbench-json" in done.err) == (4, True)
    assert cli("report", "none.json", "-o", "page.html").code == 4
    assert "ends in .html, or in .md" in cli("report", "run.json", "-o", "page.txt").err
    assert not list(cli.path.glob("page*"))
