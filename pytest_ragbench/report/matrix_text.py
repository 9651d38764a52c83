"""Systems side by side, as lines for a terminal."""

from __future__ import annotations

from pytest_ragbench.clean import clean
from pytest_ragbench.money import dollars
from pytest_ragbench.report.layout import aligned, cut
from pytest_ragbench.report.matrix import Cell, Matrix


def matrix_lines(matrix: Matrix, columns: int, questions: int, more: str) -> list[str]:
    """Means and who is ahead, then the questions at which the systems differ most.

    Parameters
    ----------
    columns
        Cells of a line; fewer than 60 count as 60.
    questions
        So many are listed.
    more
        How to see the rest of them.
    """
    columns = max(columns, 60)
    names = [system.name for system in matrix.systems]
    # Names that a column of the terminal has no room for.
    shown = [cut(name, max(8, (columns - 34) // len(names) - 2)) for name in names]
    rows = [["", "questions", *shown]]
    for contest in matrix.contests:
        cells = [
            "-" if mean is None else f"{mean:.3f}" + ("*" if contest.best == place else "")
            for place, mean in enumerate(contest.means)
        ]
        rows.append([contest.metric, str(contest.n), *cells])
    rows.append(["passed", "", *(f"{system.passed}/{system.questions}" for system in matrix.systems)])
    rows.append(["cost", "", *(dollars(system.cost) for system in matrix.systems)])
    rows.append(["p50, s", "", *("-" if s.latency is None else f"{s.latency:.2f}" for s in matrix.systems)])
    lines = aligned(rows, left=[""], drop=["questions"], shrink="", columns=columns)
    lines.append("")
    for contest in matrix.contests:
        ahead = ", ".join(f"{name} {wins}" for name, wins in zip(names, contest.wins, strict=True))
        lines.append(f"{contest.metric}: {matrix.said(contest)}; alone best at: {ahead}")
    differing = [line for line in matrix.lines if line.spread > 0]
    for line in differing[:questions]:
        lines += [
            "",
            cut(f"[{line.name}] {line.question}" if line.name != line.question else line.question, columns),
        ]
        lines += [
            f"  {name}  {_cell(cell, columns - len(name) - 4)}"
            for name, cell in zip(shown, line.cells, strict=True)
        ]
    if len(differing) > questions:
        lines += ["", f"{len(differing) - questions} more questions differ: {more}"]
    return [clean(line) for line in lines]


def _cell(cell: Cell | None, width: int) -> str:
    if cell is None:
        return "not asked"
    scores = ", ".join(f"{metric} {value:.2f}" for metric, value in cell.scores.items())
    return cut(f"{cell.outcome}  {scores}  {' '.join((cell.answer or '').split())}", width)
