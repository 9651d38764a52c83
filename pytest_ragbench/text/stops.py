"""What ends a sentence in scripts whose languages have no folder: Unicode's property, and what it leaves to others.

The marks are those with ``Sentence_Break=STerm`` in SentenceBreakProperty.txt of Unicode 16.0 (UAX 29), as a table,
since Python's ``unicodedata`` has no such property. The rules of UAX 29 themselves are not used: they know no
abbreviations ("Dr. Smith", «ул. Мира»), list items or wrapped lines, and no spaces of Thai.
"""

from __future__ import annotations

import re

_STERM = (
    r"\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0837\u0839\u083d\u083e\u0964\u0965\u104b\u1362\u1367\u1368"
    r"\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1aa8-\u1aab\u1b4e\u1b4f\u1b5a\u1b5b\u1b5e\u1b5f"
    r"\u1b7d-\u1b7f\u1c3b\u1c3c\u1c7e\u1c7f\u2cf9-\u2cfb\u3002\ua4ff\ua60e\ua60f\ua6f3\ua6f7\ua876\ua877\ua8ce"
    r"\ua8cf\ua92f\ua9c8\ua9c9\uaa5d-\uaa5f\uaaf0\uaaf1\uabeb\ufe12\ufe15\ufe16\ufe56\ufe57\uff01\uff1f\uff61"
    r"\U00010a56\U00010a57\U00010f55-\U00010f59\U00010f86-\U00010f89\U00011047\U00011048\U000110be-\U000110c1"
    r"\U00011141-\U00011143\U000111c5\U000111c6\U000111cd\U000111de\U000111df\U00011238\U00011239\U0001123b"
    r"\U0001123c\U000112a9\U000113d4\U000113d5\U0001144b\U0001144c\U000115c2\U000115c3\U000115c9-\U000115d7"
    r"\U00011641\U00011642\U0001173c-\U0001173e\U00011944\U00011946\U00011a42\U00011a43\U00011a9b\U00011a9c"
    r"\U00011c41\U00011c42\U00011ef7\U00011ef8\U00011f43\U00011f44\U00016a6e\U00016a6f\U00016af5\U00016b37"
    r"\U00016b38\U00016b44\U00016d6e\U00016d6f\U00016e98\U0001bc9f\U0001da88"
)
"""Without ``!`` and ``?`` and marks like them, which need a space, and the Burmese U+104A, which is used as a comma."""

AT_ONCE = rf"{_STERM}\u0f0d\u0f0e\uff0e"
"""Marks, as a character class, that end a sentence whatever follows: also the Tibetan shad, and the wide full stop."""

BEFORE_SPACE = "!?\u203c\u203d\u2047-\u2049\u2e2e\u2e3c\u2e53\u2e54"
"""Marks, as a character class, that end a sentence before a space, in any script."""

PAIRED = r"\u1361{2}|(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e]"
"""Ends that are more than a mark: two Ethiopic word spaces, typed for the full stop; a semicolon, which after a Greek
letter asks."""

_SPACE_ENDS = r"\u0e01-\u0e3a\u0e40-\u0e45\u0e47-\u0e4e\u0e81-\u0ebd\u0ec0-\u0ec4\u0ec8-\u0ece"
"""Letters of Thai and Lao without the repetition mark, around which a space says nothing."""

_GAP = re.compile(rf"(?<=[{_SPACE_ENDS}])[ \u00a0\u3000]+(?=[{_SPACE_ENDS}])")
_SHORTEST_LETTERS = 6
"""Less between two spaces is an item of an enumeration or a name, and no sentence."""

_ASKS = re.compile(r"[?\uff1f\u061f\u037e\u2047\u2048\u2049\u2e2e\u1367\ua60f\ua6f7\ufe16\ufe56\u1945]$")
_GREEK_ASKS = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff];$")
_ARMENIAN_ASKS = re.compile(r"\w\u055e")


def is_question(sentence: str) -> bool:
    """Whether a sentence ends with, or holds, its script's question mark."""
    end = sentence.rstrip("\"'»”’)]）」』】〉》*_ ")
    return any(asks.search(end) for asks in (_ASKS, _GREEK_ASKS, _ARMENIAN_ASKS))


def at_spaces(sentence: str, joiners: frozenset[str]) -> list[str]:
    """A sentence cut at the spaces that end one in its script; the whole where there are none.

    ``joiners``: words with which a sentence goes on after a space ("and", "which").
    """
    parts: list[str] = []
    start = 0
    for gap in _GAP.finditer(sentence):
        after = sentence[gap.end() :]
        if after.startswith(tuple(joiners)):
            continue
        # Up to the next space: whatever stands after it may be a sentence of its own.
        if (
            min(_letters(sentence[start : gap.start()]), _letters(after.split(" ", 1)[0]))
            >= _SHORTEST_LETTERS
        ):
            parts.append(sentence[start : gap.start()])
            start = gap.end()
    return [*parts, sentence[start:]]


def _letters(text: str) -> int:
    return sum(letter.isalpha() for letter in text)
