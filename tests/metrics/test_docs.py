"""docs/metrics.md says of every metric what the registry says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_ragbench.assertions.stub import is_built_in
from pytest_ragbench.metrics.registry import Metric, all_metrics
from tests.metrics.test_local import BASES, COMPLETE, OPTIONS, any_judge, with_cut

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def rows() -> dict[str, list[str]]:
    found, tier = {}, ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 6:
            continue
        if match := re.match(r"\*\*(.+?)\*\*", cells[0]):
            tier = match[1].replace(" ", "_")
        elif match := re.fullmatch(r"`(\w+)`", cells[0]):
            found[match[1]] = [tier, *cells[1:]]
    return found


def metrics() -> dict[str, Metric]:
    return {
        name: known
        for name, known in all_metrics().items()
        if not name.startswith("test_") and is_built_in(known)
    }


def test_every_metric_has_a_row() -> None:
    assert rows().keys() == metrics().keys()


@pytest.mark.parametrize("name", sorted(rows()))
def test_its_row_is_right(name: str) -> None:
    known = metrics()[name]
    tier, needs, interval, better, _, bands = rows()[name]
    assert tier == known.tier
    assert interval == f"{known.low:g}..{known.high:g}"
    assert better == known.direction
    assert bands == (", ".join(f"{limit:g}" for limit in known.bands.values()) or "-")
    if known.of == "sample":
        assert needs.split(", ") == list(known.needs)


@pytest.mark.parametrize("name", [name for name in BASES if name in rows()])
def test_its_calls_are_counted_right(name: str) -> None:
    from pytest_ragbench import score

    judge = any_judge()
    score(
        with_cut(name),
        COMPLETE,
        judge=judge,
        embedder=lambda texts: [[1.0, 0.0] for _ in texts],
        **OPTIONS.get(name, {}),
    )
    said = rows()[name][4]
    if said.startswith("n + 3"):  # less where no claim is wrong; tested with the metric
        assert len(judge.asked) == 3
    else:
        assert len(judge.asked) == (1 if said.startswith("`votes`") else int(said[0]))
