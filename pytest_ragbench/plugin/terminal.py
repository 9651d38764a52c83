"""What the terminal shows of a run's quality when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from pytest_ragbench.clean import clean
from pytest_ragbench.metrics.registry import TIERS
from pytest_ragbench.report.layout import cut, wrapped
from pytest_ragbench.report.summary import Summary, table
from pytest_ragbench.report.usage import call_lines

if TYPE_CHECKING:
    from pytest_ragbench.gates.deciding import RunGates
    from pytest_ragbench.plugin.mutating import WorseAnswers
    from pytest_ragbench.report.matrix import Matrix
    from pytest_ragbench.report.opinions import Opinions

_COLOURS = {"excellent": {"green": True}, "good": {"green": True}, "attention": {"yellow": True}}


def show_summary(out: pytest.TerminalReporter, summary: Summary, notes: Sequence[str]) -> None:
    """The table, the worst questions, the outcomes, the calls, and ``notes``; under ``-qq`` the outcomes only.

    Widths follow the terminal's (``COLUMNS`` where it is set), colours what pytest was told of them.
    """
    columns = out._tw.fullwidth
    if out.verbosity < -1:
        out.line(cut(summary.outcome_line(), columns))
        return
    out.section("RAG quality")
    if summary.rows:
        for line in table(summary.ordered_rows(TIERS), summary.bands(), columns):
            _line(out, line)
    if summary.worst:
        out.line("the worst questions:")
        for bad in summary.worst:
            what, which = bad.lines(columns)
            out.line(what, red=True)
            out.line(which)
    out.line(summary.outcome_line())
    for line in [*call_lines(summary.usage), *notes]:
        for part in wrapped(line, columns, 2):
            out.line(part)


def _line(out: pytest.TerminalReporter, line: str) -> None:
    """A line of the table, its band in colour."""
    rest, space, last = line.rpartition("  ")
    if last in _COLOURS:
        out.write(rest + space)
        out.write(last, **_COLOURS[last])
        out.line("")
    else:
        out.line(line)


def show_evidence(out: pytest.TerminalReporter, evidence: Sequence[tuple[str, str]]) -> None:
    """``--ragbench-verbose``: what the scores of passing questions rest on."""
    if not evidence:
        return
    out.section("RAG quality: passing questions")
    for nodeid, text in evidence:
        out.line(nodeid, bold=True)
        for line in text.splitlines():
            for part in wrapped(line, out._tw.fullwidth, 13 if line.startswith("  ") else 2):
                out.line(part)


_DIFFERING = 3
"""Questions that are listed; the page has all."""


def show_matrix(out: pytest.TerminalReporter, matrix: Matrix) -> None:
    """The systems of one run side by side."""
    if out.verbosity < -1:
        return
    from pytest_ragbench.report.matrix_text import matrix_lines

    out.section("systems side by side")
    for line in matrix_lines(matrix, out._tw.fullwidth, _DIFFERING, "--ragbench-report matrix=matrix.html"):
        out.line(line)


_VERDICTS = {"PASS": {"green": True}, "FAIL": {"red": True}, "UNDECIDED": {"yellow": True}}
_LONGEST = 800
"""Characters of a line."""


def show_opinions(out: pytest.TerminalReporter, opinions: Opinions) -> None:
    """What votes and judges disagreed on."""
    for line in opinions.lines():
        for part in wrapped(line, out._tw.fullwidth, 2):
            out.line(part)


def show_gates(out: pytest.TerminalReporter, gates: RunGates) -> None:
    """A line for each gate, and what changed since the baseline."""
    out.section("gates")
    for outcome, line in gates.lines():
        out.line(clean(line)[:_LONGEST], **_VERDICTS.get(outcome, {}))


def show_worse_answers(out: pytest.TerminalReporter, worse: WorseAnswers) -> None:
    """``--ragbench-mutate``: what was caught of answers that were made worse."""
    out.section("worse answers")
    for line in worse.lines(out._tw.fullwidth):
        out.line(clean(line))
