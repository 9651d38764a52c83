"""TREC files: relevance judgments (qrels) and rankings (runs).

A qrels line is ``query 0 document grade``, a run line ``query Q0 document rank score tag``, separated
by spaces or tabs. trec_eval orders a run by score and ignores the rank; so does :func:`read_run`,
unless told otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import ids, relevance

Order = Literal["score", "rank", "file"]


def read_qrels(path: str | PathLike[str]) -> dict[str, dict[str, float]]:
    """``{query id: {document id: grade}}`` in the order of the file; whole grades are ints.

    Raises
    ------
    UsageError
        An unreadable file or line, a grade that is no finite number, two different grades for one
        document. The message names file and line.
    """
    qrels: dict[str, dict[str, float]] = {}
    for where, fields in _lines(path, 4, "query 0 document grade"):
        query, _, document, text = fields[:4]
        grade = _number(text, f"{where}: grade")
        documents = qrels.setdefault(query, {})
        if documents.setdefault(document, grade) != grade:
            raise UsageError(
                f"{where}: document {document!r} of query {query!r} has grade {text} here "
                f"and {documents[document]:g} above"
            )
    return qrels


def read_run(path: str | PathLike[str], *, order: Order = "score") -> dict[str, list[str]]:
    """``{query id: [document ids, best first]}``.

    Parameters
    ----------
    path
        A file in UTF-8.
    order
        ``"score"``: highest score first, equal scores by document id, the larger id first (trec_eval);
        ``"rank"``: by the rank column, equal ranks as in the file; ``"file"``: as written.

    Raises
    ------
    UsageError
        An unreadable file or line, a score or rank that is no finite number. Names file and line.
    """
    if order not in ("score", "rank", "file"):
        raise UsageError(f"order must be score, rank or file; got {order!r}")
    rows: dict[str, list[tuple[str, float]]] = {}
    for where, fields in _lines(path, 5, "query Q0 document rank score tag"):
        query, _, document, rank, score = fields[:5]
        key = 0.0
        if order != "file":
            key = _number(score, f"{where}: score") if order == "score" else _number(rank, f"{where}: rank")
        rows.setdefault(query, []).append((document, key))
    for found in rows.values():
        if order == "score":
            found.sort(key=lambda row: (row[1], row[0]), reverse=True)
        elif order == "rank":
            found.sort(key=lambda row: row[1])
    return {query: [document for document, _ in found] for query, found in rows.items()}


def write_qrels(path: str | PathLike[str], qrels: Mapping[Any, Mapping[Any, float] | Iterable[Any]]) -> None:
    """Write judgments; a plain list of relevant ids gets grade 1.

    trec_eval reads whole grades only; others are written as they are. Ids with white space can't be
    written: UsageError.
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for query, documents in qrels.items():
            for document, grade in (relevance(documents, f"qrels[{query!r}]") or {}).items():
                shown = int(grade) if float(grade).is_integer() else grade
                file.write(f"{_id(query)} 0 {_id(document)} {shown}\n")


def write_run(path: str | PathLike[str], run: Mapping[Any, Iterable[Any]], *, tag: str = "ragbench") -> None:
    """Write rankings with falling scores n, n - 1, ... 1, so that trec_eval keeps their order.

    A query that found nothing leaves no line: the format has no way to say it.
    """
    with Path(path).open("w", encoding="utf-8", newline="\n") as file:
        for query, ranking in run.items():
            documents = ids(ranking, f"run[{query!r}]") or ()
            for rank, document in enumerate(documents, 1):
                file.write(f"{_id(query)} Q0 {_id(document)} {rank} {len(documents) - rank + 1} {_id(tag)}\n")


def _lines(path: str | PathLike[str], columns: int, form: str) -> Iterator[tuple[str, list[str]]]:
    number = 0
    empty = True
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                fields = line.split()
                if not fields:
                    continue
                if len(fields) < columns:
                    raise UsageError(
                        f"{path}:{number}: expected '{form}', got {len(fields)} fields: {line.strip()[:80]!r}"
                    )
                empty = False
                yield f"{path}:{number}", fields
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}:{number + 1}: not UTF-8 ({error.reason})") from None
    if empty:
        raise UsageError(f"{path} is empty; expected lines '{form}'")


def _number(text: str, what: str) -> float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if not isfinite(number):
        raise UsageError(f"{what} must be a finite number, got {text!r}")
    return number


def _id(value: Any) -> str:
    text = str(value)
    if not text or text.split() != [text]:
        raise UsageError(f"{text!r} can't be written to a TREC file: an id must have no white space")
    return text
