"""Names of questions: readable in any script, stable, and fit for a pytest node id and ``-k``."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from unicodedata import east_asian_width

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.samples import Question

MAX_COLUMNS = 80
"""A longer test id is cut; a Chinese or Japanese character takes two columns of a terminal."""

SLUG_COLUMNS = 40
"""As much of a question's beginning becomes its id where the file gives none."""

_HASH_DIGITS = 6


def test_id(question_id: str) -> str:
    """The part in brackets of the test's name, for one question.

    Letters and digits of any script, ``_ - . +`` stay; everything else becomes ``-``. So ``-k`` takes the
    whole as one word, and no ``/``, ``::``, ``[`` or ``]`` can be mistaken for pytest's own. Only an id that
    is cut or has nothing readable in it gets the head of its SHA-256. Depends on the id alone.
    """
    cleaned = _clean(question_id)
    if not cleaned:
        return f"q-{_digest(question_id)}"
    if cleaned in ("and", "or", "not"):  # operators of -k
        return f"q-{cleaned}"
    return _cut(cleaned, MAX_COLUMNS, question_id)


def test_ids(questions: Sequence[Question]) -> list[str]:
    """:func:`test_id` of each, made unique.

    Where two differ only in what :func:`test_id` replaces, the one whose id was not changed keeps it and the
    others get the head of their SHA-256; no id depends on the order of the questions.

    Raises
    ------
    QuestionFileError
        Two questions have the same id.
    """
    known: dict[str, Question] = {}
    for question in questions:
        other = known.setdefault(question.id, question)
        if other is not question:
            places = " and ".join(
                str(where.location or repr(where.question[:40])) for where in (other, question)
            )
            raise QuestionFileError(f"two questions have the id {question.id!r}: {places}")
    names = [test_id(question.id) for question in questions]
    # Six digits nearly always suffice; more make a collision of hashes harmless.
    for digits in (_HASH_DIGITS, 16, 64):
        often = Counter(names)
        if max(often.values(), default=1) == 1:
            break
        names = [
            name
            if often[name] == 1 or name == question.id
            else f"{test_id(question.id)}-{_digest(question.id, digits)}"
            for name, question in zip(names, questions, strict=True)
        ]
    return names


def slug(question: str) -> str:
    """An id for a question that has none: its first words, and a hash where that isn't all of it.

    Depends on the text alone, so adding or sorting rows renames no test.
    """
    cleaned = _clean(question)
    return _cut(cleaned, SLUG_COLUMNS, question) if cleaned else f"q-{_digest(question)}"


def distinct_slug(question: str) -> str:
    """:func:`slug` with a hash in any case, for questions that differ in punctuation only."""
    name = slug(question)
    digest = _digest(question)
    return name if name.endswith(f"-{digest}") else f"{name}-{digest}"


def _clean(text: str) -> str:
    kept = "".join(map(_letter, unicodedata.normalize("NFC", text)))
    # Without the invisible characters, letters that they separated may compose.
    return re.sub(r"-+", "-", unicodedata.normalize("NFC", kept)).strip("-.")


def _letter(letter: str) -> str:
    if letter.isalnum() or letter in "_-.+":
        return letter
    category = unicodedata.category(letter)
    # Stress marks and joiners are dropped without a gap; vowel signs of Hindi or Thai stay.
    if category == "Cf" or "\u0300" <= letter <= "\u036f":
        return ""
    return letter if category in ("Mn", "Mc") else "-"


def _cut(cleaned: str, columns: int, original: str) -> str:
    fits = _fitting(cleaned, columns)
    if fits == len(cleaned):
        return cleaned
    head = cleaned[: _fitting(cleaned, columns - _HASH_DIGITS - 1)]
    # Cut at the end of a word where that costs less than half of the id.
    at_word = head.rpartition("-")[0]
    if cleaned[len(head)] != "-" and len(at_word) * 2 > len(head):
        head = at_word
    return f"{head.strip('-.')}-{_digest(original)}"


def _fitting(text: str, columns: int) -> int:
    """How many letters of ``text`` fit into so many columns; reads no further, since a question may be a page."""
    for place, letter in enumerate(text):
        columns -= 2 if east_asian_width(letter) in "WF" else 1
        if columns < 0:
            return place
    return len(text)


def _digest(text: str, digits: int = _HASH_DIGITS) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:digits]
