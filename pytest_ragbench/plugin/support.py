"""What a running test gets from us: a runtime for its helpers, and what has been asked ahead of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.plugin.preflight import failed_preflight
from pytest_ragbench.plugin.state import RESULTS, RunState, state_of
from pytest_ragbench.runtime import Runtime

if TYPE_CHECKING:
    from pytest_ragbench.model.samples import Question, RagSample
    from pytest_ragbench.model.scores import Score
    from pytest_ragbench.plugin.lookahead import LookAhead
    from pytest_ragbench.scoring import Prepared

_SUPPORT = pytest.StashKey["Support"]()


class Support:
    """One per process, for its tests one after the other."""

    def __init__(self, state: RunState) -> None:
        self._state = state
        self._lookahead: LookAhead | None = None
        self._checked_judges: dict[int, tuple[Any, str]] = {}

    def runtime(self, request: pytest.FixtureRequest) -> Runtime:
        """The helpers' way to the fixtures that this test sees."""
        state, item = self._state, request.node
        seen: dict[str, Any] = {}

        def fixture(kind: str) -> Any:
            if kind in seen:  # on the engine's loop too, for which who holds the lock may wait
                return seen[kind]
            with state.lock:  # threads of one test may ask at once
                if kind not in seen:
                    found = state.coerce(kind, request.getfixturevalue(kind))
                    if kind == "judge":
                        self._check_own(found)
                    seen[kind] = found
                return seen[kind]

        return Runtime(
            settings=lambda: state.settings,
            engine=lambda: state.engine,
            judge=lambda: fixture("judge"),
            embedder=lambda: fixture("embedder"),
            results=item.stash.setdefault(RESULTS, []),
            waiting=lambda long: self.look_ahead(item, asked=True, long=long),
            served=lambda: self.look_ahead(item, asked=True, waits=False),
            prefetched=lambda prepared: self.prefetched_score(item, prepared),
        )

    def look_ahead(
        self, item: pytest.Item, *, asked: bool = False, waits: bool = True, long: bool = False
    ) -> None:
        """While ``item`` waits for replies, let those of the tests to come be under way, too.

        ``asked``: it is its metrics that the item waits for, so judge and embedder are there. ``waits``: False
        where they were at hand. ``long``: it has waited for a while already.
        """
        with self._state.lock:
            if self._lookahead is None:
                from pytest_ragbench.plugin.lookahead import LookAhead

                self._lookahead = LookAhead(self._state)
            self._lookahead.top_up(item, asked=asked, waits=waits, long=long)

    def prefetched_sample(self, item: pytest.Item, retriever: Any, question: Question) -> RagSample | None:
        """What was asked ahead of the test, where it is there by now."""
        return None if self._lookahead is None else self._lookahead.take_sample(item, retriever, question)

    def prefetched_score(self, item: pytest.Item, prepared: Prepared) -> Score | None:
        """What was computed ahead of the test, where it is there by now."""
        return None if self._lookahead is None else self._lookahead.take_score(item, prepared)

    def end_look_ahead(self, *, early: bool) -> None:
        """The tests of this process are done: guess no more. In a worker, unless the run ends ``early``,
        let what is out come back.
        """
        if self._lookahead is not None and self._state.live_engine is not None:
            self._lookahead.end(early=early or bool(self._state.config.getoption("maxfail")))

    def _check_own(self, judge: Any) -> None:
        """The preflight of a judge that a fixture returned: once in this process, and it holds for each test."""
        if self._state.is_configured_judge(judge):
            return
        if id(judge) not in self._checked_judges:
            why = failed_preflight(self._state.config, self._state, judge)
            self._checked_judges[id(judge)] = (judge, why)  # holds the judge, so that its id stays its own
        if why := self._checked_judges[id(judge)][1]:
            raise JudgeError(why, code="preflight")


def support_of(config: pytest.Config) -> Support:
    """That of this process."""
    if (support := config.stash.get(_SUPPORT, None)) is None:
        support = config.stash[_SUPPORT] = Support(state_of(config))
    return support
