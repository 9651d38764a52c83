"""The plan of a test: the helper calls that it makes, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

Of = Literal["sample", "each", "set", "other"]
"""What a helper is called on: the test's sample, each of its samples in turn, all of them at once, or something
that only the running test knows.
"""


class Symbol(Enum):
    """Stands for a value that exists only while the test runs."""

    SAMPLE = "the sample of the test"
    SAMPLES = "the samples of the test"
    EACH = "each sample of the test, in turn"
    UNKNOWN = "a value that only the running test knows"


UNKNOWN = Symbol.UNKNOWN


@dataclass(frozen=True)
class Ask:
    """One helper call.

    Parameters
    ----------
    metrics
        Threshold by metric: None where the call gives none, :data:`UNKNOWN` where it can't be known early.
        Empty where not even the metric is known.
    options
        The metric's options, as the call gives them.
    of
        What it is called on.
    gated
        Whether a threshold is needed; False for ``score`` and the like.
    grades
        Thresholds of parts of the score.
    certain
        Whether the call is made whatever the replies are (a failing assertion before it aside).
    known
        Whether everything but thresholds is known: metric, options, sample, and that judge and embedder are
        those of the fixtures.
    judge
        The ``judge=`` of the call, None for the fixture's.
    may_fail
        Whether the test goes on where the call raises (``pytest.raises``).
    helper
        The name of the helper.
    check
        What raises a usage error where ``options`` can't be; None where the metric says so.
    """

    metrics: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    of: Of = "sample"
    gated: bool = True
    grades: Mapping[str, Any] = field(default_factory=dict)
    certain: bool = True
    known: bool = True
    judge: Any = None
    may_fail: bool = False
    helper: str = ""
    check: Callable[[Mapping[str, Any]], object] | None = None


@dataclass(frozen=True)
class Plan:
    """All helper calls that a test may make, in their order.

    ``complete`` is False where its source can't be read, or a sample goes where it can't be followed. ``checks`` are
    the calls of helpers that compute no metric, and say themselves what is wrong with a call.
    """

    asks: tuple[Ask, ...] = ()
    complete: bool = True
    checks: tuple[Ask, ...] = ()

    @property
    def certain(self) -> tuple[Ask, ...]:
        """Those that can be made ahead of the test."""
        return tuple(ask for ask in self.asks if ask.certain and ask.known)

    def metric_names(self) -> Iterator[str]:
        """Every metric that the test may ask for."""
        for ask in self.asks:
            yield from ask.metrics


def is_known(value: Any) -> bool:
    """Whether a value, and all that it holds, is known before the test runs."""
    if isinstance(value, Symbol):
        return False
    if isinstance(value, dict):
        return all(is_known(key) and is_known(part) for key, part in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(is_known, value))
    return True
