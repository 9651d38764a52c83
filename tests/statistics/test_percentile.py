"""Nearest-rank percentiles, against NumPy's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.statistics.percentile import percentile


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=40), st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))
def test_percentiles_are_those_of_numpy(values: list[int], share: float) -> None:
    assert percentile(values, share) == np.percentile(values, 100 * share, method="inverted_cdf")
