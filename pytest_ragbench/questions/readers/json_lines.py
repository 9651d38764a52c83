"""JSON Lines: one object a line; blank lines are allowed and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from pytest_ragbench.questions.exports import is_promptfoo_result, promptfoo_rows
from pytest_ragbench.questions.readers.json_text import StrictDecoder, Unparsable
from pytest_ragbench.questions.rows import Row, Source


class JsonLines:
    """``.jsonl``, ``.ndjson``."""

    suffixes = (".jsonl", ".ndjson")

    def read(self, source: Source) -> Iterator[Row]:
        """A row for each line that isn't blank."""
        # Not splitlines(): U+2028 and its like may stand inside a JSON string.
        return self._rows(source.text().split("\n"), source)

    def read_parts(self, source: Source, size: int, after: int = 0) -> Iterator[list[Row]]:
        """The rows after line ``after``, in lists of up to ``size``; lines before are not parsed."""
        with source.open(newline="\n") as lines:
            rows = self._rows(lines, source, after)
            while True:
                before = len(source.problems.found)
                part = list(islice(rows, size))
                if not part and len(source.problems.found) == before:
                    return
                yield part

    def _rows(self, lines: Iterable[str], source: Source, after: int = 0) -> Iterator[Row]:
        decoder = StrictDecoder()
        # Kept to the end: only together they show whether several prompts answered.
        of_promptfoo: list[Row] = []
        for number, line in enumerate(islice(lines, after, None), start=after + 1):
            content = line.strip()
            if not content:
                continue
            try:
                value, end = decoder.decode(content)
            except Unparsable as error:
                source.report(
                    number, f"not JSON: {error} at column {error.column + len(line) - len(line.lstrip())}"
                )
                continue
            if content[end:].strip():
                source.report(
                    number, f"more than one value on the line, from column {end + 1} on: one object a line"
                )
            elif not isinstance(value, dict):
                source.report(number, f'wanted an object, as {{"question": ...}}, got {_kind(value)}')
            elif decoder.faults:
                source.report(number, "; ".join(decoder.faults))
            elif is_promptfoo_result(value):
                of_promptfoo.append(Row(number, value))
            else:
                yield Row(number, value)
        made = promptfoo_rows([row.cells for row in of_promptfoo])
        yield from (Row(row.line, cells) for row, cells in zip(of_promptfoo, made, strict=True))


def _kind(value: object) -> str:
    names = {list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
