"""Batches of rows scored in place: what a cluster maps over its partitions.

The engine is the cluster's (Ray Data, Dask, Spark); this is the function that it calls. Each process has an
engine of ours, made with its first batch, so clients and limits are kept from batch to batch.
"""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pytest_ragbench import building
from pytest_ragbench.batch.output import wrong_in
from pytest_ragbench.batch.rows import Entry, numbered
from pytest_ragbench.batch.run import row_of
from pytest_ragbench.batch.scorer import Outcome, Scorer
from pytest_ragbench.questions.inline import record_cells
from pytest_ragbench.questions.mapping import RowMapper, checked_columns
from pytest_ragbench.questions.rows import Problems, Row, Source
from pytest_ragbench.settings import load_settings

Batch = TypeVar("Batch")

_WINDOW = 64
_scorers: dict[str, tuple[Any, Scorer]] = {}


def score_batch(
    batch: Batch,
    metrics: Sequence[str],
    *,
    options: Mapping[str, Any] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Batch:
    """The batch with a column ``score_METRIC`` for each metric, and ``score_error`` for what went wrong.

    ``ray_dataset.map_batches(score_batch, fn_kwargs={"metrics": ["faithfulness"]})``;
    ``dask_frame.map_partitions(score_batch, ["faithfulness"], meta=score_batch(dask_frame._meta, ["faithfulness"]))``.

    Parameters
    ----------
    batch
        A pandas data frame, a table of pyarrow, a mapping of columns (name -> values), or a list of rows; not
        changed.
    metrics
        Names.
    options
        Dotted settings: ``{"judge": "openai:gpt-4o-mini", "store": "/shared/store.sqlite"}``; else those of the
        process's configuration. Without ``store``, replies are not kept: processes on other hosts share no file.
    columns
        As for :func:`~pytest_ragbench.load_questions`.

    Raises
    ------
    UsageError
        Unknown metrics, a judge that can't do them, no column for the question.
    """
    rows, rebuilt = _taken_apart(batch)
    engine, scorer = _scorer(tuple(metrics), dict(options or {}))
    found = engine.wait(_scored(_entries(rows, columns or {}), scorer)) if rows else []
    added: dict[str, list[Any]] = {
        f"score_{name}": [(row.get("scores") or {}).get(name) for row in found] for name in scorer.metrics
    }
    added["score_error"] = [wrong_in(row) for row in found]
    made: Batch = rebuilt(added)
    return made


def _scorer(metrics: tuple[str, ...], options: dict[str, Any]) -> tuple[Any, Scorer]:
    # One process may be given batches of several jobs.
    key = repr((metrics, sorted(options.items())))
    if key not in _scorers:
        # Processes on other hosts share no file, and a store of each would only fill its disk.
        settings = load_settings(options={"store": "off", **options})
        engine = building.engine(settings, run_id=building.new_run_id())
        # A cluster doesn't tell its workers when they have had their last batch.
        atexit.register(engine.close)
        _scorers[key] = (engine, Scorer(metrics, engine, settings))
    return _scorers[key]


def _taken_apart(batch: Any) -> tuple[list[dict[str, Any]], Any]:
    """The rows, and a function that puts the batch together again with more columns."""
    if isinstance(batch, Mapping):
        names = list(batch)
        rows = [dict(zip(names, cells, strict=True)) for cells in zip(*batch.values(), strict=True)]
        return rows, lambda added: {**batch, **{name: _array(name, cells) for name, cells in added.items()}}
    if hasattr(batch, "assign") and hasattr(batch, "to_dict"):  # pandas
        return batch.to_dict(orient="records"), lambda added: batch.assign(
            **{name: _array(name, cells) for name, cells in added.items()}
        )
    if hasattr(batch, "append_column") and hasattr(batch, "to_pylist"):  # a table of pyarrow
        return batch.to_pylist(), lambda added: _more_columns(batch, added)
    rows = list(batch)
    return rows, lambda added: [
        {**row, **{name: cells[place] for name, cells in added.items()}} for place, row in enumerate(rows)
    ]


def _more_columns(table: Any, added: Mapping[str, list[Any]]) -> Any:
    import pyarrow as pa

    for name, cells in added.items():
        kind = pa.string() if name == "score_error" else pa.float64()
        table = table.append_column(name, pa.array(cells, type=kind))
    return table


def _array(name: str, cells: list[Any]) -> Any:
    """Scores as floats, where none is NaN: the only way for a column of floats to say so."""
    import numpy as np

    if name == "score_error":
        return np.array(cells, dtype=object)
    return np.array([float("nan") if cell is None else cell for cell in cells], dtype=float)


def _entries(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> list[Entry]:
    problems = Problems()
    source = Source(Path("batch"), "batch", columns=checked_columns(columns), problems=problems)
    mapped = [Row(number, record_cells(row, number, source)) for number, row in enumerate(rows, start=1)]
    drafts = RowMapper(source).drafts(mapped)
    if not drafts:
        problems.raise_any()
    bad = [(location.line, message) for location, message in problems.found]
    return numbered(drafts, bad, 0)


async def _scored(entries: Sequence[Entry], scorer: Scorer) -> list[dict[str, Any]]:
    window = asyncio.Semaphore(_WINDOW)

    async def one(entry: Entry) -> dict[str, Any]:
        # A large partition must not start all its calls at once.
        async with window:
            outcomes: dict[str, Outcome] = await scorer.scores(entry.sample) if entry.sample else {}
            return row_of(entry, outcomes)

    return list(await asyncio.gather(*map(one, entries)))
