"""What the page is to someone who can't see it, has no mouse, or prints it."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.report_html.pages import a_report, a_result, a_score
from tests.report_html.test_browser import CHUNKS, Opened

pytestmark = pytest.mark.browser

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
AXE = """async (rules) => {
  const found = await axe.run(document, { runOnly: rules });
  const told = (rule) => [rule.id, rule.nodes.map((node) => node.html.slice(0, 160))];
  return { passes: found.passes.length, violations: found.violations.map(told) };
}"""
DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
FOCUS = """() => {
  const node = document.activeElement, style = getComputedStyle(node);
  return [node.tagName, (node.textContent || node.id).trim().slice(0, 40), style.outlineStyle];
}"""
CONTROLS = {
    "button",
    "link",
    "combobox",
    "searchbox",
    "textbox",
    "img",
    "image",
    "group",
    "table",
    "columnheader",
}


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Opened:
    evidence = [{"text": "Bring the receipt.", "ok": True, "chunk": 1}, {"text": "It is 13.", "ok": False}]
    replies = [{"text": '{"verdicts": {}}', "task": "verify_claims", "judge": "gpt", "vote": 2}]
    score = a_score(0.5, evidence=evidence, replies=replies, details={"votes": [0.5, 0.6]}, reason="why")
    results = [
        a_result("first", 0.5, contexts=CHUNKS, scores=[score], tags=["a"], reference="It is 12."),
        a_result("second", 0.9, tags=["b"]),
        {
            "test": "t",
            "outcome": "passed",
            "scores": [a_score(0.9, sample=None, metric="mrr", tier="retrieval")],
        },
    ]
    gate = {"gate": "faithfulness >= 0.8", "metric": "faithfulness", "verdict": "UNDECIDED", "reason": "two"}
    moved = [{"question": "first", "old": 0.9, "new": 0.5}]
    compared = {"name": "main.json", "metrics": [{"metric": "faithfulness", "n_pairs": 2, "moved": moved}]}
    report = a_report(results, gates=[gate], baseline=compared, warnings=["careful"])
    return Opened(browser, tmp_path / "page.html", report)


def test_axe_finds_nothing_to_mend(opened: Opened) -> None:
    if find_spec("axe_playwright_python") is None:
        pytest.skip("no axe-core")
    import axe_playwright_python

    page = opened.page
    page.evaluate((Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))

    def check(what: str) -> None:
        page.evaluate("for (const node of document.querySelectorAll('details')) node.open = true")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.evaluate(DRAWN)
            found = page.evaluate(AXE, RULES)
            assert found["violations"] == [], (what, scheme)
            assert found["passes"] > 20

    check("the overview")
    page.click("#rows tbody a")
    page.wait_for_selector("#title")
    check("a question")


def test_everything_has_a_name_and_is_reached_by_tab(opened: Opened) -> None:
    page = opened.page
    session = page.context.new_cdp_session(page)

    def nameless() -> list[Any]:
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        told = [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]
        assert len({role for role, _ in told} & CONTROLS) > 2
        named = CONTROLS - {"table", "group"} | ({"group"} if page.is_visible("#title") else set())
        return [role for role, name in told if role in named and not name.strip()]

    assert nameless() == []
    seen: list[tuple[str, str]] = []
    for _ in range(60):
        page.keyboard.press("Tab")
        tag, text, style = page.evaluate(FOCUS)
        if tag == "BODY" or (tag, text) in seen[:1]:
            break
        seen.append((tag, text))
        assert style != "none", (tag, text)
    names = [text for _, text in seen]
    assert names[0] == "Skip to the questions"
    names = names[names.index("search") :]
    wanted = ["search", "outcome", "What is first?"]
    places = [next(place for place, name in enumerate(names) if name.startswith(each)) for each in wanted]
    assert places == sorted(places)  # filters, then the header's buttons, then the questions

    page.select_option("#by-tag", "b")
    assert page.inner_text("[role=status]") == "1 of 2 questions"
    page.click("#rows tbody a")
    page.wait_for_selector("#title")
    assert nameless() == []


def test_motion_forced_colours_and_paper(opened: Opened) -> None:
    page = opened.page
    moving = """[...document.querySelectorAll("*")].filter((node) => {
      const style = getComputedStyle(node);
      const moves = style.animationName !== "none" || parseFloat(style.transitionDuration) > 0;
      return moves || style.scrollBehavior === "smooth";
    }).length"""
    assert page.evaluate(moving) == 0  # nothing moves, so prefers-reduced-motion has nothing to stop
    page.emulate_media(forced_colors="active")
    assert page.evaluate("getComputedStyle(document.querySelector('.pill')).borderStyle") == "solid"
    page.emulate_media(forced_colors="none", media="print", color_scheme="dark")
    assert not page.is_visible(".filters")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.is_visible("#rows tbody a")
