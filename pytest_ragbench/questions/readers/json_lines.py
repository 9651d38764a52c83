"""JSON Lines: one object a line; blank lines are allowed and counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from pytest_ragbench.questions.exports import is_promptfoo_result, promptfoo_rows
from pytest_ragbench.questions.readers.json_text import StrictDecoder, Unparsable
from pytest_ragbench.questions.reading import Row, Source


class JsonLines:
    """``.jsonl``, ``.ndjson``."""

    blank_is_missing = False

    def read(self, data: bytes, source: Source) -> Iterator[Row]:
        """A row for each line that isn't blank."""
        # Not splitlines(): U+2028 and its like may stand inside a JSON text.
        return self.rows(source.text(data).split("\n"), source)

    def rows(self, lines: Iterable[str], source: Source, after: int = 0) -> Iterator[Row]:
        """The rows of lines that come one by one; the first ``after`` lines are passed over unread."""
        decoder = StrictDecoder()
        of_promptfoo: list[Row] = []  # they say only together whether several prompts answered
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
    names = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


READER = JsonLines()
