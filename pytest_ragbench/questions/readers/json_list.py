"""JSON: a list of objects, such a list inside an object, or an object of columns."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

from pytest_ragbench.questions.exports import rows_of
from pytest_ragbench.questions.readers.json_text import StrictDecoder, Unparsable
from pytest_ragbench.questions.rows import LISTS, Row, Source, columnar

_SPACE = re.compile(r"[ \t\n\r]*")


class JsonList:
    """``.json``."""

    suffixes = (".json",)

    def read(self, source: Source) -> Iterator[Row]:
        """A row for each object of the list, at the line where it starts."""
        return _Scan(source.text(), source).rows()


class _Scan:
    """Walks through the outer list by hand, because json doesn't say in which line an object starts."""

    def __init__(self, text: str, source: Source) -> None:
        self.text = text
        self.source = source
        self.decoder = StrictDecoder()
        self._counted = (0, 1)

    def rows(self) -> Iterator[Row]:
        start = self.skip(0)
        if self.text[start] == "[":
            end = yield from self.items(start)
        elif self.text[start] == "{":
            end = yield from self.members(start)
        else:
            self.value(start)
            self.source.stop(1, "no questions: wanted a list of objects")
        self.finish(end)

    def finish(self, end: int) -> None:
        """Nothing may follow the outer value."""
        rest = self.skip(end)
        if rest < len(self.text):
            self.source.stop(
                self.line(rest),
                "more follows after the end of the JSON value; is this JSON Lines? Then call it .jsonl, "
                "or give format='jsonl'",
            )

    def items(self, start: int) -> Generator[Row, None, int]:
        """The objects of the list at ``start``; returns the offset behind it."""
        at = self.skip(start + 1)
        if self.at(at) == "]":
            self.source.stop(self.line(start), "the list is empty: no questions")
        while True:
            line = self.line(at)
            value, end = self.value(at)
            if not isinstance(value, dict):
                self.source.report(line, f'wanted an object, as {{"question": ...}}, got {value!r:.60}')
            elif self.decoder.faults:
                self.source.report(line, "; ".join(self.decoder.faults))
            else:
                yield Row(line, value)
            at = self.skip(end)
            if self.at(at) == "]":
                return at + 1
            at = self.expect(",", at)

    def members(self, start: int) -> Generator[Row, None, int]:
        """The questions of the object at ``start``; returns the offset behind it."""
        others: dict[str, object] = {}
        found = ""
        at = self.skip(start + 1)
        while self.at(at) != "}":
            name, end = self.value(at)
            if not isinstance(name, str):
                self.source.stop(self.line(at), "not JSON: a key must be a string in double quotes")
            if name in others or name == found:
                self.source.report(self.line(at), f"key {name!r} is given more than once")
            at = self.expect(":", self.skip(end))
            # Walked, not decoded, so that the rows of the inner list have lines as well.
            if name in LISTS and self.at(at) == "[":
                if found:
                    self.source.stop(
                        self.line(at), f"two lists of questions: {found!r} and {name!r}; keep one"
                    )
                found = name
                end = yield from self.items(at)
            else:
                others[name], end = self.value(at)
                if self.decoder.faults:
                    self.source.report(self.line(at), "; ".join(self.decoder.faults))
            at = self.skip(end)
            if self.at(at) != "}":
                at = self.expect(",", at)
        if not found:
            self.finish(at + 1)
            exported = rows_of(others)
            yield from (Row(0, row) for row in exported) if exported else columnar(others, self.source)
        return at + 1

    def value(self, at: int) -> tuple[object, int]:
        try:
            return self.decoder.decode(self.text, at)
        except Unparsable as error:
            self.source.stop(error.line, f"not JSON: {error} at column {error.column}")

    def expect(self, mark: str, at: int) -> int:
        if self.at(at) != mark:
            found = repr(self.at(at)) if self.at(at) else "the end of the file"
            column = at - self.text.rfind("\n", 0, at)
            self.source.stop(self.line(at), f"not JSON: expected {mark!r} at column {column}, found {found}")
        return self.skip(at + 1)

    def at(self, at: int) -> str:
        return self.text[at : at + 1]

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def line(self, at: int) -> int:
        """1-based line of an offset. Offsets mostly grow, so lines are counted from the last one asked for."""
        offset, line = self._counted
        if at < offset:
            return self.text.count("\n", 0, at) + 1
        self._counted = (at, line + self.text.count("\n", offset, at))
        return self._counted[1]
