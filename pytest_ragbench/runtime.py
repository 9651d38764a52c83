"""Where the helpers find judge, embedder and engine: the running test's, or a default of their own.

The plugin installs a :class:`Runtime` for each test. It holds a way to get the fixtures, not the
fixtures: a test that needs no judge builds none. Threads inherit no context variables, so the latest
runtime is also kept process-wide for them.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_ragbench.model.errors import RagbenchError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring.context import Context

if TYPE_CHECKING:
    from pytest_ragbench.model.thresholds import Threshold
    from pytest_ragbench.mutation.running import Original
    from pytest_ragbench.scoring.requests import Prepared


@dataclass(frozen=True)
class Result:
    """What one helper found out: a score, or why there is none."""

    metric: str
    sample: RagSample | None
    tier: str
    threshold: str | None = None
    passed: bool | None = None
    score: Score | None = None
    error: RagbenchError | None = None
    band: str | None = None
    count: int = 1
    """How many samples the score stands for (more than 1 for an aggregate)."""


@dataclass
class Runtime(Context):
    """What the helpers of a running test get at, lazily, and where they leave what they found out."""

    results: list[Result] = field(default_factory=list)
    waiting: Callable[[], None] = lambda: None
    """Called when the test is about to wait for replies: the moment to ask for others ahead."""

    tried: list[Original] | None = None
    """Where to keep what passed, with its judge, for ``--ragbench-mutate``; None: nowhere."""

    def record(self, result: Result) -> None:
        self.results.append(result)

    def keep(self, prepared: Prepared, limit: Threshold, found: Score, *, part: str | None = None) -> None:
        """What passed, for ``--ragbench-mutate``; ``part``: the grade, where the metric has several."""
        if self.tried is None:
            return
        from pytest_ragbench.mutation.running import original_of

        kept = original_of(prepared, limit, found, part=part)
        if kept is not None:
            self.tried.append(kept)


_current: ContextVar[Runtime | None] = ContextVar("ragbench_runtime", default=None)
_latest: list[Runtime] = []
_default: list[Runtime] = []
_lock = threading.Lock()


def current() -> Runtime:
    """The running test's runtime; else the latest one in this process; else a standalone one."""
    runtime = _current.get()
    if runtime is not None:
        return runtime
    if _latest:
        return _latest[-1]
    with _lock:
        if not _default:
            _default.append(standalone())
        return _default[0]


@contextmanager
def using(runtime: Runtime) -> Iterator[Runtime]:
    """Make ``runtime`` the current one."""
    token = _current.set(runtime)
    _latest.append(runtime)
    try:
        yield runtime
    finally:
        _latest.remove(runtime)
        try:
            _current.reset(token)
        except ValueError:  # closed from another context (an async fixture's): nothing to restore there
            _current.set(None)


def standalone() -> Runtime:
    """Judge, embedder and engine from the configuration alone, for scripts and notebooks."""
    from pytest_ragbench import building

    settings: Any = _once(building.settings)
    engine: Any = _once(lambda: building.engine(settings(), run_id=building.new_run_id()))
    atexit.register(_close, engine)
    return Runtime(
        settings=settings,
        engine=engine,
        judge=_once(lambda: building.judge(None, engine(), settings())),
        embedder=_once(lambda: building.embedder(None, engine(), settings())),
    )


def _once(make: Callable[[], Any]) -> Callable[[], Any]:
    made: list[Any] = []
    lock = threading.RLock()

    def get() -> Any:
        with lock:
            if not made:
                made.append(make())
            return made[0]

    get.made = made  # type: ignore[attr-defined]
    return get


def _close(getter: Any) -> None:
    for engine in getter.made:
        engine.close()
