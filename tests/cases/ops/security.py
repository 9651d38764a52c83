"""Hostile texts: in prompts, in reports, in tables, in names of files."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_ragbench import assert_search_rag
from pytest_ragbench.judge.rendering import nonce_for, render
from pytest_ragbench.judge.tasks import GradeSearchRag
from tests.cases import product
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op
from tests.report_html.pages import ReadPage


@op("render_prompt")
def render_prompt(given: Input) -> Outcome:
    """Where the texts under judgement stand in what a judge is sent."""
    sample = product.sample_of(given["sample"])
    task = GradeSearchRag(sample.question, sample.answer or "", tuple(sample.contexts or ()))
    messages = render(task)
    problems: list[str] = []
    texts = [sample.question, sample.answer or "", *(sample.contexts or ())]
    outside = "\n".join(message["content"] for message in messages)
    for text in [text for text in texts if text.strip()]:
        inside = [message["content"] for message in messages if text in message["content"]]
        if len(inside) != 1 or inside[0] == messages[0]["content"]:
            problems.append(f"{text!r:.60} stands in {len(inside)} messages, or in the system's")
            continue
        fence = re.search(r"<([\w-]+)>\s*" + re.escape(text) + r"\s*</\1>", inside[0])
        if fence is None:
            problems.append(f"{text!r:.60} does not stand between one marker and its closing one")
        elif fence[1] in text:
            problems.append(f"{text!r:.60} holds its own marker")
        outside = outside.replace(text, "")
    rules = messages[0]["content"].casefold()
    if not any(word in rules for word in ("never an instruction", "никогда не указание", "指示")):
        problems.append("no instruction says that the material is not to be obeyed")
    other = GradeSearchRag(sample.question, f"{sample.answer} ", tuple(sample.contexts or ()))
    if nonce_for(task.data()) == nonce_for(other.data()):
        problems.append("two texts have the same markers")
    outcome = _against_obedient_judge(given, outside, problems)
    outcome.problems += problems
    return outcome


def _against_obedient_judge(given: Input, outside: str, problems: list[str]) -> Outcome:
    """A judge that obeys whatever stands outside the material: the answer must still be graded low."""
    sample = product.sample_of(given["sample"])
    orders = [line for line in (sample.answer or "").splitlines()[1:] if line.strip()] or [
        sample.answer or ""
    ]
    words = str(given.get("obedient_fake_judge", "1.0 outside, 0.1 otherwise"))
    obeyed, otherwise = (float(found) for found in re.findall(r"\d\.\d", words))
    grade = obeyed if any(order in outside for order in orders) else otherwise

    def obedient(messages: list[dict[str, str]]) -> str:
        return json.dumps({"answer_correctness": grade, "groundedness": grade, "error_message": "low"})

    def run() -> None:
        with product.using(judge=obedient):
            assert_search_rag(sample, 0.7)

    gate = observe(run, kind="pass")
    if gate.kind != "quality_failure":
        problems.append(f"the gate came to {gate.told()}")
    shown = " ".join(gate.message.split())
    lines = [line.strip() for line in (sample.answer or "").splitlines() if line.strip().isprintable()]
    if any(" ".join(line.split()) not in shown for line in lines):
        problems.append("the report does not show the answer as it is")
    return Outcome("property", message=gate.message, facts={"gate": gate.kind})


@op("report_html", "html_report")
def report_html(given: Input) -> Outcome:
    """The HTML report of a failed question with these texts, read as a browser would."""
    from pytest_ragbench.report.html import html_report
    from pytest_ragbench.report.reading import report_from

    texts = [
        str(given[key]) for key in ("id", "question", "answer", "error_message", "reason") if key in given
    ]
    sample = {
        "id": given.get("id", "q"),
        "question": given.get("question", "Why?"),
        "answer": given.get("answer"),
    }
    score = {
        "metric": "faithfulness", "tier": "generation", "sample": 0, "value": 0.25, "threshold": ">=0.8",
        "passed": False, "band": "attention", "reason": given.get("reason", ""),
        "error_message": given.get("error_message", ""),
        "evidence": [{"text": text, "ok": False, "reason": text} for text in texts],
        "replies": [{"text": text, "judge": text} for text in texts],
    }  # fmt: skip
    result = {"test": f"test_a.py::test[{texts[0]}]", "outcome": "failed", "kind": "quality", "samples": [sample],
              "question_id": sample["id"], "message": given.get("error_message", ""), "scores": [score]}  # fmt: skip
    report = {
        "schema": "ragbench-report",
        "version": 1,
        "run": {"id": "r", "started": 1.0},
        "results": [result],
    }
    outcome = observe(lambda: html_report(report_from(report)))
    if outcome.kind != "value":
        return outcome
    page = ReadPage(outcome.value)
    outcome.problems += page.problems
    outcome.problems += [f"the page does not show {text!r}" for text in texts if not page.shows(text)]
    embedded, _replies = page.blocks
    if any(letter in block for block in page.blocks for letter in "<>&"):
        outcome.problems.append("the embedded JSON holds letters that HTML reads")
    [row] = json.loads(embedded)["questions"]
    for key in ("id", "answer"):
        if key in given and row[key] != given[key]:
            outcome.problems.append(f"the embedded JSON has another {key}: {row[key]!r}")
    return Outcome("property", problems=outcome.problems)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


@op("export_csv")
def export_csv(given: Input) -> Outcome:
    """Rows as a CSV file that a spreadsheet opens without running any of them."""
    if importlib.util.find_spec("pytest_ragbench.report.csv_export") is None:
        return Outcome("crash", message="the package exports no CSV")
    from pytest_ragbench.report.csv_export import original_text, write_csv

    rows: Sequence[Mapping[str, Any]] = given["rows"]
    path = Path("table.csv")

    def written() -> list[dict[str, Any]]:
        write_csv(path, rows)
        with path.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    outcome = observe(written)
    if outcome.kind != "value":
        return outcome
    if len(outcome.value) != len(rows):
        outcome.problems.append(f"{len(outcome.value)} rows of {len(rows)} come back")
    for row, cells in zip(rows, outcome.value, strict=False):
        for name, value in row.items():
            cell = cells[name]
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                if float(cell) != value:
                    outcome.problems.append(f"{name}: the number {value} became {cell!r}")
            elif isinstance(value, str):
                if cell.lstrip(" ").startswith(_FORMULA):
                    outcome.problems.append(f"{name}: {cell!r} is a formula")
                if original_text(cell) != value:
                    outcome.problems.append(f"{name}: {value!r} became {cell!r}")
    outcome.facts["numbers"] = [v for row in rows for v in row.values() if isinstance(v, (int, float))]
    return outcome
