"""Where scoring finds settings, engine, judge and embedder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ragbench.embeddings import Embedder
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.engine.loop import Meanwhile
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.model.scores import Score
    from pytest_ragbench.scoring.requests import Prepared
    from pytest_ragbench.settings import Settings


@dataclass
class Context:
    """Ways to get at things, not the things: what is not needed is never built.

    Parameters
    ----------
    settings, engine
        The run's.
    judge, embedder
        Those of the running test (or the configured ones), for a request that names none of its own.
    prefetched
        The score that was computed ahead of the test for this very request; None where there is none.
    waiting
        Called when a test is about to wait for replies (with False), and where the wait is long (with True): the
        moments to ask for others ahead.
    served
        Called in its place where the test need not wait.
    """

    settings: Callable[[], Settings]
    engine: Callable[[], Engine]
    judge: Callable[[], Judge]
    embedder: Callable[[], Embedder]
    prefetched: Callable[[Prepared], Score | None] = field(default=lambda prepared: None, kw_only=True)
    waiting: Meanwhile = field(default=lambda long: None, kw_only=True)
    served: Callable[[], None] = field(default=lambda: None, kw_only=True)

    def judge_for(self, value: object) -> Judge:
        """The judge that ``value`` stands for (a judge, a spec, a list, a callable); None: the context's.

        Raises
        ------
        UsageError
            It stands for none.
        """
        if value is None:
            return self.judge()
        # A call with a judge of its own is rare, and what builds one is slow to import.
        from pytest_ragbench import building

        return building.judge(value, self.engine(), self.settings())

    def embedder_for(self, value: object) -> Embedder:
        """The embedder that ``value`` stands for; None: the context's. Raises as :meth:`judge_for`."""
        if value is None:
            return self.embedder()
        from pytest_ragbench import building

        return building.embedder(value, self.engine(), self.settings())


def context_of(
    engine: Engine, settings: Settings, *, judge: object = None, embedder: object = None
) -> Context:
    """A context without a test: the configured judge and embedder, or what ``judge`` and ``embedder`` stand for."""
    from pytest_ragbench import building

    # Cached: all metrics of a file or a command share one judge, and so its client and limits.
    return Context(
        settings=lambda: settings,
        engine=lambda: engine,
        judge=cache(lambda: building.judge(judge, engine, settings)),
        embedder=cache(lambda: building.embedder(embedder, engine, settings)),
    )
