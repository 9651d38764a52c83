"""What the terminal shows of a run's quality when it is over."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ragbench.gates.deciding import RunGates
    from pytest_ragbench.plugin.mutating import WorseAnswers
    from pytest_ragbench.report.summary import Summary

_COLOURS = {"excellent": {"green": True}, "good": {"green": True}, "attention": {"yellow": True}}


def show_summary(out: pytest.TerminalReporter, summary: Summary, notes: Sequence[str]) -> None:
    """The table, the worst questions, the outcomes, the calls, and ``notes``; under ``-qq`` the outcomes only.

    Widths follow the terminal's (``COLUMNS`` where it is set), colours what pytest was told of them.
    """
    from pytest_ragbench.metrics.registry import TIERS
    from pytest_ragbench.report.layout import cut
    from pytest_ragbench.report.summary import call_lines, table

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
        out.line(line)


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
            out.line(line)


_VERDICTS = {"PASS": {"green": True}, "FAIL": {"red": True}, "UNDECIDED": {"yellow": True}}
_LONGEST = 800
"""Characters of a line."""
_MOST_LOST = 10


def show_gates(out: pytest.TerminalReporter, gates: RunGates) -> None:
    """A line for each gate, and what changed since the baseline."""
    from pytest_ragbench.clean import clean

    out.section("gates")
    for outcome, line in gates.lines():
        out.line(clean(line)[:_LONGEST], **_VERDICTS.get(outcome, {}))


def show_worse_answers(out: pytest.TerminalReporter, worse: WorseAnswers) -> None:
    """``--ragbench-mutate``: what was caught of answers that were made worse."""
    from pytest_ragbench.clean import clean

    out.section("worse answers")
    for line in worse.lines(out._tw.fullwidth):
        out.line(clean(line))


def show_lost(out: pytest.TerminalReporter, lost: Collection[str], expected: int) -> None:
    """Tests that a worker collected and of which no result came back, where nothing else is red."""
    if not lost or out.stats.get("failed") or out.stats.get("error"):
        return
    out.section("ragbench: results lost", red=True)
    out.line(f"{len(lost)} of {expected} tests were collected, but no result came back:")
    for nodeid in sorted(lost)[:_MOST_LOST]:
        out.line(f"  {nodeid}")
