"""The questions of a report for the page's script."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import ScoreRecord, TestRecord
from pytest_ragbench.report.rows import Row, rows_of
from pytest_ragbench.report.writing import as_brief_dict


class Texts:
    """Long texts by number: the same chunk is retrieved for many questions, and is sent once."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        if text not in self._places:
            self._places[text] = len(self.all)
            self.all.append(text)
        return self._places[text]


def payload(rows: list[Row], texts: Texts, baseline: RunReport | None = None) -> list[dict[str, Any]]:
    """The rows for the page's script; empty fields are left out, chunks stand in ``texts``. With a
    ``baseline``, each row has what its question came to there.
    """
    before: dict[tuple[str | None, str], Row] = {}
    for row in rows_of(baseline) if baseline else ():
        before.setdefault((row.system, row.sample.question), row)
        if row.sample.id is not None:
            before[row.system, row.sample.id] = row
    told = []
    for row in rows:
        entry = _filled(_told(row, texts))
        old = before.get((row.system, row.sample.id or "")) or before.get((row.system, row.sample.question))
        if old is not None:
            values = {score.metric: score.value for _, score in old.scores if score.value is not None}
            entry["baseline"] = _filled({"answer": old.sample.answer, "scores": values})
        told.append(entry)
    return told


def _told(row: Row, texts: Texts) -> dict[str, Any]:
    sample = row.sample
    told: dict[str, Any] = {
        **{
            name: getattr(sample, name)
            for name in (
                "id", "question", "answer", "reference", "lang", "tags", "must_pass", "should_abstain",
                "session", "cluster", "file", "line", "latency", "first_token", "at_once", "trace_id",
                "cached", "context_ids", "context_scores",
                "relevant_ids",
            )
        },
        "system": row.system,
        "outcome": row.outcome,
        "bad": round(row.shortfall, 6),
        "tests": [
            _filled({name: getattr(test, name) for name in ("test", "outcome", "kind", "message", "duration")})
            for test in row.tests
        ],
        "scores": [_score(result, score) for result, score in row.scores],
    }  # fmt: skip
    for name in ("contexts", "reference_contexts"):
        chunks = getattr(sample, name)
        told[name] = None if chunks is None else [texts.place(chunk) for chunk in chunks]
    return told


def _score(result: TestRecord, score: ScoreRecord) -> dict[str, Any]:
    told = as_brief_dict(replace(score, sample=None, count=1, replies=(), setup=None))
    more = {"metric": score.metric, "tier": score.tier, "test": result.test, "replies": len(score.replies)}
    return _filled({**told, **more})


_TELLING = ("answer", "contexts", "passed", "ok")
"""Fields that say something where they are empty or false."""


def _filled(told: dict[str, Any]) -> dict[str, Any]:
    """Without fields that say nothing."""

    def says(name: str, value: object) -> bool:
        return value is not None and (
            name in _TELLING or (value is not False and value not in ("", (), [], {}))
        )

    return {name: value for name, value in told.items() if says(name, value)}
