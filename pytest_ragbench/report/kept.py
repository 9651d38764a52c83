"""Results of a run in little memory, for what is made of them at its end."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.reading import part_from
from pytest_ragbench.report.writing import to_json


class KeptResults:
    """Takes results one by one; iterating makes each anew, in their order.

    A record takes several kB, and thousands of them have to wait for the end of a run.
    """

    def __init__(self) -> None:
        self._packed: list[bytes] = []

    def add(self, result: TestRecord) -> None:
        self._packed.append(zlib.compress(to_json(result).encode(), 1))

    def finish(self, run: RunReport) -> None:
        run.results = tuple(self)

    def __iter__(self) -> Iterator[TestRecord]:
        for packed in self._packed:
            yield part_from(TestRecord, json.loads(zlib.decompress(packed)))
