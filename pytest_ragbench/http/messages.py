"""What others sent, made fit for one line of a message."""

from __future__ import annotations

import unicodedata


def one_line(text: str, limit: int = 200) -> str:
    """The beginning on one line, without control and formatting characters: fit for terminals and XML."""
    # Enough to fill the line even where much of it is dropped; the rest of a large body is not looked at.
    start = text[: 4 * limit]
    shown = "".join(
        " " if char.isspace() else char
        for char in start
        if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Co", "Cn")
    )
    line = " ".join(shown.split())
    if len(line) <= limit and len(text) <= len(start):
        return line
    return line[: limit - 1] + "…"
