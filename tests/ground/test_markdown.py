from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pytest_ragbench.clean import one_line
from pytest_ragbench.languages import DEFAULT, known_languages, language
from pytest_ragbench.metrics.registry import all_metrics
from pytest_ragbench.model.report import RunInfo
from pytest_ragbench.report.explanations import explanation
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.github import MAX_BYTES, GithubSummary
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
    measured = a_score(
        0.7, threshold=None, passed=None
    )  # it missed nothing, since nothing was asserted of it
    measuring = {**a_result("c", 0.9, scores=[measured]), "message": None}
    results = [a_result("a", 0.5), a_result("b", 0.9), measuring]
    text = markdown_report(a_report(results, gates=[gate]))
    assert text.splitlines()[0] == "## RAG quality: 1 failed, 2 passed"
    assert "| ❌ FAIL | faithfulness >= 0.8 | 0.500 | 0.3 is missing |" in text
    assert re.search(
        r"^\| generation \| faithfulness \| 0\.700 \| .* \| 3/3 \| 1/2 \| good \|$", text, re.MULTILINE
    )
    assert "- **What is a?**\n  - faithfulness 0.5, wanted >=0.8: the number 13 is in no chunk" in text


NASTY = [
    "<img src=x>", "[a](http://x)", "a|b\n| c |", "@team", "`x` and ``y``", "# h", "![a](b)", "http://evil.example",
    "**bold** _it_ snake_case __init__ ~~gone~~", "a\\|b\\", "$5 and $6",
    "www.evil.example a@b.example", "1. one", "- two",
    "C:\\new\\test", "Сколько стоит `доставка` | 12 $?", "保証期間は **2年間** です。|<b>", "&amp; &lt;",
    "<!-- x -->", "===",
    "***", "_a_b_", "a*b*c", "https://example.com/a_b_c?x=1&y=2#z", "foo_ _bar", "\\_",
]  # fmt: skip


def rendered(text: str) -> tuple[set[str], list[str]]:
    """Tags and lines of text that a reader sees, by a Markdown library with GitHub's tables and strikethrough."""
    html = MarkdownIt("gfm-like", {"linkify": False}).enable(["table", "strikethrough"]).render(text)
    tags = set(re.findall(r"<(\w+)", html))
    lines = [unescape(re.sub(r"<[^>]+>", "", line)) for line in re.split(r"</(?:li|td|th|p|h\d)>|\n", html)]
    return tags, [line for line in lines if line]


@settings(deadline=None, max_examples=60)
@given(st.text() | st.sampled_from(NASTY))
def test_no_text_becomes_markup(text: str) -> None:
    seen = " ".join(one_line(text, 180).split())
    gate = {"gate": text, "metric": "m", "verdict": "FAIL", "reason": text, "value": 0.5}
    result = a_result("a", 0.5, question=text, answer=text, reference=text) | {"message": text}
    report = markdown_report(a_report([result], gates=[gate]))
    tags, lines = rendered(report)
    assert tags <= {
        "h2",
        "h3",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "li",
        "strong",
        "span",
        "p",
    }
    assert not re.search(r"://|(?<!\w)@(?!<)|www\.", report)
    if seen:
        assert (len(seen) < 180 and [line.strip() for line in lines].count(seen) >= 3) or len(seen) >= 179
        assert f"reference: {seen}" in [line.strip() for line in lines] or len(seen) >= 179


def test_plain_texts_have_no_backslash() -> None:
    for text in (
        "It's 5 % - (see p. 3)! #4 + {x}",
        "Гарантия: 2 года.",
        "保証期間は2年間です。",
        "snake_case_name",
    ):
        assert "\\" not in markdown_report(a_report([a_result("a", 0.5, question=text, answer=text)]))


def test_the_worst_ten_have_what_it_takes_to_judge_them() -> None:
    claims = [
        {"text": "It opens at ten.", "ok": True},
        {"text": "It closes at six.", "ok": False, "reason": "no chunk says so"},
    ]
    results = [
        a_result(f"q{n}", 0.5, answer=f"Answer {n}", reference=f"Reference {n}", file="q.csv", line=n + 2)
        for n in range(12)
    ]
    for result in results:
        result["scores"][0]["evidence"] = claims
    text = markdown_report(a_report(results))
    assert text.count("\n- **") == 10
    entry = text[text.index("- **What is q0?**") :].partition("\n- **")[0].splitlines()
    assert entry == [
        "- **What is q0?** (q.csv:2)",
        "  - faithfulness 0.5, wanted >=0.8: the number 13 is in no chunk",
        "  - ✗ It closes at six. — no chunk says so",
        "  - answer: Answer 0",
        "  - reference: Reference 0",
    ]


def test_the_summary_keeps_to_the_length_that_github_shows(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    before = "x" * (MAX_BYTES - 300)
    for kept in (before, "x" * MAX_BYTES):
        path.write_text(kept, encoding="utf-8")
        list(
            GithubSummary(path, ReportContext(RunInfo(id="r", started=1.0))).finish(
                a_report([a_result("я" * 90, 0.5)] * 9)
            )
        )
        text = path.read_text(encoding="utf-8")
        assert path.stat().st_size <= MAX_BYTES
        assert ("RAG quality" in text) == ("left out" in text) == (kept is before)


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
    assert "- **B?**\n  - it is blue" in markdown_report(a_report([whole]))
