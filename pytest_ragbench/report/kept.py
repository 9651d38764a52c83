"""Results of a run in little memory, for what is made of them at its end."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from typing import Any


class Kept:
    """Takes records (builtin types only) one by one; iterating makes each anew, in their order.

    A record of nested dictionaries takes 9 kB and more; thousands of them have to wait.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []

    def add(self, record: Mapping[str, Any]) -> None:
        self._packed.append(zlib.compress(json.dumps(record, separators=(",", ":")).encode(), 1))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for packed in self._packed:
            yield json.loads(zlib.decompress(packed))
