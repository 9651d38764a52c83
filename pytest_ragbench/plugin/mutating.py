"""``--ragbench-mutate``: when the tests of a process are done, what passed is made worse and judged again."""

from __future__ import annotations

import math
from collections import Counter

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.plugin.state import RunState

ANSWERS = 50
"""Of each metric so many answers at most are tried in a run."""


def try_worse_answers(state: RunState) -> None:
    """Leave the trials in ``state.trials``, in builtin types."""
    from pytest_ragbench.mutation.running import original_of

    kept, counts = [], Counter[str]()
    for passed in state.passed or ():
        original = original_of(passed)
        if original is not None and counts[original.name] < math.ceil(ANSWERS / state.n_workers):
            counts[original.name] += 1
            kept.append(original)
    if not kept:
        return
    from pytest_ragbench.model.scores import plain
    from pytest_ragbench.mutation.running import try_out, variants_of

    try:
        trials = state.engine.wait(try_out(variants_of(kept)))
    except RagbenchError as error:
        state.warn(f"--ragbench-mutate: {error}")
        return
    state.trials = [plain(trial.to_dict()) for trial in trials]
