"""Tokens for text-overlap metrics, in any script."""

from __future__ import annotations

import re
import unicodedata
from functools import cache, lru_cache

from pytest_ragbench.languages import catalog

_ASCII_RUN = re.compile(r"[a-z0-9]+")


def tokens(text: str) -> list[str]:
    """Casefolded tokens of ``text``, in order.

    NFKC and casefold; a run of letters, digits and combining marks is a token; each Han, Hiragana,
    Katakana, Thai, Lao, Khmer or Burmese character is a token of its own; everything else, the underscore included,
    separates. On ASCII text these are the tokens of rouge-score's default tokenizer (no stemming).
    """
    if text.isascii():
        return _ASCII_RUN.findall(text.lower())
    # Casefolding can leave a sequence that NFKC composes, so normalise on both sides of it.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    found: list[str] = []
    run: list[str] = []
    for character in folded:
        kind = _kind(character)
        if kind == "run":
            run.append(character)
            continue
        if run:
            found.append("".join(run))
            run.clear()
        if kind == "alone":
            found.append(character)
    if run:
        found.append("".join(run))
    return found


@cache
def _alone() -> re.Pattern[str]:
    """Letters written without spaces between words: a run of them is a sentence and not a word."""
    classes = [*(each.script.letters for each in catalog()), *catalog().others.unspaced]
    return re.compile(f"[{''.join(classes)}]")


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    if _alone().match(character):
        return "alone"
    return "run" if unicodedata.category(character)[0] in "LNM" else "gap"
