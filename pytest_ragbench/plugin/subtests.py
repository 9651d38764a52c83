"""Subtests: of pytest since 9, of the plugin pytest-subtests before. Each leaves a record; so does their test."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_ragbench.model.tests import Outcome, TestRecord

_ALL_METRICS = "*"
"""As in :attr:`TestRecord.metrics`."""


def is_subtest(report: pytest.TestReport) -> bool:
    # By name: pytest and the plugin have a class each, and a run may have neither.
    return type(report).__name__.casefold() == "subtestreport"


class Subtests:
    """On the controller: what subtests have told until their test ends."""

    def __init__(self) -> None:
        self._failed: dict[str, list[str | None]] = defaultdict(list)
        self._scored: dict[str, set[str]] = defaultdict(set)
        self._skipped: dict[str, list[TestRecord]] = defaultdict(list)

    def see(self, report: pytest.TestReport, kind: str | None) -> None:
        """How a subtest, or a test, has ended."""
        if is_subtest(report) and report.failed:
            self._failed[report.nodeid].append(kind)

    def stands_for_subtests(self, report: pytest.TestReport) -> bool:
        """Whether a test has failed by its subtests alone, which have been counted."""
        by_subtests = isinstance(report.longrepr, str) and report.longrepr.startswith("contains ")
        return report.when == "call" and by_subtests and bool(self._failed.get(report.nodeid))

    def records(self, report: pytest.TestReport, record: TestRecord | None) -> Iterator[TestRecord]:
        """What to take in now, with what was kept back.

        A subtest that is skipped knows only which metrics its test asks for: what other subtests have scored
        is not missing.
        """
        name = report.nodeid
        if is_subtest(report):
            if record is not None and report.skipped and not record.scores:
                self._skipped[name].append(record)
            elif record is not None:
                self._scored[name].update(score.metric for score in record.scores)
                yield record
            return
        if report.when == "call" or report.when not in ("setup", "teardown"):
            scored = self._scored.pop(name, set()) | {
                score.metric for score in (record.scores if record else ())
            }
            for skipped in self._skipped.pop(name, ()):
                left = tuple(metric for metric in skipped.metrics if not _is_among(metric, scored))
                if set(left) - {_ALL_METRICS} or not scored:
                    yield replace(skipped, metrics=left)
            kinds = self._failed.pop(name, [])
            if record is not None and kinds and record.outcome == "passed":
                record = _failed(record, kinds)
        if record is not None:
            yield record


def _is_among(metric: str, scored: set[str]) -> bool:
    """Also where the metric has scores for its parts, as ``search_rag`` has."""
    return metric in scored or any(name.startswith(f"{metric}_") for name in scored)


def _failed(record: TestRecord, kinds: list[str | None]) -> TestRecord:
    """The record of a test that ended as its subtests did: a failure comes before an error."""
    order = sorted(kinds, key=lambda kind: (kind not in ("quality", None), kind is None))
    outcome: Outcome = "failed" if order[0] in ("quality", None) else "error"
    many = "s" if len(kinds) > 1 else ""
    return replace(
        record, outcome=outcome, kind=order[0], message=f"contains {len(kinds)} failed subtest{many}"
    )
