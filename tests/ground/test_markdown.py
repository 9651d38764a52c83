from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.languages import DEFAULT, known_languages, language
from pytest_ragbench.metrics.registry import all_metrics
from pytest_ragbench.model.report import RunInfo
from pytest_ragbench.report.explanations import explanation
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.github import GithubSummary
from pytest_ragbench.report.markdown import github_annotations, markdown_report
from tests.report_html.pages import a_report, a_result, a_score

GIT = {"git": {"commit": "abc", "directory": "tests/rag"}}


def test_the_summary() -> None:
    gate = {
        "gate": "faithfulness >= 0.8",
        "metric": "faithfulness",
        "verdict": "FAIL",
        "reason": "0.3 is missing",
        "value": 0.5,
    }
    text = markdown_report(a_report([a_result("a", 0.5), a_result("b", 0.9)], gates=[gate]))
    assert text.splitlines()[0] == "## RAG quality: 1 failed, 1 passed"
    assert "| ❌ FAIL | faithfulness &gt;= 0.8 | 0.500 | 0.3 is missing |" in text
    assert "| generation | faithfulness | 0.700 | 0.106 … 0.965 | 2/2 | 1/2 | good |" in text
    assert "- **What is a?** — faithfulness 0.5, wanted &gt;=0.8: the number 13 is in no chunk" in text


@settings(deadline=None)
@given(
    st.text()
    | st.sampled_from(
        [
            "<img src=x>",
            "[a](http://x)",
            "a|b\n| c |",
            "@team",
            "`x`",
            "# h",
            "![a](b)",
            "http://evil.example",
        ]
    )
)
def test_no_text_becomes_markup(text: str) -> None:
    lines = markdown_report(a_report([a_result("a", 0.5, question=text)])).splitlines()
    [line] = [line for line in lines if line.startswith("- **")]
    assert not re.search(r"(?<!\\)[\[\]`|]|<|>(?!=)|@|://", line.removeprefix("- **"))
    assert len(lines) == len(markdown_report(a_report([a_result("a", 0.5)])).splitlines())


def test_annotations_point_at_the_question() -> None:
    bad = a_result("a", 0.5, question="50%: really,\nso?", file="q.csv", line=14)
    report = a_report([bad, a_result("b", 0.9, file="q.csv", line=15), a_result("c", 0.5)], run=GIT)
    assert list(github_annotations(report)) == [
        "::error file=tests/rag/q.csv,line=14,title=50%25%3A really%2C so?"
        "::faithfulness 0.5, wanted >=0.8: the number 13 is in no chunk",
        "::error title=What is c?::faithfulness 0.5, wanted >=0.8: the number 13 is in no chunk",
    ]
    assert len(list(github_annotations(a_report([a_result(str(place)) for place in range(50)])))) == 10


def test_github_gets_the_summary_and_the_annotations(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n", encoding="utf-8")
    github = GithubSummary(path, ReportContext(RunInfo(id="r", started=1.0)))
    assert len(list(github.finish(a_report([a_result("a", 0.5)])))) == 1
    assert path.read_text(encoding="utf-8").startswith("before\n## RAG quality: 1 failed")
    # A run that has nothing to do with RAG.
    assert list(github.finish(a_report([{"test": "t", "outcome": "failed"}]))) == []


def test_each_metric_is_explained_in_each_language() -> None:
    told = {lang: language(lang).data("explanations") for lang in known_languages() if lang != DEFAULT}
    ours = {
        name
        for name, metric in all_metrics().items()
        if metric.compute.__module__.startswith("pytest_ragbench.") and not name.startswith("test_")
    }
    assert {"ru", "ja"} <= set(told)
    cut = {name for name in ours if not explanation(name)}  # those that are asked for as recall@5 only
    assert [name for name in cut if not explanation(f"{name}@5")] == []
    assert len(cut) < 10
    for lang, texts in told.items():
        assert ours - set(texts) == set(), lang
        assert set(texts) - ours == set(), lang
        assert len(set(texts.values())) == len(texts)
    assert explanation("ndcg@10", "ru") == told["ru"]["ndcg"]
    assert explanation("search_rag_groundedness", "ja") == told["ja"]["search_rag"]
    assert "1 / its rank" in (explanation("mrr", "en") or "")
    assert explanation("nobody_knows") is None


def test_scores_without_a_message_are_told_by_their_reason() -> None:
    whole = {"test": "t", "outcome": "failed", "samples": [{"question": "A?"}, {"question": "B?"}],
             "scores": [a_score(0.1, sample=1, reason="it is blue")]}  # fmt: skip
    assert "- **B?** — it is blue" in markdown_report(a_report([whole]))
