"""The replies that a process has put on file last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from pytest_ragbench.engine.backend import Reply


class Recent:
    """As many of the last replies as fit into ``most`` bytes of payload."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 0
        self._replies: deque[Reply] = deque()

    def __iter__(self) -> Iterator[Reply]:
        return iter(self._replies)

    def add(self, reply: Reply) -> None:
        """Remember it, and forget the oldest that no longer fit."""
        self._replies.append(reply)
        self._size += len(reply.payload)
        while self._size > self._most:
            self._size -= len(self._replies.popleft().payload)
