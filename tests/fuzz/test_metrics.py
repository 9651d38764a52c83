"""No sample takes a metric out of its range, or makes it anything but a number or one of our errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_ragbench import EmbeddingError, RagbenchError, RagSample, UsageError
from pytest_ragbench.clean import clean
from pytest_ragbench.metrics.registry import all_metrics, find
from pytest_ragbench.model.thresholds import Scale, parse_threshold
from tests.fuzz import strategies as fuzz
from tests.fuzz.conftest import FUZZ, says_why
from tests.scoring.asking import score_one

CUTS = ("hit_rate@3", "mrr@1", "recall@2", "precision@5", "ndcg@3", "map@2", "judged@2")
ALONE = [
    *(
        name
        for name, one in all_metrics().items()
        if one.of == "sample" and not one.tasks and not one.embedder
    ),
    *CUTS,
]


def known(name: str) -> bool:
    try:
        find(name)
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("name", [name for name in ALONE if known(name)])
@FUZZ
@given(columns=fuzz.samples_columns, ids=st.lists(st.sampled_from("abcdef"), max_size=6))
@example(columns={"question": "q", "answer": "👍", "reference": "👍"}, ids=["a", "a"])
@example(columns={"question": "q", "answer": "x", "reference": "\u0301"}, ids=[])
def test_a_metric_without_judge(name: str, columns: dict[str, Any], ids: list[str]) -> None:
    try:
        chunks = ids if columns.get("contexts") is None else ids[: len(columns["contexts"])]
        own: dict[str, Any] = (
            {} if len(chunks) < len(columns.get("contexts") or ()) else {"context_ids": chunks}
        )
        sample = RagSample(**columns, **own)
        metric = find(name)
        score = score_one(name, sample)
    except RagbenchError as error:
        says_why(error)
        return
    assert math.isfinite(score.value)
    assert metric.low <= score.value <= metric.high


numbers = st.one_of(st.floats(), st.integers(-5, 5), st.sampled_from([0.0, 1e200, 1e-200, float("nan")]))


@FUZZ
@given(st.lists(st.lists(numbers, max_size=4), min_size=2, max_size=2))
def test_a_cosine(vectors: list[list[float]]) -> None:
    from pytest_ragbench.metrics.formulas.vectors import cosine

    try:
        value = cosine(*vectors)
    except EmbeddingError:
        return
    assert -1 <= value <= 1


@FUZZ
@given(
    st.lists(st.lists(numbers, min_size=2, max_size=2), max_size=6),
    st.lists(st.sampled_from("ab"), max_size=6),
)
def test_clusters(rows: list[list[float]], labels: list[str]) -> None:
    from pytest_ragbench.metrics.formulas import clusters

    formulas: list[Callable[[], float]] = [
        lambda: clusters.intra_cluster_similarity(rows, labels).value,
        lambda: clusters.silhouette(rows, labels).value,
        lambda: clusters.silhouette(rows, labels, distance="euclidean").value,
    ]
    for formula in formulas:
        try:
            value = formula()
        except RagbenchError:
            continue
        assert -1 <= value <= 1


@FUZZ
@given(
    st.one_of(fuzz.texts, st.floats(), st.booleans(), st.none()),
    numbers,
    st.sampled_from(["higher", "lower"]),
)
@example(">=1e-400", 0.0, "higher")
@example("0.5..0.4", 0.0, "higher")
def test_thresholds(text: Any, value: float, direction: Any) -> None:
    scale = Scale("m", direction=direction)
    try:
        threshold = parse_threshold(text, scale)
    except UsageError as error:
        says_why(error)
        return
    assert not threshold.met(math.nan)
    if math.isfinite(value):
        assert threshold.met(float(threshold.shown(value))) == threshold.met(value)
    # A gate that no score can miss, or none can meet, is no gate: only the end of the range is let through.
    assert (
        threshold.met(scale.high if direction == "higher" else scale.low)
        or ".." in str(text)
        or "==" in str(text)
    )


@FUZZ
@given(fuzz.texts)
def test_no_text_drives_a_terminal(text: str) -> None:
    shown = clean(text)
    assert not any(letter < " " and letter not in "\n\t" for letter in shown)
    assert not set("\x7f\x9b\u202e\u2028\ufeff") & set(shown)
    shown.encode("utf-8")
