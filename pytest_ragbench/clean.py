"""Untrusted text on its way to a terminal, an XML file or a log."""

from __future__ import annotations

import unicodedata

_KEEP = "\n\t"
# Zero-width joiners are needed to write some scripts and emoji; they move nothing on the screen.
_HARMLESS_FORMAT = "\u200c\u200d"


def clean(text: str) -> str:
    r"""``text`` without anything that could drive a terminal or break XML.

    Control and format characters (escape sequences, backspaces, bidirectional overrides), lone
    surrogates and non-characters become visible escapes such as ``\x1b``.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(character if _harmless(character) else _escape(character) for character in text)


def _harmless(character: str) -> bool:
    if character in _KEEP or character in _HARMLESS_FORMAT:
        return True
    if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return False
    return ord(character) & 0xFFFE != 0xFFFE


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, limit: int = 200) -> str:
    """The beginning of ``text``, cleaned, on one line of at most ``limit`` characters."""
    start = text[: 4 * limit]  # a reply may have megabytes, of which a message shows a line
    line = clean(" ".join(start.split()))
    whole = len(line) <= limit and len(start) == len(text)
    return line if whole else line[: limit - 1].rstrip() + "…"


def counted(count: int, thing: str) -> str:
    """``1 question``, ``1,200 questions``."""
    return f"{count:,} {thing}{'s' * (count != 1)}"
