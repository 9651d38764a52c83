"""Documents as passages of a size that a question is asked about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import east_asian_width

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.questions import encodings

SUFFIXES = (".md", ".txt", ".rst", ".markdown")
_MOST = 1500
_LEAST = 80


@dataclass(frozen=True)
class Passage:
    """A piece of a document; ``id`` is the file, seen from where documents were sought, and its number."""

    id: str
    document: str
    text: str


def passages(path: Path) -> list[Passage]:
    """The passages of a file, or of the ``.md``, ``.txt`` and ``.rst`` files in a directory and below.

    Paragraphs are joined up to 1500 characters; a passage of less than 80 (40 of Chinese or Japanese) has nothing
    to ask about.

    Raises
    ------
    QuestionFileError
        No such file, none of these files, or one that is not UTF-8.
    """
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES and file.is_file())
        root = path
    else:
        files, root = [path], path.parent
    if not files or not path.exists():
        raise QuestionFileError(
            f"{path}: no documents: wanted a file, or a directory with {', '.join(SUFFIXES)}"
        )
    found = [passage for file in files for passage in _of_file(file, file.relative_to(root).as_posix())]
    if not found:
        raise QuestionFileError(
            f"{path}: the documents hold no passage of {_LEAST} characters or more (40 of Japanese)"
        )
    return found


def _of_file(file: Path, name: str) -> Iterator[Passage]:
    try:
        text = encodings.decode(file.read_bytes())
    except encodings.WrongEncoding as error:
        raise QuestionFileError(f"{file}: {error}") from None
    except OSError as error:
        raise QuestionFileError(f"{file}: can't be read: {error.strerror}") from None
    number = 0
    for piece in _pieces(text):
        if sum(2 if east_asian_width(letter) in "WF" else 1 for letter in piece) >= _LEAST:
            number += 1
            yield Passage(f"{name}#{number}", name, piece)


def _pieces(text: str) -> Iterator[str]:
    """Paragraphs joined up to the limit; one that is longer is cut at the ends of its sentences."""
    whole = ""
    for paragraph in re.split(r"\n\s*\n", text):
        for part in _cut(paragraph.strip()):
            if whole and len(whole) + len(part) > _MOST:
                yield whole
                whole = ""
            whole = f"{whole}\n\n{part}" if whole else part
    if whole:
        yield whole


def _cut(paragraph: str) -> Iterator[str]:
    while len(paragraph) > _MOST:
        ends = [match.end() for match in re.finditer(r"[.!?。！？]\s*|\n", paragraph[:_MOST])]
        at = ends[-1] if ends else _MOST
        yield paragraph[:at].strip()
        paragraph = paragraph[at:].strip()
    if paragraph:
        yield paragraph
