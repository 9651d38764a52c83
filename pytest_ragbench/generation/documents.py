"""Documents cut into passages of a size that one can ask a question about."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unicodedata import east_asian_width

from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.questions import encodings

SUFFIXES = (".md", ".txt", ".rst", ".markdown")
MAX_CHARACTERS = 1500
MIN_COLUMNS = 80
"""Of a passage; a Chinese or Japanese character takes two columns."""


@dataclass(frozen=True)
class Passage:
    """A piece of a document; ``id`` is the file's path, relative to the searched directory, and a number."""

    id: str
    document: str
    text: str


def passages(path: Path) -> list[Passage]:
    """The passages of a file, or of the ``.md``, ``.txt`` and ``.rst`` files below a directory.

    Paragraphs are joined up to 1500 characters; a passage of less than 80 (40 of Chinese or Japanese) has nothing
    to ask about.

    Raises
    ------
    QuestionFileError
        No such file, a directory without such files, or a file that isn't UTF-8.
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
            f"{path}: the documents hold no passage of {MIN_COLUMNS} characters or more (40 of Japanese)"
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
        # Headings and captions are too short to ask about.
        if sum(2 if east_asian_width(letter) in "WF" else 1 for letter in piece) >= MIN_COLUMNS:
            number += 1
            yield Passage(f"{name}#{number}", name, piece)


def _pieces(text: str) -> Iterator[str]:
    """Paragraphs joined up to the limit; a longer one is cut at the ends of its sentences."""
    whole = ""
    for paragraph in re.split(r"\n\s*\n", text):
        for part in _cut(paragraph.strip()):
            if whole and len(whole) + len(part) > MAX_CHARACTERS:
                yield whole
                whole = ""
            whole = f"{whole}\n\n{part}" if whole else part
    if whole:
        yield whole


def _cut(paragraph: str) -> Iterator[str]:
    while len(paragraph) > MAX_CHARACTERS:
        # At the end of a sentence, or questions would be asked about half of one.
        ends = [match.end() for match in re.finditer(r"[.!?。！？]\s*|\n", paragraph[:MAX_CHARACTERS])]
        at = ends[-1] if ends else MAX_CHARACTERS
        yield paragraph[:at].strip()
        paragraph = paragraph[at:].strip()
    if paragraph:
        yield paragraph
