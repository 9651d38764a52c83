"""``must_name``: does a message say what the case wants it to say?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_FILLERS = {"the", "a", "an", "of", "in", "name", "names", "range", "word", "value", "exact"}


_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_NUMBERS = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w|\.\d)")


def missing(wanted: Sequence[str], message: str, phrases: Mapping[str, Sequence[str]]) -> list[str]:
    """Those of ``wanted`` that the message does not name; ``"a or b"`` wants either."""
    return [item for item in wanted if not named(str(item), message, phrases)]


def named(wanted: str, message: str, phrases: Mapping[str, Sequence[str]]) -> bool:
    alternatives = [part for half in wanted.split(" or ") for part in half.split(" / ")]
    return any(_says(part.strip(), message, phrases) for part in [wanted, *alternatives])


def _says(part: str, message: str, phrases: Mapping[str, Sequence[str]]) -> bool:
    text = message.casefold()
    bare = part.strip("'\"`")
    if _contains(bare, text):
        return True
    for phrase, stands_for in phrases.items():
        if phrase in part.casefold() and any(item and _contains(item, text) for item in stands_for):
            return True
    # "lines 1 and 2", "the URL path /llm/search-rag": every word that carries a meaning.
    words = [word.strip("'\"`,:") for word in part.split()]
    told = [word for word in words if word.casefold() not in _FILLERS and word != "and"]
    return len(words) > 1 and bool(told) and all(_word(word, text) for word in told)


def _contains(wanted: str, text: str) -> bool:
    """``4`` is not named by ``14`` or ``0.4``, nor ``no`` by ``unknown``."""
    folded = wanted.casefold()
    if _NUMBER.fullmatch(folded):  # 0.2 is named by 0.20
        return any(float(number) == float(folded) for number in _NUMBERS.findall(text))
    before = r"(?<![\w.])" if re.match(r"\d", folded) else r"(?<!\w)" if re.match(r"\w", folded) else ""
    after = r"(?!\w|\.\d)" if re.search(r"\d$", folded) else ""
    return bool(folded) and re.search(before + re.escape(folded) + after, text) is not None


def _word(word: str, text: str) -> bool:
    # A plural in the description stands for the singular, too: "chunks", "attempts".
    return _contains(word, text) or (len(word) > 3 and _contains(word.removesuffix("s"), text))
