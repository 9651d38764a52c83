"""Plain English in the field's terms: words that only this project understood do not come back.

What is searched: names, comments, docstrings and messages of the package, and the pages of the documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.house import code

DOCS = code.ROOT.parent / "docs"

BANNED = {
    r"shelf|shelves": "reply cache, store",
    r"beacons?": "progress",
    r"meeting": "coordinator",
    r"(?:count)?board": "shared counters",
    r"books|bookkeeping": "usage",
    r"firsts": "claim",
    r"flown": "sent",
    r"bury_the_dead|bury": "remove what dead processes left",
    r"hunger|hungry": "idle",
    r"stands? there": "is",
    r"(?<!there )is no(?= (?!longer\b|more\b|less\b))": "isn't a",
    r"(?<!there )are no(?= (?!longer\b|more\b|less\b))": "aren't",
    r"a text(?! (?:file|column|cell|field|metric|editor))": "text, a string",
    r"which there (?:is|are) not?": "none",
    r"nobody's": "nobody ... of",
    r"(?:of )?one's own": "your own",
    r"founding (?:document|benchmark)s?": "the source, or 'defined here'",
}  # fmt: skip
"""What no longer says what it meant -> what says it."""

LEFT: dict[str, int] = {}
"""Room (or page of the documentation) -> how many are left there. A number may only get smaller."""

TRANSLATED = ("start.ja.md", "start.ru.md")

_FOUND = {
    re.compile(rf"(?<![A-Za-z])(?:{words})(?![A-Za-z])", re.IGNORECASE): cure
    for words, cure in BANNED.items()
}


def _hits(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, words and what to write instead."""
    for number, line in enumerate(text.splitlines(), start=1):
        for words, cure in _FOUND.items():
            for match in words.finditer(line):
                yield number, match[0].strip(), cure


def found() -> dict[str, list[str]]:
    """Room or page -> what is left in it."""
    left: dict[str, list[str]] = {}
    for module in code.modules():
        hits = _hits((code.ROOT / module.path).read_text(encoding="utf-8"))
        left.setdefault(module.room, []).extend(
            f"{module.path}:{n}: {words!r}: {cure}" for n, words, cure in hits
        )
    for page in sorted(DOCS.rglob("*.md")):
        if page.name not in TRANSLATED:
            name = f"docs/{page.relative_to(DOCS).as_posix()}"
            hits = _hits(page.read_text(encoding="utf-8"))
            left[name] = [f"{name}:{n}: {words!r}: {cure}" for n, words, cure in hits]
    return left


def test_words_that_are_gone_stay_away() -> None:
    more = [line for where, lines in found().items() if len(lines) > LEFT.get(where, 0) for line in lines]
    assert not more, "\n".join(more)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a pen on the shelf", ["shelf"]),
        ("it is no number", ["is no"]),
        ("there is no such metric; it is no longer read", []),
        ("the signboard", []),
        ("must be a text, not a list", ["a text"]),
        ("a text file", []),
        ("book_of_calls, on_board", ["board"]),
    ],
)
def test_what_is_found(text: str, words: list[str]) -> None:
    assert [hit for _, hit, _ in _hits(text)] == words
