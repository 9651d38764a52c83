"""The page of several runs side by side."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from itertools import groupby
from pathlib import Path
from typing import Any

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.money import dollars
from pytest_ragbench.report.formats import ReportContext
from pytest_ragbench.report.html.page import Served, asset, joined, json_text, policy, template, write_page
from pytest_ragbench.report.matrix import Cell, Line, Matrix, matrix_of
from pytest_ragbench.report.systems import systems_in
from pytest_ragbench.text import is_unspaced

_PIECES = re.compile(r"\w+|\s+|[^\w\s]")
_SCRIPTS = ("1-base.js", "matrix.js")
_LONGEST = 2000
"""Pieces of an answer beyond which it is shown without marks: finding them takes the square of that."""


def write_matrix(path: Path, matrix: Matrix) -> None:
    """Write the page. UsageError where the file can't be written."""
    write_page(path, matrix_page(matrix))


class MatrixReport:
    """The page of the systems of one run."""

    whole_run = True

    def __init__(self, path: Path, context: ReportContext) -> None:
        self._path = path

    def add(self, result: TestRecord) -> None:
        pass

    def finish(self, run: RunReport) -> Iterable[str]:
        systems = systems_in(run)
        if len(systems) < 2:
            raise UsageError("a matrix takes two systems or more: --ragbench-retrievers a,b")
        write_matrix(self._path, matrix_of(list(systems.items())))
        return [f"matrix: {self._path}"]


def matrix_page(matrix: Matrix, *, served: Served | None = None) -> str:
    """The page: means and who is ahead, then each question with the answers of all systems side by side.

    ``served``: set where ``ragbench view`` serves the page, which else is a file.
    """
    from markupsafe import Markup

    script, css = joined(_SCRIPTS), asset("report.css")
    names = [system.name for system in matrix.systems]
    data = {
        "systems": names,
        "metrics": [{"name": contest.metric, "higher": contest.higher} for contest in matrix.contests],
        "questions": [_told(line) for line in matrix.lines],
    }
    return template("matrix.html.j2").render(
        lang="en",
        title=f"RAG quality: {', '.join(names)}",
        served=served,
        policy=policy(script, css, served=served is not None),
        css=Markup(css),  # noqa: S704 - the package's own file
        script=Markup(script),  # noqa: S704 - the package's own files
        data=Markup(json_text(data)),  # noqa: S704 - every < > & is an escape
        matrix=matrix,
        names=names,
        dollars=dollars,
    )


def _told(line: Line) -> dict[str, Any]:
    first = next((cell.answer for cell in line.cells if cell is not None and cell.answer is not None), None)
    return {
        "id": line.name,
        "question": line.question,
        "reference": line.reference,
        "spread": round(line.spread, 6),
        "cells": [None if cell is None else _cell(cell, first) for cell in line.cells],
    }


def _cell(cell: Cell, first: str | None) -> dict[str, Any]:
    return {
        "answer": _marked(cell.answer, first) if cell.answer is not None else None,
        "outcome": cell.outcome,
        "scores": dict(cell.scores),
        "message": cell.message,
        "answers": cell.answers,
        "latency": cell.latency,
    }


def _marked(answer: str, first: str | None) -> list[tuple[str, int]]:
    """The answer in pieces, each with 1 where the first system's answer lacks it, else 0."""
    ours, theirs = _pieces(answer), _pieces(first or "")
    if answer == first or max(len(ours), len(theirs)) > _LONGEST:
        return [(answer, 0)]
    marks = [1] * len(ours)
    for block in SequenceMatcher(None, theirs, ours, autojunk=False).get_matching_blocks():
        marks[block.b : block.b + block.size] = [0] * block.size
    # A space between two marked words is marked, too, or each word would stand in a box of its own.
    for place, piece in enumerate(ours[1:-1], start=1):
        if piece.isspace():
            marks[place] = min(marks[place - 1], marks[place + 1])
    pairs = zip(marks, ours, strict=True)
    return [
        ("".join(piece for _, piece in group), mark)
        for mark, group in groupby(pairs, key=lambda pair: pair[0])
    ]


def _pieces(text: str) -> list[str]:
    """Words, spaces and signs; in scripts without spaces single characters."""
    found: list[str] = []
    for piece in _PIECES.findall(text):
        for unspaced, run in groupby(piece, key=is_unspaced):
            letters = list(run)
            found += letters if unspaced else ["".join(letters)]
    return found
