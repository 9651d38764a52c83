"""``ragbench view`` in Chromium: what a person does with it in a day."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.calibration.labels import read_labels
from pytest_ragbench.report.history import History
from tests.report_html.conftest import chromium
from tests.report_html.test_accessibility import AXE, RULES
from tests.view.conftest import Site, run_id, serving

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """For this file alone: beside its event loop the command has none of its own."""
    with chromium() as started:
        yield started


class Visit:
    """A tab; whatever the browser complained of is in ``complaints``."""

    def __init__(self, browser: Any, **context: Any) -> None:
        self.page = browser.new_context(**context).new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: dialog.accept())

    def open_question(self, number: int) -> None:
        self.page.locator("#rows tbody a").nth(number).click()
        self.page.wait_for_selector("#title")

    def mark(self, verdict: str, name: str) -> None:
        self.page.get_by_role("group", name=verdict).get_by_role("button", name=name).click()

    def wait_for_bar(self, text: str) -> None:
        self.page.locator("#savebar").filter(has_text=text).wait_for()

    def fits(self) -> bool:
        """Nothing is wider than the window, but for tables that scroll by themselves."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

    def mends(self, axe: str) -> Any:
        self.page.evaluate(axe)
        return self.page.evaluate(AXE, RULES)["violations"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_a_run_is_opened_labelled_and_compared(
    browser: Any, site: Site, history: History, width: int, scheme: str
) -> None:
    axe = (
        Path(pytest.importorskip("axe_playwright_python").__file__).with_name("axe.min.js").read_text("utf-8")
    )
    visit = Visit(browser, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = visit.page
    page.goto(site.address)
    assert visit.fits()
    assert page.locator("tbody tr").count() == 4
    mean = page.locator("tbody tr:first-child td.num").bounding_box()
    assert mean["x"] + mean["width"] <= width, "seen without scrolling sideways"
    assert visit.mends(axe) == []

    page.click("tbody tr:first-child a")
    page.wait_for_selector("#pager")
    assert visit.fits()
    visit.open_question(0)
    visit.mark("It is 13.", "Wrong")
    visit.wait_for_bar("1 label of this run in")
    page.get_by_label("Remark on: It is 13.").fill("it's in the second chunk")
    page.keyboard.press("Tab")
    visit.mark("faithfulness 0.900", "Right")
    visit.wait_for_bar("2 labels of this run")
    assert visit.fits()

    page.reload()
    visit.wait_for_bar("2 labels of this run")
    wrong = page.get_by_role("group", name="It is 13.").get_by_role("button", name="Wrong")
    assert wrong.get_attribute("aria-pressed") == "true"
    assert page.get_by_label("Remark on: It is 13.").input_value() == "it's in the second chunk"
    labels = read_labels(history.path.parent / "labels.jsonl")
    assert [(each.run, each.question_id, each.claim, each.human_verdict, each.remark) for each in labels] == [
        (run_id(4), "q0", "It is 13.", True, "it's in the second chunk"),
        (run_id(4), "q0", None, True, ""),
    ]

    page.click("nav a[href='../']")
    page.locator("tbody input").nth(0).check()
    page.locator("tbody input").nth(1).check()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_selector("#rows tr")
    assert page.locator("table.answers thead th").all_inner_texts() == ["question", "разбивка", "main"]
    assert visit.fits()
    page.click("nav a[href='.']")
    page.wait_for_selector("table.runs")
    assert visit.complaints == []


def test_two_tabs_keep_their_labels_and_a_mark_can_be_taken_back(
    browser: Any, site: Site, history: History
) -> None:
    one, other = Visit(browser), Visit(browser)
    for visit in (one, other):
        visit.page.goto(f"{site.address}run/{run_id(4)}")
        visit.page.wait_for_selector("#pager")
    one.open_question(0)
    one.mark("It is 13.", "Wrong")
    one.wait_for_bar("1 label")
    other.open_question(1)
    other.mark("It is 13.", "Right")
    other.wait_for_bar("1 label")
    one.page.reload()
    one.wait_for_bar("2 labels of this run")
    one.mark("It is 13.", "Wrong")  # once more: no mark
    one.wait_for_bar("1 label of this run")
    other.page.reload()
    other.wait_for_bar("1 label of this run")
    other.page.get_by_role("button", name="Forget all").click()
    other.page.wait_for_selector("#savebar", state="hidden")
    one.page.reload()
    one.page.wait_for_selector("#title")
    assert one.page.locator("#savebar").is_hidden()
    other.page.wait_for_function("!unsaved")
    assert (history.path.parent / "labels.jsonl").read_text(encoding="utf-8") == ""
    assert one.complaints + other.complaints == []


def test_a_label_that_can_not_be_saved_is_not_forgotten(browser: Any, history: History) -> None:
    path = history.path.parent / "labels.jsonl"
    with serving(history.path) as site:
        visit = Visit(browser)
        visit.page.goto(f"{site.address}run/{run_id(4)}")
        visit.page.wait_for_selector("#pager")
        visit.open_question(0)
        path.write_text("damaged\n", encoding="utf-8")
        visit.mark("It is 13.", "Wrong")
        visit.wait_for_bar("Not saved: ")
        visit.wait_for_bar("labels.jsonl:1: no JSON")
        path.unlink()
        visit.page.get_by_role("button", name="Try again").click()
        visit.wait_for_bar("1 label of this run")
        assert len(read_labels(path)) == 1
    visit.mark("It is 13.", "Right")
    visit.wait_for_bar("ragbench view does not answer")
    assert visit.page.evaluate("unsaved") is True
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Save labels (1)").click()
    assert [label.human_verdict for label in read_labels(Path(download.value.path()))] == [False]
