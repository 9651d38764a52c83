"""The function that a cluster maps over its partitions."""

from __future__ import annotations

import math
import os
from typing import Any

import pytest

from pytest_ragbench import UsageError
from pytest_ragbench.batch import score_batch

ROWS: list[dict[str, Any]] = [
    {
        "question": "How long is the warranty?",
        "answer": "Two years.",
        "contexts": ["The warranty is two years."],
    },
    {
        "question": "How long is the warranty?",
        "answer": "Ten years.",
        "contexts": ["The warranty is two years."],
    },
    {"question": "How long is the warranty?", "answer": "Two years.", "contexts": None},
]
LOCAL = {"judge": "local"}


def test_a_list_of_rows() -> None:
    found = score_batch(ROWS, ["faithfulness"], options=LOCAL)
    assert [row["score_faithfulness"] for row in found] == [1.0, 0.0, None]
    assert [bool(row["score_error"]) for row in found] == [False, False, True]
    assert "needs contexts" in found[2]["score_error"]
    assert "score_faithfulness" not in ROWS[0]


def test_a_mapping_of_columns() -> None:
    columns = {name: [row[name] for row in ROWS[:2]] for name in ROWS[0]}
    found = score_batch(columns, ["faithfulness", "abstention"], options=LOCAL)
    assert list(found["score_faithfulness"]) == [1.0, 0.0]
    assert list(found["score_abstention"]) == [0.0, 0.0]


def test_a_table_of_pyarrow() -> None:
    """What Ray Data hands over with ``batch_format="pyarrow"``."""
    pa = pytest.importorskip("pyarrow")
    found = score_batch(pa.Table.from_pylist(ROWS), ["faithfulness"], options=LOCAL)
    assert found.column("score_faithfulness").to_pylist() == [1.0, 0.0, None]
    assert found.column("score_error").to_pylist()[:2] == [None, None]


def test_other_names_of_columns_and_rows_that_cant_be_read() -> None:
    rows = [{**ROWS[0], "bot": "Two years."}, {"question": " ", "bot": "x", "contexts": ["c"]}]
    rows[0].pop("answer")
    found = score_batch(rows, ["faithfulness"], options=LOCAL, columns={"answer": "bot"})
    assert found[0]["score_faithfulness"] == 1.0
    assert "blank" in found[1]["score_error"]


def test_what_is_wrong_for_all_rows_is_an_error() -> None:
    with pytest.raises(UsageError, match="did you mean"):
        score_batch(ROWS, ["fathfulness"], options=LOCAL)
    with pytest.raises(UsageError, match="no column for the question"):
        score_batch([{"colour": "red"}], ["faithfulness"], options=LOCAL)


def test_an_empty_batch_has_the_columns() -> None:
    nothing: dict[str, list[str]] = {"question": [], "answer": []}
    found = score_batch(nothing, ["abstention"], options=LOCAL)
    assert {"score_abstention", "score_error"} <= set(found)


@pytest.mark.stacks
def test_a_real_dask_cluster() -> None:
    """Two processes; the frame comes back scored, in its order."""
    dataframe = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    pandas = pytest.importorskip("pandas")
    rows = [
        {**ROWS[number % 2], "number": number, "contexts": "The warranty is two years."}
        for number in range(40)
    ]
    frame = dataframe.from_pandas(pandas.DataFrame(rows), npartitions=4)
    meta = score_batch(frame._meta, ["faithfulness"], options=LOCAL)
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster):
            scored = frame.map_partitions(_scored_here, meta=meta.assign(process=0)).compute()
    assert list(scored["number"]) == list(range(40))
    assert list(scored["score_faithfulness"]) == [1.0, 0.0] * 20
    assert os.getpid() not in set(scored["process"])
    assert not any(math.isnan(value) for value in scored["score_faithfulness"])


def _scored_here(part: Any) -> Any:
    return score_batch(part, ["faithfulness"], options=LOCAL).assign(process=os.getpid())
