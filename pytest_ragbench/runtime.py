"""Where the helpers find judge, embedder and engine: the running test's, or a default of their own.

The plugin installs a :class:`Runtime` for each test. It holds a way to get the fixtures, not the
fixtures: a test that needs no judge builds none.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pytest_ragbench.scoring.context import Context

if TYPE_CHECKING:
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.scoring.results import Result

T = TypeVar("T")


@dataclass
class Runtime(Context):
    """What the helpers of a running test get at, lazily, and where they leave what they found out."""

    results: list[Result] = field(default_factory=list)

    def record(self, result: Result) -> None:
        """Keep what a helper found out, for the test's report."""
        self.results.append(result)


class _Runtimes:
    """Those of this process: the one of each context, all that are open, and the standalone one."""

    def __init__(self) -> None:
        self._of_context: ContextVar[Runtime | None] = ContextVar("ragbench_runtime", default=None)
        self._open: list[Runtime] = []
        self._standalone = Once(standalone)

    def current(self) -> Runtime:
        runtime = self._of_context.get()
        if runtime is not None:
            return runtime
        # Threads that a test starts inherit no context variables: the latest runtime is theirs.
        return self._open[-1] if self._open else self._standalone()

    @contextmanager
    def using(self, runtime: Runtime) -> Iterator[Runtime]:
        token = self._of_context.set(runtime)
        self._open.append(runtime)
        try:
            yield runtime
        finally:
            self._open.remove(runtime)
            try:
                self._of_context.reset(token)
            except ValueError:  # closed from another context (an async fixture's): nothing to restore there
                self._of_context.set(None)


def current() -> Runtime:
    """The running test's runtime; else the latest one in this process; else a standalone one."""
    return _RUNTIMES.current()


@contextmanager
def using(runtime: Runtime) -> Iterator[Runtime]:
    """Make ``runtime`` the current one."""
    with _RUNTIMES.using(runtime):
        yield runtime


def standalone() -> Runtime:
    """Judge, embedder and engine from the configuration alone, for scripts and notebooks."""
    from pytest_ragbench import building

    settings: Once[Any] = Once(building.settings)
    engine: Once[Engine] = Once(lambda: building.engine(settings(), run_id=building.new_run_id()))
    atexit.register(_close, engine)
    return Runtime(
        settings=settings,
        engine=engine,
        judge=Once(lambda: building.judge(None, engine(), settings())),
        embedder=Once(lambda: building.embedder(None, engine(), settings())),
    )


def _close(engine: Once[Engine]) -> None:
    if engine.made is not None:
        engine.made.close()


class Once(Generic[T]):
    """A value that is made when it is first asked for, by whichever thread asks first."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.RLock()
        self.made: T | None = None

    def __call__(self) -> T:
        with self._lock:
            if self.made is None:
                self.made = self._make()
            return self.made


_RUNTIMES = _Runtimes()
