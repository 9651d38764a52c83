"""Where workers of xdist reach a controller that has no engine yet."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from pytest_ragbench.plugin.reception import Reception


class Engine:
    """Takes the socket over; ``served`` is set once it has."""

    def __init__(self) -> None:
        self.served = threading.Event()
        self.given: tuple[Any, ...] = ()

    def serve(self, *given: Any) -> None:
        self.given = given
        self.served.set()


def worker(reception: Reception) -> socket.socket:
    return socket.create_connection(("127.0.0.1", reception.port), timeout=60)


def test_the_first_worker_has_the_engine_made_which_takes_over() -> None:
    one, made = Engine(), list[int]()

    def engine() -> Any:
        made.append(1)
        return one

    reception = Reception(engine)
    assert made == []
    with worker(reception) as first:
        assert one.served.wait(60)
        listening, [theirs], key = one.given
        assert theirs.getpeername() == first.getsockname()
        assert (listening.getsockname()[1], key, len(key)) == (reception.port, reception.key, 32)
        # The engine listens now: a second worker waits for it, and no other engine is made.
        with worker(reception):
            second, _ = listening.accept()
            second.close()
        theirs.close()
    reception.close()
    assert len(made) == 1


def test_an_engine_that_can_not_be_made_sends_workers_away_each_in_turn() -> None:
    asked: list[int] = []

    def engine() -> Any:
        asked.append(1)
        raise ValueError("a wrong setting")

    reception = Reception(engine)
    for turn in (1, 2):
        with worker(reception) as told:
            assert told.recv(1) == b""
        assert len(asked) == turn
    reception.close()


def test_a_run_without_workers_leaves_no_thread_behind() -> None:
    before = set(threading.enumerate())
    reception = Reception(Engine)  # type: ignore[arg-type]
    [thread] = set(threading.enumerate()) - before
    assert thread.daemon
    reception.close()
    thread.join(60)
    assert not thread.is_alive()
    with pytest.raises(OSError):
        worker(reception).close()
