from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.report.html import html_report, write_html
from pytest_ragbench.report.html.payload import Texts, payload
from pytest_ragbench.report.rows import rows_of, worst
from tests.report_html.pages import ReadPage, a_report, a_result, a_score

HOSTILE = st.text() | st.sampled_from(
    [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "]]>",
        '"><svg onload=alert(2)>',
        "{{ 7 * 7 }}",
        "{% raw %}",
        "\u2028\u2029",
        "javascript:alert(1)",
        "\x00",
        "<img src=x onerror=alert(1)>",
    ]
)


@settings(max_examples=20, deadline=None)
@given(name=HOSTILE, answer=HOSTILE, said=HOSTILE)
def test_nothing_in_a_run_becomes_markup(name: str, answer: str, said: str) -> None:
    score = a_score(0.1, error_message=said, evidence=[{"text": said, "ok": False}], details={said: said})
    tags = {"tags": [name], "contexts": [answer], "context_ids": [said]}
    result = a_result(name, 0.1, answer=answer, scores=[score], **tags)
    page = ReadPage(html_report(a_report([result], warnings=[said], lost=[name])))
    assert page.problems == []
    [row] = json.loads(page.blocks[0])["questions"]
    assert (row["answer"], row.get("id", "")) == (answer, name)
    assert not set("<>&\u2028\u2029") & set(page.blocks[0])


def test_the_page_tells_what_the_run_came_to() -> None:
    set_score = a_score(
        0.9,
        sample=None,
        metric="ndcg@10",
        tier="retrieval",
        details={"n_scored": 2, "n_total": 2, "min": 0.8, "max": 1.0},
    )
    broken = {
        **a_result("down", None, scores=[]),
        "outcome": "error",
        "kind": "endpoint",
        "samples": [],
        "message": "HTTP 503",
    }
    over = {"test": "test_a.py::test_set", "outcome": "passed", "scores": [set_score]}
    page = ReadPage(html_report(a_report([a_result("good", 0.95), a_result("bad", 0.5), broken, over])))
    for told in (
        "2 passed, 1 failed, 1 error",
        "What is bad?",
        "faithfulness",
        "ndcg@10",
        "0.725",
        "HTTP 503",
        "test_a.py::test_set",
    ):
        assert page.shows(told), told
    assert not page.shows("What is good?")  # of the questions only the worst are told twice


def test_a_question_of_several_tests_is_one_row() -> None:
    retrieval = {
        **a_result("a"),
        "test": "test_b.py::test[a]",
        "outcome": "passed",
        "scores": [a_score(1.0, metric="mrr")],
    }
    whole = {
        "test": "test_b.py::test_all",
        "outcome": "failed",
        "samples": [*a_result("a")["samples"], *a_result("b")["samples"]],
        "scores": [a_score(0.0, sample=1, passed=None, threshold=None)],
        "question_id": "a",
    }
    rows = rows_of(a_report([a_result("a", 0.9), retrieval, whole]))
    assert [(row.sample.id, row.outcome, len(row.tests), len(row.scores)) for row in rows] == [
        ("a", "passed", 2, 2),
        ("b", "scored", 0, 1),
    ]
    assert worst(rows, 5) == []
    [_, told] = payload(rows, Texts())
    assert told["scores"][0]["value"] == 0.0  # a zero is a value
    assert "passed" not in told["scores"][0]


def test_the_worst_come_first_and_chunks_are_sent_once() -> None:
    chunk = "A long chunk."
    rows = rows_of(
        a_report(
            [a_result(name, value, contexts=[chunk]) for name, value in (("a", 0.7), ("b", 0.1), ("c", 0.9))]
        )
    )
    assert [row.sample.id for row in worst(rows, 5)] == ["b", "a"]
    texts = Texts()
    assert [row["contexts"] for row in payload(rows, texts)] == [[0], [0], [0]]
    assert texts.all == [chunk]


def test_replies_are_packed_by_the_hundred() -> None:
    texts = [f"</script>{number} Причина: 返品" for number in range(250)]
    results = [
        a_result(
            f"q{n}", scores=[a_score(0.5), a_score(0.5, metric="x", replies=[{"text": text, "vote": 1}])]
        )
        for n, text in enumerate(texts)
    ]
    page = ReadPage(html_report(a_report(results)))
    data, packed = (json.loads(block) for block in page.blocks)
    packs = [json.loads(zlib.decompress(base64.b64decode(pack))) for pack in packed]
    assert [len(pack) for pack in packs] == [100, 100, 50]
    assert packs[2][7] == [[], [{"text": texts[207], "vote": 1}]]
    assert [score.get("replies") for score in data["questions"][207]["scores"]] == [0, 1]
    assert page.problems == []
    assert ReadPage(html_report(a_report([a_result("a")]))).blocks[1] == "[]"


def test_the_trend_has_the_metrics_that_earlier_runs_have_too() -> None:
    def run(mean: float, name: str = "mrr") -> dict[str, object]:
        return {"metrics": [{"metric": name, "tier": "retrieval", "mean": mean}]}

    reports = [a_report([], summary=run(mean), run={"git": {"commit": "abcdef1234"}}) for mean in (0.5, 0.75)]
    page = ReadPage(html_report(reports[1], trend=reports[:1]))
    [series] = json.loads(page.blocks[0])["trend"]["series"]
    assert series == {"name": "mrr", "values": [0.5, 0.75]}
    assert page.shows("abcdef1")
    other = ReadPage(html_report(a_report([], summary=run(1.0, "map")), trend=reports))
    assert "trend" not in json.loads(other.blocks[0])


def test_a_page_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    write_html(tmp_path / "new" / "page.html", a_report([]))
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(UsageError, match="page.html/x: can't be written"):
        write_html(tmp_path / "new" / "page.html" / "x", a_report([]))


def test_gates_and_the_baseline_are_shown() -> None:
    gate = {
        "gate": "faithfulness >= 0.85",
        "metric": "faithfulness",
        "verdict": "UNDECIDED",
        "reason": "12 more would tell",
    }
    compared = {
        "metric": "faithfulness",
        "mean_difference": -0.4,
        "moved": [{"question": "a", "old": 0.9, "new": 0.5}],
    }
    old = a_report([a_result("a", 0.9, answer="It was 12.")])
    report = a_report(
        [a_result("a", 0.5)], gates=[gate], baseline={"name": "main.json", "metrics": [compared]}
    )
    page = ReadPage(html_report(report, baseline=old))
    for told in (
        "UNDECIDED",
        "faithfulness >= 0.85",
        "12 more would tell",
        "main.json",
        "-0.400",
        "0.90 → 0.50",
    ):
        assert page.shows(told), told
    [row] = json.loads(page.blocks[0])["questions"]
    assert row["baseline"] == {"answer": "It was 12.", "scores": {"faithfulness": 0.9}}
