from __future__ import annotations

import tracemalloc
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.report.kept import Kept
from tests.ground.test_merging import record

_TEXTS = st.text(st.characters())  # halves of surrogate pairs, too
_RECORDS = st.lists(
    st.dictionaries(_TEXTS, st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _TEXTS)
)


@given(_RECORDS)
def test_what_was_kept_comes_back_as_often_as_wanted(records: list[dict[str, Any]]) -> None:
    kept = Kept()
    for each in records:
        kept.add(each)
    assert list(kept) == list(kept) == records


def test_it_takes_little_memory() -> None:
    def size(keep: Any) -> int:
        tracemalloc.start()
        try:
            for number in range(200):
                keep(record(f"q{number}", number / 200))
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    as_they_are: list[Any] = []
    kept = Kept()
    assert size(kept.add) < size(as_they_are.append) / 3
    assert len(list(kept)) == len(as_they_are)
