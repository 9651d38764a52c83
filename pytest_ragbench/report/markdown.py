"""A run in Markdown, for a pull request or a job's page, and as annotations where GitHub runs it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from pytest_ragbench.clean import counted, one_line
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import QuestionRecord, SampleRecord, TestRecord
from pytest_ragbench.money import dollars
from pytest_ragbench.report.figures import figures
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.rows import Row, about_one_question, rows_of, worst

_SIGNS = {"PASS": "✅", "FAIL": "❌", "UNDECIDED": "❔"}
_WORST = 10
ANNOTATIONS = 10
"""GitHub shows no more of one kind for a step."""


class MarkdownReport:
    """A file for a pull request or a wiki."""

    whole_run = True

    def __init__(self, path: Path, context: ReportContext) -> None:
        self._path = path

    def add(self, result: TestRecord) -> None:
        pass

    def finish(self, run: RunReport) -> Iterable[str]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(markdown_report(run), encoding="utf-8", errors="backslashreplace", newline="\n")
        return [f"summary: {self._path}"]


def markdown_report(report: RunReport) -> str:
    """The outcome, the gates, the metrics and the worst questions. Texts of the run are escaped."""
    parts = [f"## RAG quality: {_outcome(report)}", ""]
    if not report.complete:
        parts += ["**The run is incomplete.**", ""]
    if report.gates:
        parts += ["| | gate | value | reason |", "|---|---|---|---|"]
        parts += [
            f"| {_SIGNS[gate.verdict]} {gate.verdict} | {_text(gate.gate, 100)} | {_number(gate.value)} "
            f"| {_text(gate.reason, 300)} |"
            for gate in report.gates
        ]
        parts.append("")
    found = figures(report)
    if found:
        parts += [
            "| tier | metric | mean | 95 % interval | scored | missed | band |",
            "|---|---|---:|---|---:|---:|---|",
        ]
    for figure in found:
        interval = f"{figure.interval.low:.3f} … {figure.interval.high:.3f}" if figure.interval else "–"
        missed = f"{figure.missed}/{figure.asserted}" if figure.asserted else "–"
        parts.append(
            f"| {figure.tier.replace('_', ' ')} | {_text(figure.name, 80)} | {_number(figure.mean)} | {interval} "
            f"| {figure.scored}/{figure.total} | {missed} | {figure.band or '–'} |"
        )
    rows = rows_of(report)
    bad = worst(rows, _WORST)
    if bad:
        parts += ["", f"### The worst of {counted(len(rows), 'question')}", ""]
    for row in bad:
        parts += _worst(row)
    # Without a known price there is nothing to say, and $0 would be wrong.
    spent = [entry.cost for entry in report.summary.calls.values() if entry.cost] if report.summary else []
    if spent:
        parts += ["", f"Cost: {dollars(sum(spent))}"]
    return "\n".join(parts) + "\n"


def github_annotations(report: RunReport, limit: int = ANNOTATIONS) -> Iterator[str]:
    """``::error file=...,line=...::message`` for each question that failed or has no score.

    The file is told from the top of the working tree, as GitHub wants it; a question that is written in no
    file has none.
    """
    shown = 0
    for result in report.results:
        # Failures that are not ours have annotations of other tools.
        if result.outcome not in ("failed", "error") or result.kind is None or not about_one_question(result):
            continue
        if shown == limit:
            return
        shown += 1
        yield _annotation(report, result)


def _annotation(report: RunReport, result: TestRecord) -> str:
    asked: list[SampleRecord | QuestionRecord] = [*result.samples, *result.questions]
    place = next(((one.file, one.line) for one in asked if one.file), (None, None))
    fields = []
    if place[0]:
        folder = report.run.git.directory if report.run.git else ""
        fields.append(("file", str(PurePosixPath(folder) / place[0])))
        fields += [("line", str(place[1]))] if place[1] else []
    question = asked[0].question if asked else result.question_id or result.test
    fields.append(("title", one_line(question, 100)))
    told = ",".join(f"{name}={_command(value, in_field=True)}" for name, value in fields)
    return f"::error {told}::{_command(one_line(result.message or result.kind or '', 500))}"


def _command(text: str, *, in_field: bool = False) -> str:
    """Escaped as GitHub's workflow commands want it."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if in_field else text


def _worst(row: Row) -> Iterator[str]:
    """A question that went wrong: where it is written, what is wrong, what was answered and what should have been."""
    sample = row.sample
    where = (
        f" ({_text(f'{sample.file}:{sample.line}' if sample.line else sample.file, 200)})"
        if sample.file
        else ""
    )
    system = f"{_text(row.system, 60)}: " if row.system else ""
    yield f"- {system}**{_text(sample.question, 200) or '(empty)'}**{where}"
    missed = [score for _, score in row.scores if score.passed is False]
    said = next((test.message for test in row.tests if test.message), None)
    said = said or next((score.reason for score in missed), "")
    yield f"  - {_text(said, 300)}" if said else "  - no message"
    claim = next((finding for score in missed for finding in score.evidence if finding.ok is False), None)
    if claim is not None:
        because = f" — {_text(claim.reason, 200)}" if claim.reason else ""
        yield f"  - ✗ {_text(claim.text, 300)}{because}"
    if sample.answer is not None:
        yield f"  - answer: {_text(sample.answer, 500) or '(empty)'}"
    if sample.reference is not None:
        yield f"  - reference: {_text(sample.reference, 500)}"


# What begins markup, and nothing else, since the source is read as well as the page. An underscore within a word
# begins nothing.
_SPECIAL = re.compile(r"[\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_])")
_AT_START = re.compile(r"^(?=[-+](?:\s|$)|#{1,6}(?:\s|$)|>|=+$|-{3})|^(\d{1,9})(?=[.)](?:\s|$))")
# An empty tag behind them: nothing becomes a link, a mention or a formula, and what is copied is the text.
_BROKEN_UP = re.compile(r"(?<!\w)@|@(?=[\w-]+\.)|:(?=//)|\bwww(?=\.)", re.IGNORECASE)


def _text(text: str, limit: int) -> str:
    """A string of the run that GitHub's Markdown, and HTML, take for nothing but text."""
    line = _AT_START.sub(r"\1\\", _SPECIAL.sub(r"\\\g<0>", one_line(text, limit)))
    line = line.replace("&", "&amp;").replace("<", "&lt;")
    return _BROKEN_UP.sub(r"\g<0><span></span>", line).replace("$", "<span>$</span>")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 3) + 0.0:.3f}"  # no -0.000


def _outcome(report: RunReport) -> str:
    counts: dict[str, int] = {}
    for result in report.results:
        counts[result.outcome] = counts.get(result.outcome, 0) + 1
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "no tests"
