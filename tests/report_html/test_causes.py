"""What the page shows of failures grouped by cause."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench.report.html import html_report
from tests.ground.test_causes import lacking
from tests.report_html.pages import ReadPage, a_report, a_result
from tests.report_html.test_browser import Opened


def test_the_page_opens_with_gates_and_causes() -> None:
    gate = {"gate": "faithfulness >= 0.8", "metric": "faithfulness", "verdict": "FAIL", "reason": "below"}
    whole = {"test": "t.py::test_all", "outcome": "failed", "kind": "quality", "message": "ndcg 0.7"}
    results = [*(lacking(f"q{n}", f"doc-{n // 2}.md") for n in range(26)), whole]
    text = html_report(a_report(results, gates=[gate]))
    headings = [text.index(f">{name}<") for name in ("Gates", "What failed, by cause", "The run")]
    assert headings == sorted(headings)
    assert text.index("Distributions") > headings[-1]
    page = ReadPage(text)
    assert page.problems == []
    for said in ("26 of 26 questions failed", "13 causes", "3 more causes", "t.py::test_all: ndcg 0.7"):
        assert page.shows(said), said


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_cause_is_shown_in_the_table_and_the_filter_stays_in_sight(
    browser: Any, tmp_path: Any, width: int
) -> None:
    results = [lacking(f"q{n}", "x.md" if n % 2 else "y.md") for n in range(160)]
    size = {"width": width, "height": 800}
    opened = Opened(browser, tmp_path / "page.html", a_report([*results, a_result("z", 0.9)]), viewport=size)
    page = opened.page
    page.focus("a[href='#cause=1']")
    page.keyboard.press("Enter")
    opened.wait("#count", "80 of 161 questions")
    assert page.evaluate("document.activeElement.id") == "questions"
    chosen = page.input_value("#by-cause")
    page.mouse.wheel(0, 1500)
    page.wait_for_function("window.scrollY > 1000")
    bar = page.locator(".stuck").bounding_box()
    assert 0 <= bar["y"] < 5
    assert bar["height"] < 800 / 3
    assert page.is_visible("#by-outcome") == (width > 1000)
    page.fill("#search", "q11")
    opened.wait("#count", "5 of 161 questions")
    page.click("#rows tbody a >> nth=0")
    page.wait_for_selector("#title")
    page.keyboard.press("Escape")
    opened.wait("#count", "5 of 161 questions")
    page.click("#reset")
    opened.wait("#count", "161 of 161 questions")
    assert chosen == "1"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert opened.complaints == []
