"""The page in Chromium: what only a browser can tell."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.calibration.labels import read_labels
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.money import dollars
from pytest_ragbench.report.html import write_html
from tests.ground.test_money import AMOUNTS
from tests.report_html.pages import a_report, a_result, a_score

pytestmark = pytest.mark.browser
TOPICS = ("refunds", "возврат", "返品", "доставка")
CHUNKS = ["Delivery takes two days. To return a product, bring the receipt.", "The shop is blue. It is red."]


class Opened:
    """A page in a browser; whatever it complained of is in ``complaints``."""

    def __init__(self, browser: Any, path: Path, report: RunReport, **context: Any) -> None:
        write_html(path, report)
        self.page = browser.new_context(accept_downloads=True, **context).new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("#pager")

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append("a dialog")
        dialog.dismiss()

    def wait(self, selector: str, text: str) -> None:
        self.page.locator(selector).filter(has_text=text).wait_for()

    def rows(self) -> list[str]:
        found: list[str] = self.page.locator("#rows tbody tr td.q a").all_inner_texts()
        return found


def many(count: int) -> RunReport:
    results = []
    for number in range(count):
        topic = TOPICS[number % 4]
        results.append(
            a_result(f"{topic}-{number}", (number % 11) / 10, tags=[topic], contexts=CHUNKS, latency=0.1)
        )
    return a_report(results)


def test_ten_thousand_questions_are_searched_filtered_and_sorted(browser: Any, tmp_path: Path) -> None:
    opened = Opened(browser, tmp_path / "page.html", many(10_000))
    page = opened.page
    assert "10000 of 10000" in page.inner_text("#pager")
    assert len(opened.rows()) == 50
    page.fill("#search", "ВОЗВРАТ-4001")
    opened.wait("#pager", "1 of 10000")
    assert opened.rows() == ["What is возврат-4001?"]
    page.fill("#search", "返品")
    opened.wait("#pager", "2500 of")
    page.select_option("#by-outcome", "passed")
    page.select_option("#by-tag", "返品")
    page.select_option("#by-metric", "faithfulness")
    page.click("#head-faithfulness")
    assert page.inner_text("#rows tbody tr:first-child td:nth-child(3)") == "0.800"
    page.click("#head-faithfulness")
    assert page.inner_text("#rows tbody tr:first-child td:nth-child(3)") == "1.000"
    assert page.get_attribute("th:has(#head-faithfulness)", "aria-sort") == "descending"
    page.click("#after")
    assert "Page 2" in page.inner_text("#pager")
    assert opened.complaints == []
    assert opened.requests == [page.url.partition("#")[0]]


def test_a_question_by_keyboard_and_its_marks_saved(browser: Any, tmp_path: Path) -> None:
    evidence = [
        {"text": "Bring the receipt to return a product.", "ok": True, "chunk": 1},
        {"text": "It is 13.", "ok": False, "reason": "the number 13 is in no chunk"},
    ]
    scores = [a_score(0.5, evidence=evidence, reason="the number 13 is in no chunk")]
    report = a_report(
        [
            a_result("first", 0.5, contexts=CHUNKS, scores=scores, reference="It is\u202812."),
            a_result("second", 0.9),
        ]
    )
    opened = Opened(browser, tmp_path / "page.html", report)
    page = opened.page
    page.focus("#rows tbody tr:first-child a")
    page.keyboard.press("Enter")
    page.wait_for_selector("#title")
    assert page.evaluate("document.activeElement.id") == "title"
    assert page.inner_text(".chunk mark").startswith("To return a product, bring the receipt.")
    assert page.inner_text("mark.no").startswith("It is 13.")
    cells = page.locator(".matrix tbody tr").nth(1).locator("td").all_inner_texts()
    assert [cell[:1] for cell in cells] == ["", "", "✗"]

    page.locator("ul.evidence li").nth(1).get_by_role("button", name="Wrong").click()
    page.get_by_label("Remark on: It is 13.").fill('it\'s in the "second" chunk')
    page.get_by_role("group", name="faithfulness 0.500").get_by_role("button", name="Right").click()
    page.reload()
    page.wait_for_selector("#save")
    with page.expect_download() as download:
        page.click("#save")
    saved = Path(download.value.path())
    lines = [json.loads(line) for line in saved.read_text(encoding="utf-8").splitlines()]
    assert [label.human_verdict for label in read_labels(saved)] == [line["human_verdict"] for line in lines]
    claim, whole = sorted(lines, key=lambda line: line["claim"] is None)
    assert claim.items() >= {
        "question_id": "first", "metric": "faithfulness", "claim": "It is 13.", "verdict": False, "label": "wrong",
        "human_verdict": True, "remark": "it's in the \"second\" chunk", "question": "What is first?",
        "answer": "It is 13. It is blue.", "contexts": CHUNKS, "evidence": 1, "reference": "It is\u202812.",
    }.items()  # fmt: skip
    assert (whole["claim"], whole["verdict"], whole["label"], whole["human_verdict"]) == (
        None,
        False,
        "right",
        False,
    )
    page.keyboard.press("n")
    opened.wait("#title", "What is second?")
    page.keyboard.press("Escape")
    opened.wait("#overview", "What is first?")
    assert opened.complaints == []


def test_hostile_texts_stay_texts(browser: Any, tmp_path: Path) -> None:
    texts = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", '"><svg onload=alert(3)>']
    evidence = [{"text": text, "ok": False, "reason": text, "chunk": 1} for text in texts]
    details = {
        texts[0]: texts[1],
        "votes": [0.1, 0.2],
        "panel": {texts[1]: 0.1},
        "panel_failed": {"a": texts[2]},
    }
    replies = [{"text": f"{text}\ud800\u202e", "judge": text, "task": text, "cut": 7} for text in texts]
    score = a_score(0.1, error_message=texts[2], evidence=evidence, details=details, replies=replies)
    result = a_result(texts[0], 0.1, answer=" ".join(texts), contexts=texts, tags=[texts[1]], scores=[score])
    opened = Opened(browser, tmp_path / "page.html", a_report([result]))
    opened.page.click("#rows tbody a")
    opened.page.wait_for_selector("#title")
    opened.page.get_by_text("judge's replies (3)").click()
    opened.wait("figure.reply pre", texts[2])
    assert "7 more characters" in opened.page.inner_text("figure.reply:last-child")
    assert "0.100, 0.200" in opened.page.inner_text("dl.meta:has(dt:text-is('votes'))")
    assert opened.page.locator("img, iframe, main svg[onload]").count() == 0
    assert all(text in opened.page.inner_text("#question") for text in texts)
    assert opened.complaints == []
    assert opened.page.evaluate(INJECT) == "undefined"
    assert "Content Security Policy" in opened.complaints[0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_small_screens_do_not_scroll_sideways_and_texts_can_be_read(
    browser: Any, tmp_path: Path, scheme: str
) -> None:
    long_name = "test_" + "very_" * 30
    report = a_report([a_result(long_name, 0.5, contexts=["x" * 300]), a_result("b", 0.9)])
    opened = Opened(
        browser, tmp_path / "page.html", report, color_scheme=scheme, viewport={"width": 390, "height": 800}
    )
    wide = "document.documentElement.scrollWidth <= window.innerWidth"
    assert opened.page.evaluate(wide)
    contrasts = opened.page.evaluate(CONTRASTS)
    assert contrasts
    assert {text: ratio for text, ratio in contrasts if ratio < 4.5} == {}
    opened.page.click("#rows tbody a")
    opened.page.wait_for_selector("#title")
    assert opened.page.evaluate(wide)


# Were a text to become markup after all, the page's policy would not let it run.
INJECT = """() => {
  const script = document.createElement("script");
  script.textContent = "window.ran = true";
  document.body.append(script);
  return typeof window.ran;
}"""
# WCAG 2.2, 1.4.3: the contrast of each element's text with the first opaque background behind it.
CONTRASTS = """() => {
  const light = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map(Number).map((part) => {
      part /= 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = getComputedStyle(node).backgroundColor;
      if (!/, 0\\)$/.test(color) && color !== "transparent") return color;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll("h1,h2,p,td,th,dt,dd,a,.pill,button,label,figcaption")]
    .filter((node) => node.textContent.trim() && node.offsetParent && !node.disabled)
    .map((node) => {
      const pair = [light(getComputedStyle(node).color), light(behind(node))].sort((a, b) => b - a);
      return [node.textContent.trim().slice(0, 40), (pair[0] + 0.05) / (pair[1] + 0.05)];
    });
}"""


def test_money_is_written_as_in_the_terminal(browser: Any, tmp_path: Path) -> None:
    """The page's script has the only second copy of ``money.py``."""
    page = Opened(browser, tmp_path / "page.html", many(1)).page
    chance = random.Random(7)
    amounts = [cost for cost, _ in AMOUNTS if cost is not None]
    amounts += [chance.uniform(1, 10) * 10.0 ** chance.randint(-9, 6) for _ in range(2000)]
    amounts += [chance.randint(1, 4000) / 32 for _ in range(500)]  # ties in binary
    assert page.evaluate("amounts => amounts.map(dollars)", amounts) == [dollars(cost) for cost in amounts]


def test_systems_of_one_run_are_told_apart(browser: Any, tmp_path: Path) -> None:
    """Both give the same answer to the same question, and are two rows all the same."""
    results = [
        {**a_result("a", value), "test": f"test_a.py::test_answer[{system}-a]", "system": system}
        for system, value in (("small", 0.9), ("large", 0.5))
    ]
    opened = Opened(browser, tmp_path / "page.html", a_report(results))
    page, rows = opened.page, opened.page.locator("#rows tbody tr")
    assert rows.count() == 2
    page.select_option("#by-system", "large")
    assert rows.count() == 1
    assert rows.locator("td.q .pill").all_inner_texts() == ["large"]
    page.click("#reset")
    assert rows.count() == 2
    page.goto(f"{(tmp_path / 'page.html').as_uri()}#q=0")
    opened.wait("#question dl", "small")
    means = page.locator("section[aria-labelledby='h-metrics'] tbody th").all_text_contents()
    named = [name.partition("what is it?")[0] for name in means]
    assert named[-2:] == ["faithfulness (large)", "faithfulness (small)"]
    assert opened.complaints == []
