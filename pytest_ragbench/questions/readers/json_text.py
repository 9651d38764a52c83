"""JSON read strictly: no key twice, no NaN or Infinity, numbers that remember how they were written."""

from __future__ import annotations

import json
import math
from typing import Any, Final

from pytest_ragbench.questions.rows import repeated


class Written(float):
    """A number with its source: ``1.10`` as a reference is ``"1.10"``, not ``"1.1"``."""

    text: str

    def __new__(cls, text: str) -> Written:
        self = super().__new__(cls, text)
        self.text = text
        return self


class Unparsable(Exception):
    """Not JSON; ``line`` (1-based) and ``column`` count from the start of the text."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


class StrictDecoder:
    """Decodes one value at a time; what JSON forbids but Python accepts is collected in ``faults``."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self._decoder: Final = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_float=self._number
        )

    def decode(self, text: str, at: int = 0) -> tuple[Any, int]:
        """The value that starts at ``at`` and the offset of its end.

        Raises
        ------
        Unparsable
            Not JSON.
        """
        self.faults = []
        try:
            return self._decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            # "Unterminated string starting at": messages go on with the column.
            raise Unparsable(error.msg.removesuffix(" at"), error.lineno, error.colno) from None
        except RecursionError:
            raise Unparsable("nested too deeply", text.count("\n", 0, at) + 1, 1) from None
        except ValueError as error:  # an integer of more digits than Python converts
            raise Unparsable(str(error), text.count("\n", 0, at) + 1, 1) from None

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        # json keeps the last of two equal keys without a word; a reference would silently be lost.
        if len(value) < len(pairs):
            twice = repeated(name for name, _ in pairs)
            self.faults.append(f"key {', '.join(twice)} is given more than once")
        return value

    def _constant(self, name: str) -> float:
        self.faults.append(f"{name} is not JSON; write null for a value that is not known")
        return math.nan

    def _number(self, text: str) -> Written:
        number = Written(text)
        if not math.isfinite(number):
            self.faults.append(f"the number {text} is too large")
        return number
