"""Reading the document base: Markdown files, one passage a section.

A section heading carries the passage's stable id: ``## Exit codes {#en-exit-codes}``. The first letters
of the path below the folder are the language: ``documents/en/runs.md``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "documents"

_SECTION = re.compile(r"^## (?P<title>.+?) \{#(?P<id>[a-z0-9-]+)\}\n(?P<body>.*?)(?=^## |\Z)", re.M | re.S)
_CJK_LINE_END = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])\n(?=[\u3000-\u9fff\uff00-\uffef])")


@dataclass(frozen=True, slots=True)
class Passage:
    """One self-contained section of the documentation."""

    id: str
    lang: str
    title: str
    text: str


def load_passages(folder: Path = FOLDER) -> list[Passage]:
    """All passages below ``folder``, in the order of the files' names.

    Raises
    ------
    ValueError
        Where there is none, a section is empty, or an id occurs twice.
    """
    passages: dict[str, Passage] = {}
    for path in sorted(folder.glob("*/*.md")):
        for section in _SECTION.finditer(path.read_text(encoding="utf-8")):
            passage = Passage(section["id"], path.parent.name, section["title"], _plain(section["body"]))
            if not passage.text:
                raise ValueError(f"{path}: section {passage.id} is empty")
            if passage.id in passages:
                raise ValueError(f"{path}: the id {passage.id} is used twice")
            passages[passage.id] = passage
    if not passages:
        raise ValueError(
            f"{folder} holds no passages: no LANGUAGE/*.md with a heading like '## Title {{#id}}'"
        )
    return list(passages.values())


def _plain(markdown: str) -> str:
    text = _CJK_LINE_END.sub("", markdown.replace("`", "").strip())
    return re.sub(r"\s+", " ", text)


def language_of(text: str) -> str:
    """``"ja"`` where there is kana or kanji, ``"ru"`` where there is Cyrillic, else ``"en"``.

    Japanese questions hold Latin names and Russian ones too, so that one letter of a script decides.
    """
    if re.search(r"[\u3040-\u30ff\u4e00-\u9fff]", text):
        return "ja"
    if re.search(r"[\u0400-\u04ff]", text):
        return "ru"
    return "en"
