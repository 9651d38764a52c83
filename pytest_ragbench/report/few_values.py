"""Thresholds that ask for more than they say: a score of three claims can only be 0, .33, .67 or 1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord

_AT_LEAST = re.compile(r">=?\s*(\d*\.?\d+)")
_ENOUGH = 3
"""From so many questions on that all ask for everything, it is said also where nothing failed."""


_COUNTED = {"reference": "claims of the reference", "usefulness": "chunks", "ranking": "ids"}
"""What findings are, where their title says something else of them."""


@dataclass
class _Group:
    """The scores of one metric against one threshold that are shares of something counted."""

    total: int = 0
    few: int = 0
    by_one: int = 0
    largest: int = 0


class FewValues:
    """Takes the results of a run one by one."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str, str], _Group] = {}

    def add(self, result: TestRecord) -> None:
        for score in result.scores:
            match = _AT_LEAST.fullmatch(score.threshold or "")
            judged = [finding for finding in score.evidence if finding.ok is not None]
            told = [bool(finding.ok) for finding in judged]
            value, n = score.value, len(told)
            # Only shares of counted findings have gaps between their values; means of graded parts do not.
            if match is None or value is None or not n or abs(value - sum(told) / n) > 1e-9:
                continue
            graded = [finding.value for finding in judged if finding.value is not None]
            if len(graded) == n and abs(value - sum(graded) / n) < 1e-9:
                continue
            group = self._groups.setdefault((score.metric, match[0], score.evidence_title), _Group())
            group.total += 1
            # Where nothing held, it is not the threshold that asks for too much.
            if any(told) and (n - 1) / n < float(match[1]) < 1:
                group.few += 1
                group.largest = max(group.largest, n)
                # Of a single claim there is nothing between all and none, whatever the threshold.
                group.by_one += n > 1 and sum(told) == n - 1 and score.passed is False

    def finish(self, run: RunReport) -> None:
        run.warnings += tuple(text for text, matters in self.lines() if matters)

    def lines(self) -> Iterator[tuple[str, bool]]:
        """One for each metric and threshold of which it matters, and whether anything failed by a single claim;
        else no question has so many claims that one may be missing.
        """
        for (metric, limit, what), group in self._groups.items():
            # Where some questions have enough claims, the threshold is meant as it stands.
            if not (group.by_one or (group.few == group.total >= _ENOUGH and group.largest > 1)):
                continue
            values = [
                f"{place / group.largest:.2f}".rstrip("0").rstrip(".") for place in range(group.largest + 1)
            ]
            possible = " or ".join([", ".join(values[:-1]), values[-1]])
            counted = _COUNTED.get(what, what)
            failed = f"; {group.by_one} failed by one" if group.by_one else ""
            yield (
                f"{metric} {limit} asks for all {counted} of {group.few} of {group.total} "
                f"question{'s' * (group.total != 1)}{failed}: with {group.largest} {counted} a score can only be "
                f"{possible}",
                bool(group.by_one),
            )
