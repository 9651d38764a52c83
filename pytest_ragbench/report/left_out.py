"""Questions that a mean over a set leaves out: said beside the table, so that no mean hides how many it is of."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_ragbench.model.tests import TestRecord

_WITHOUT = "n_without_"
_REFUSALS = "n_right_refusals"


class LeftOut:
    """Takes the results of a run one by one."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, int]] = {}

    def add(self, result: TestRecord) -> None:
        for score in result.scores:
            for name, count in score.details.items():
                what = name.removeprefix(_WITHOUT).replace("_", " ")
                if name == _REFUSALS:
                    what = "refusals"
                elif not name.startswith(_WITHOUT):
                    continue
                if isinstance(count, int) and count:
                    known = self._found.setdefault(score.metric, {})
                    # Two tests over one set leave out the same questions.
                    known[what] = max(known.get(what, 0), count)

    def lines(self) -> Iterator[str]:
        """One for all metrics over a set that left out the same number of questions for the same reason."""
        metrics: dict[str, list[str]] = {}
        for metric, counts in self._found.items():
            parts = [
                f"{count} right refusal{'' if count == 1 else 's'}"
                if what == "refusals"
                else f"{count} question{'' if count == 1 else 's'} without {what}"
                for what, count in counts.items()
            ]
            metrics.setdefault(" and ".join(parts), []).append(metric)
        for said, names in metrics.items():
            yield f"{', '.join(names)} over a set {'leaves' if len(names) == 1 else 'leave'} out {said}"
