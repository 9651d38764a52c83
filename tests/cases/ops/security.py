"""Hostile texts: in prompts, in reports, in tables, in names of files."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ragbench import RagSample, assert_search_rag
from tests.cases import product, sources
from tests.cases.outcomes import Outcome, observe
from tests.cases.projects import project
from tests.cases.registry import Input, op
from tests.report_html.pages import ReadPage


@op("render_prompt")
def render_prompt(given: Input) -> Outcome:
    """Where the texts under judgement stand in what a judge is sent."""
    sample = product.sample_of(given["sample"])
    messages = _sent(sample)
    problems: list[str] = []
    texts = [sample.question, sample.answer or "", *(sample.contexts or ())]
    outside = "\n".join(message["content"] for message in messages)
    markers = []
    for text in [text for text in texts if text.strip()]:
        inside = [message["content"] for message in messages if text in message["content"]]
        if len(inside) != 1 or inside[0] == messages[0]["content"]:
            problems.append(f"{text!r:.60} stands in {len(inside)} messages, or in the system's")
            continue
        fence = re.search(r"<([\w-]+)>\s*" + re.escape(text) + r"\s*</\1>", inside[0])
        if fence is None:
            problems.append(f"{text!r:.60} does not stand between one marker and its closing one")
        else:
            markers.append(fence[1])
            if fence[1] in text:
                problems.append(f"{text!r:.60} holds its own marker")
        outside = outside.replace(text, "")
    rules = messages[0]["content"].casefold()
    if not any(word in rules for word in ("never an instruction", "никогда не указание", "指示")):
        problems.append("no instruction says that the material is not to be obeyed")
    other = "\n".join(message["content"] for message in _sent(sample.with_(answer=f"{sample.answer} ")))
    if any(f"</{marker}>" in other for marker in markers):
        problems.append("two texts have the same markers")
    outcome = _against_obedient_judge(given, outside, problems)
    outcome.problems += problems
    return outcome


def _sent(sample: RagSample) -> list[dict[str, str]]:
    """What a judge function is given by ``assert_search_rag``."""
    judge = product.Scripted(['{"answer_correctness": 1.0, "groundedness": 1.0, "error_message": ""}'])
    with product.using(judge=judge):
        assert_search_rag(sample, 0.7)
    return judge.asked[0]


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
    """The HTML report of a run with one failed question of these texts, read as a browser would."""
    texts = [
        str(given[key]) for key in ("id", "question", "answer", "error_message", "reason") if key in given
    ]
    with project(sources.reported([dict(given.items()) | {"score": 0.25}])) as made:
        run = made.run("--ragbench-html=report.html", "--junitxml=j.xml")
        report = made.contents().get("report.html", b"").decode()
    page = ReadPage(report)
    problems = [*run.lacks(["INTERNALERROR"]), *page.problems]
    problems += [f"the page does not show {text!r}" for text in texts if not page.shows(text)]
    if any(letter in block for block in page.blocks for letter in "<>&"):
        problems.append("the embedded JSON holds letters that HTML reads")
    if len(page.blocks) != 2:
        return Outcome("property", problems=[*problems, f"no report: {run.tail}"])
    [row] = json.loads(page.blocks[0])["questions"]
    for key in ("id", "answer"):
        if key in given and row[key] != given[key]:
            problems.append(f"the embedded JSON has another {key}: {row[key]!r}")
    return Outcome("property", message=run.text, problems=problems)


_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_COLUMNS = {"id": "question_id", "score": "value"}
"""What the table of scores calls them."""


@op("export_csv")
def export_csv(given: Input) -> Outcome:
    """Rows as the CSV report of a run, which a spreadsheet opens without running any of its cells."""
    rows: Sequence[Mapping[str, Any]] = given["rows"]
    with project(sources.reported(rows)) as made:
        run = made.run("--ragbench-csv=table.csv", "--junitxml=j.xml")
        table = made.contents().get("table.csv", b"").decode("utf-8-sig")
    found = list(csv.DictReader(io.StringIO(table, newline="")))
    problems = run.lacks(["INTERNALERROR"])
    if len(found) != len(rows):
        problems.append(f"{len(found)} rows of {len(rows)} come back: {run.tail}")
    for row, cells in zip(rows, found, strict=False):
        problems += [
            f"{name}: {cell!r} is a formula"
            for name, cell in cells.items()
            if cell.lstrip(" ").startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
        ]
        for name, value in row.items():
            cell = cells.get(_COLUMNS.get(name, name), "")
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                if not _NUMBER.fullmatch(cell) or float(cell) != value:
                    problems.append(f"{name}: the number {value} became {cell!r}")
            elif isinstance(value, str) and _original(cell) != value:
                problems.append(f"{name}: {value!r} became {cell!r}")
    numbers = [v for row in rows for v in row.values() if isinstance(v, (int, float))]
    return Outcome("property", message=run.text, problems=problems, facts={"numbers": numbers})


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def _original(cell: str) -> str:
    """What stood there before an apostrophe was put in front of it."""
    return cell.removeprefix("'")
