from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.model.report import RunInfo, RunReport
from pytest_ragbench.model.tests import SampleRecord, ScoreRecord, TestRecord
from pytest_ragbench.report.kept import KeptResults

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
_SAMPLES = st.builds(
    SampleRecord, question=_TEXTS, answer=st.none() | _TEXTS, contexts=st.none() | st.tuples(_TEXTS)
)
_SCORES = st.builds(
    ScoreRecord,
    metric=_TEXTS,
    tier=st.just("generation"),
    sample=st.none() | st.just(0),
    value=st.floats(allow_nan=False, allow_infinity=False),
    details=st.dictionaries(_TEXTS, st.none() | st.booleans() | st.integers() | _TEXTS),
)
_RESULTS = st.builds(
    TestRecord,
    test=_TEXTS,
    outcome=st.sampled_from(["passed", "failed"]),
    samples=st.tuples(_SAMPLES),
    questions=st.just(()),
    scores=st.lists(_SCORES, max_size=3).map(tuple),
)


@given(st.lists(_RESULTS, max_size=3))
def test_what_was_kept_comes_back_as_often_as_wanted(results: list[TestRecord]) -> None:
    kept = KeptResults()
    for each in results:
        kept.add(each)
    run = RunReport(run=RunInfo(id="r", started=1.0))
    kept.finish(run)
    assert list(run.results) == list(kept) == results


def test_it_takes_little_memory() -> None:
    def result(number: int) -> TestRecord:
        score = ScoreRecord(metric="mrr", tier="retrieval", sample=0, value=number / 200, threshold=">=0.5")
        sample = SampleRecord(
            id=f"q{number}", question=f"What is {number}?", contexts=(f"It is {number}. " * 40,)
        )
        return TestRecord(test=f"t[{number}]", outcome="passed", samples=(sample,), scores=(score,))

    def size(keep: Any) -> int:
        tracemalloc.start()
        try:
            for number in range(200):
                keep(result(number))
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    as_they_are: list[Any] = []
    kept = KeptResults()
    assert size(kept.add) < size(as_they_are.append) / 2
    assert len(list(kept)) == len(as_they_are)
