"""Several runs side by side: numbers against scipy, the command, and the page in Chromium."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pytest_ragbench.cli import run as command
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.report.html.matrix import write_matrix
from pytest_ragbench.report.matrix import Contest, Matrix, matrix_of
from pytest_ragbench.report.reading import report_from
from tests.gates.runs import report, run

GOOD = [0.9, 0.8, 1.0, 0.9, 0.7, 0.9, 1.0, 0.8, 0.9, 1.0, 0.9, 0.8]
POOR = [0.5, 0.6, 0.4, 0.9, 0.2, 0.5, 0.6, 0.3, 0.5, 0.4, 0.6, 0.5]
NEAR = [0.9, 0.9, 1.0, 0.8, 0.7, 1.0, 0.9, 0.8, 0.8, 1.0, 1.0, 0.8]


def a_run(values: list[float], **more: Any) -> RunReport:
    return report_from(report(run(values, limit=0.75, **more)))


def the_contest(matrix: Matrix) -> Contest:
    (contest,) = matrix.contests
    return contest


def test_who_is_ahead_and_whether_by_chance() -> None:
    matrix = matrix_of([("good", a_run(GOOD)), ("poor", a_run(POOR)), ("near", a_run(NEAR))])
    contest = the_contest(matrix)
    assert contest.means == pytest.approx((np.mean(GOOD), np.mean(POOR), np.mean(NEAR)))
    assert contest.n == 12
    assert contest.wins == (2, 0, 3)  # where two share the best score nobody is alone
    raw = []
    for one, other in ((GOOD, POOR), (GOOD, NEAR), (POOR, NEAR)):
        pairs = (np.array(one), np.array(other))
        options: dict[str, Any] = {"permutation_type": "samples", "n_resamples": np.inf}
        sides = [
            stats.permutation_test(pairs, lambda x, y: np.mean(x - y), alternative=way, **options).pvalue
            for way in ("less", "greater")
        ]
        raw.append(min(1.0, 2 * min(sides)))
    first, second, third = (duel.p for duel in contest.duels)
    assert first == pytest.approx(
        3 * min(raw[0], raw[2]), rel=0.01
    )  # Holm: the smallest of three counts thrice
    assert third is not None
    assert third < 0.05
    assert second is not None
    assert second > 0.05
    assert [(duel.better, duel.worse) for duel in contest.duels if duel.is_real] == [(0, 1), (2, 1)]
    said = matrix.said(contest)
    assert "good is better than poor by 0.383 (p 0.00" in said
    assert "can't be told apart" in said


def test_lower_is_better_turns_everything_round() -> None:
    better, worse = (
        a_run([0.1] * 11 + [0.3], metric="hallucination"),
        a_run([0.5] * 11 + [0.3], metric="hallucination"),
    )
    contest = the_contest(matrix_of([("b", better), ("w", worse)]))
    assert contest.best == 0
    assert contest.wins == (11, 0)
    assert [(duel.better, duel.worse, duel.is_real) for duel in contest.duels] == [(0, 1, True)]


def test_few_questions_are_no_proof() -> None:
    matrix = matrix_of([("a", a_run([1.0] * 4)), ("b", a_run([0.0] * 4))])
    assert the_contest(matrix).duels[0].p is None
    assert matrix.said(the_contest(matrix)) == "no difference that chance could not make"


def test_other_questions_are_shown_and_not_compared() -> None:
    matrix = matrix_of([("a", a_run(GOOD)), ("b", a_run(POOR[:6]))])
    contest = the_contest(matrix)
    assert contest.n == 6
    assert contest.means[0] == pytest.approx(np.mean(GOOD[:6]))
    assert "a and b can't be compared: 6 questions dropped" in matrix.said(contest)
    assert {line.name for line in matrix.lines if line.cells[1] is None} == {f"q{n}" for n in range(6, 12)}


def test_the_most_different_questions_come_first() -> None:
    matrix = matrix_of([("a", a_run([0.9, 0.9, 0.9])), ("b", a_run([0.9, 0.1, 0.5]))])
    assert [line.name for line in matrix.lines] == ["q1", "q2", "q0"]
    assert [line.spread for line in matrix.lines] == pytest.approx([0.8, 0.4, 0.0])


@pytest.mark.parametrize(
    ("names", "metrics", "said"),
    [
        (["a"], (), "two runs or more"),
        (["a", "a"], (), "two runs are called 'a'"),
        (["a", "b"], ("faithfulnes",), "no run has scores of 'faithfulnes'"),
    ],
)
def test_what_makes_no_matrix(names: list[str], metrics: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        matrix_of([(name, a_run(GOOD)) for name in names], metrics)


def test_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, values in (("good", GOOD), ("poor", POOR)):
        (tmp_path / f"{name}.json").write_text(json.dumps(report(run(values, limit=0.75))))
    assert command(["matrix", "good.json", "weak=poor.json", "--questions", "1"]) == 0
    out = capsys.readouterr().out
    assert "good is better than weak by 0.383" in out
    assert "[q2] What is q2?" in out
    assert "10 more questions differ" in out
    assert command(["matrix", "good.json", "poor.json", "--json", "-o", "page.html"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["metrics"][0]["wins"] == {"good": 11, "poor": 0}
    assert data["metrics"][0]["pairs"][0]["more_than_chance"] is True
    assert "good is better than poor" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert command(["matrix", "good.json", "nowhere.json"]) == 4
    assert command(["matrix", "good.json", "poor.json", "-o", "page.pdf"]) == 4
    assert command(["matrix", "good.json"]) == 4


def answered(texts: list[str]) -> RunReport:
    results = run([0.9, 0.8], limit=0.75)
    return report_from(
        report(
            [
                replace(each, samples=(replace(each.samples[0], answer=text),))
                for each, text in zip(results, texts, strict=True)
            ]
        )
    )


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_page(browser: Any, tmp_path: Path, width: int) -> None:
    attack = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"
    runs = [
        ("one", answered(["It takes two days.", "返品は30日以内です。"])),
        ("two", answered(["It takes nine days.", "返品は90日以内です。"])),
    ]
    runs.append(("three", answered([attack, "返品は30日以内です。"])))
    write_matrix(tmp_path / "m.html", matrix_of(runs))
    page = browser.new_context(viewport={"width": width, "height": 900}, color_scheme="dark").new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((tmp_path / "m.html").as_uri())
    assert page.locator("#count").inner_text() == "0 of 2 questions"  # all scores are the same
    page.select_option("#only", "all")
    assert page.locator("#count").inner_text() == "2 of 2 questions"
    marks = page.locator("#rows mark").all_inner_texts()
    assert "nine" in marks
    assert "90" in marks
    assert attack in page.locator("#rows td").all_inner_texts()[2]
    page.fill("#search", "nine")
    assert page.locator("#count").inner_text() == "1 of 2 questions"
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert complaints == []
