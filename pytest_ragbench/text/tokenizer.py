"""Tokens for text-overlap metrics, in any script."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ASCII_RUN = re.compile(r"[a-z0-9]+")
# Han (with iteration marks and extensions), Hiragana, Katakana and Thai: written without spaces, so
# that a run of letters is a sentence and not a word.
_ALONE = re.compile(
    "[\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59]"
)


def tokens(text: str) -> list[str]:
    """Casefolded tokens of ``text``, in order.

    NFKC and casefold; a run of letters, digits and combining marks is a token; each Han, Hiragana,
    Katakana or Thai character is a token of its own; everything else, the underscore included,
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


@lru_cache(maxsize=4096)
def _kind(character: str) -> str:
    if _ALONE.match(character):
        return "alone"
    return "run" if unicodedata.category(character)[0] in "LNM" else "gap"
