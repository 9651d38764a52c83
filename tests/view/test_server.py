"""The pages of ``ragbench view`` over HTTP."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.history import History
from pytest_ragbench.report.writing import to_json
from pytest_ragbench.view.runs import Runs
from tests.report_html.pages import ReadPage
from tests.view.conftest import Site, a_run, run_id, serving


def texts(page: str) -> list[str]:
    """Cells of the list, row by row."""
    rows = re.findall(r'<tr role="row">(.*?)</tr>', page, re.DOTALL)
    return [" ".join(unescape(re.sub(r"<[^>]*>", " ", row)).split()) for row in rows]


def test_the_list_has_the_latest_runs_first(site: Site) -> None:
    status, page = site.ask()
    assert status == 200
    _, last, branch, second, first = texts(page)
    assert last == "2026-06-01 20:26 passed 2 passed main 00000004 0.950 +0.250"
    assert branch.startswith("2026-05-31 20:26")
    assert branch.endswith("разбивка 00000003 0.575")
    assert "FAIL faithfulness >= 0.85 1 PASS main" in second
    assert second.endswith("0.700 +0.000")
    assert first.startswith("2026-05-29 20:26 report not kept")
    assert "history_reports" in page
    assert page.count("<input") == 3
    assert f'href="run/{run_id(4)}"' in page
    assert run_id(1) not in page
    assert ReadPage(page).policy.count("'none'") == 2, "default-src, base-uri"


def test_the_list_of_one_branch_and_longer_ones(site: Site) -> None:
    page = site.ask(f"?branch={quote('разбивка')}")[1]
    assert [text[:16] for text in texts(page)[1:]] == ["2026-05-31 20:26"]
    shorter = site.ask("?count=3&branch=main")[1]
    assert len(texts(shorter)) == 4
    assert "Show more" not in shorter
    assert "count=52&amp;branch=main" in site.ask("?count=2&branch=main")[1]
    assert site.ask("?count=-1")[0] == site.ask("?count=x")[0] == 200


def test_a_run_is_its_whole_report(site: Site) -> None:
    status, text = site.ask(f"run/{run_id(4)}")
    assert status == 200
    page = ReadPage(text)
    assert page.shows("Trend over 4 runs")
    assert page.shows("← Runs")
    assert "side by side" not in text
    assert "What is q1?" in page.blocks[0]
    assert "connect-src 'self'" in page.policy
    assert [problem for problem in page.problems if "href='../'" not in problem] == []


def test_runs_side_by_side(site: Site) -> None:
    status, text = site.ask(f"compare?run={run_id(4)}&run={run_id(3)}&run={run_id(4)}")
    assert status == 200
    assert re.findall(r'<th scope="col" class="num">(.*?)</th>', text) == ["questions", "разбивка", "main"]
    status, text = site.ask(f"compare?run={run_id(4)}&run={run_id(2)}")
    assert "main 05-30 20:26, main 06-01 20:26" in text
    for query in ("compare", f"compare?run={run_id(4)}&run={run_id(4)}"):
        status, text = site.ask(query)
        assert (status, "Tick two or more" in text) == (400, True)


def test_the_systems_of_one_run_side_by_side(tmp_path: Path) -> None:
    report = a_run(1, 0.5, 0.9)
    results = [
        replace(result, system=name, test=f"{result.test}-{name}")
        for result in report.results
        for name in ("large", "small")
    ]
    path = tmp_path / "run.json"
    path.write_text(to_json(replace(report, results=tuple(results))), encoding="utf-8")
    with serving(path) as site:
        assert (
            f'href="../compare?run={run_id(1)}">Its systems side by side' in site.ask(f"run/{run_id(1)}")[1]
        )
        status, text = site.ask(f"compare?run={run_id(1)}")
    assert status == 200
    assert re.findall(r'<th scope="col" class="num">(.*?)</th>', text) == ["questions", "large", "small"]


def test_what_can_not_be_opened_says_why(site: Site, history: History) -> None:
    files = history.reports()
    files[run_id(4)].unlink()
    files[run_id(3)].write_text("{", encoding="utf-8")
    files[run_id(2)].write_text(to_json(a_run(9, 1.0)), encoding="utf-8")
    for number, code, said in (
        (1, 404, "not kept"),
        (2, 404, "of another run"),
        (3, 400, "no JSON report"),
        (4, 404, "has been deleted"),
        (5, 404, "no such run"),
    ):
        status, text = site.ask(f"run/{run_id(number)}")
        assert (status, said in text) == (code, True), text
        assert 'href="../"' in text
    assert texts(site.ask()[1])[1].startswith("2026-06-01 20:26 report deleted")
    assert site.ask(f"compare?run={run_id(4)}&run={run_id(3)}")[0] == 404
    history.path.write_text("no database, but long enough to be read as one" * 50, encoding="utf-8")
    status, text = site.ask()
    assert (status, "not a database" in text) == (400, True)


def test_nothing_is_said_without_the_key(site: Site) -> None:
    key = site.top.strip("/")
    assert len(key) >= 32
    for path in ("/", "/run/x", f"/{key[:-1]}/", f"/{key}x/", "/%ff/", f"//{key}/", "/favicon.ico"):
        status, text = site.ask(path)
        assert (status, "key is missing or wrong" in text) == (403, True), path
    assert site.ask(f"/{key}")[0] == 308
    assert site.ask(f"/{key}/nothing")[0] == 404


def test_another_hosts_name_is_refused(site: Site) -> None:
    for name in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "[", "::1"):
        status, text = site.ask(Host=name)
        assert (status, "under 127.0.0.1 and localhost only" in text) == (403, True), name


def test_this_machines_names_are_taken(site: Site) -> None:
    port = site.host.partition(":")[2]
    for name in (f"localhost:{port}", "localhost", "127.0.0.1:9", f"[::1]:{port}"):
        assert site.ask(Host=name)[0] == 200, name


def test_no_path_leads_out_of_the_runs(site: Site, tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text(to_json(a_run(7, 1.0)), encoding="utf-8")
    for path in (
        "run/../../secret.json",
        "run/..%2f..%2fsecret.json",
        "run/%2e%2e/secret",
        "../../etc/passwd",
        "run/",
    ):
        status, text = site.ask(path)
        assert status in (403, 404), path
        assert "What is q0?" not in text


def test_reports_that_were_named(tmp_path: Path) -> None:
    """Without a history; a run has the same page whether its id could be a path or not."""
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    for path, number in ((one, 1), (two, 2)):
        path.write_text(to_json(a_run(number, 0.5, 0.9)), encoding="utf-8")
    hostile = tmp_path / "three.json"
    hostile.write_text(to_json(a_run(3, 0.5)).replace(run_id(3), "../<b>"), encoding="utf-8")
    with serving(two, hostile, one) as site:
        page = site.ask()[1]
        assert 'href="run/..%2F%3Cb%3E"' in page
        assert "<b>" not in page
        assert site.ask("run/..%2F%3Cb%3E")[0] == 200
        assert ReadPage(site.ask(f"run/{run_id(2)}")[1]).shows("Trend over 2 runs")
        assert site.ask(f"compare?run={run_id(2)}&run={run_id(1)}")[0] == 200
        two.write_text(to_json(a_run(8, 0.5)), encoding="utf-8")
        one.unlink()
        assert [text[:30] for text in texts(site.ask()[1])[1:]] == [
            "2026-06-05 20:26 failed 1 pass",
            "2026-05-31 20:26 failed 1 pass",
            "2026-05-29 20:26 report delete",
        ]
        assert site.ask(f"run/{run_id(2)}")[0] == 404


def test_a_file_is_refused_before_anything_is_served(tmp_path: Path) -> None:
    broken = tmp_path / "a.json"
    broken.write_text("{}", encoding="utf-8")
    for path, said in ((broken, "no report of --ragbench-json"), (tmp_path / "b.json", "can't be read")):
        with pytest.raises(UsageError, match=said):
            Runs([path])
