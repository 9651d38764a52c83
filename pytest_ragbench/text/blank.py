"""What counts as no text at all."""

from __future__ import annotations

import re

# Unicode's Default_Ignorable_Code_Point (16.0), white space, controls, and letters drawn as nothing: fillers of
# Hangul, the empty Braille cell, anchors of annotations. Not all of category Cf: some Arabic signs are drawn.
_VISIBLE = re.compile(
    r"[^\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff]"
)


def is_blank(text: str | None) -> bool:
    """Whether a reader would see nothing: None, white space, or invisible characters alone.

    An answer of zero-width spaces, tags, a byte order mark, variation selectors or soft hyphens is an empty answer,
    and such a question is none.
    """
    return text is None or _VISIBLE.search(text) is None
