"""Texts in columns of a terminal: a Japanese character takes two cells, a combining one none."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ragbench.clean import one_line


def cells(text: str) -> int:
    """How many cells ``text`` takes."""
    if text.isascii() and text.isprintable():  # the library's tables take 0.1 s to import
        return len(text)
    from wcwidth import wcswidth

    width: int = wcswidth(text)
    return width if width >= 0 else len(text)


def cut(text: str, width: int) -> str:
    """``text`` on one line, cleaned, of at most ``width`` cells (at least 1); "…" stands for what is left out."""
    line = one_line(text, max(1, 4 * width))
    if cells(line) <= width:
        return line
    if line.isascii() and line.isprintable():
        return line[: width - 1].rstrip() + "…"
    from wcwidth import wcwidth

    kept, room = "", width - 1
    for letter in line:
        room -= max(0, wcwidth(letter))
        if room < 0:
            break
        kept += letter
    return kept.rstrip() + "…"


def wrapped(text: str, width: int, indent: int) -> list[str]:
    """One line of text as lines of at most ``width`` cells, broken at spaces where there are any; all but the first
    are indented by ``indent`` spaces.
    """
    if cells(text) <= width:
        return [text]
    lines: list[str] = []
    rest, space = text, ""
    while cells(space + rest) > width:
        kept = _fitting(rest, max(2, width - len(space)))
        # Not in the indentation of the line itself, and not for a word that would leave most of the line empty.
        place = kept.rfind(" ")
        if rest[len(kept)] != " " and place > len(kept) // 2:
            kept = kept[:place]
        lines.append((space + kept).rstrip())
        rest, space = rest[len(kept) :].lstrip(), " " * indent
    return [*lines, space + rest] if rest else lines


def _fitting(text: str, width: int) -> str:
    """The beginning of ``text``, of at most ``width`` cells and at least one character."""
    if text.isascii():
        return text[:width]
    from wcwidth import wcwidth

    room = width
    for place, letter in enumerate(text):
        room -= max(0, wcwidth(letter))
        if room < 0:
            return text[: max(1, place)]
    return text


def pad(text: str, width: int, *, right: bool = False) -> str:
    """``text`` filled up with spaces to ``width`` cells."""
    space = " " * max(0, width - cells(text))
    return space + text if right else text + space


def aligned(
    rows: Sequence[Sequence[str]], *, left: Sequence[str], drop: Sequence[str], shrink: str, columns: int
) -> list[str]:
    """Rows as lines of at most ``columns`` cells.

    Parameters
    ----------
    rows
        The first one is the header, by whose texts columns are named.
    left
        Columns that are aligned left; the others are right.
    drop
        Columns that go, in this order, until the rest fits.
    shrink
        The column that is cut where it still does not.
    """
    names = list(rows[0])
    table = {name: [row[place] for row in rows] for place, name in enumerate(names)}

    def widths() -> dict[str, int]:
        return {name: max(cells(text) for text in column) for name, column in table.items()}

    def total() -> int:
        return sum(widths().values()) + 2 * (len(table) - 1)

    # Whole columns go first: a cut name is harder to read than one number less.
    for name in drop:
        if total() > columns:
            table.pop(name, None)
    if (over := total() - columns) > 0:
        room = max(6, widths()[shrink] - over)
        table[shrink] = [cut(text, room) for text in table[shrink]]
    wide = widths()
    lines = zip(*table.values(), strict=True)
    return [
        "  ".join(
            pad(text, wide[name], right=name not in left) for name, text in zip(table, line, strict=True)
        ).rstrip()
        for line in lines
    ]
