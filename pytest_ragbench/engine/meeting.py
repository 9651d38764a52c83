"""Where the processes of a run meet: call slots, budget and pace, and what a guess came to grief over."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from pytest_ragbench.engine.board import Board, Numbers
from pytest_ragbench.engine.shared_slots import SharedSlots
from pytest_ragbench.engine.slots import LocalSlots, Slots
from pytest_ragbench.model.errors import UsageError


class Failure(NamedTuple):
    """What a request ended in, its retries used up."""

    message: str
    code: str


class Meeting(Protocol):
    """What the processes of a run have in common. Used on the engine's loop only."""

    @property
    def slots(self) -> Slots: ...

    @property
    def board(self) -> Numbers: ...

    many: bool
    """Whether other processes may come here, too."""

    async def leave_failure(self, digest: str, failure: Failure) -> None:
        """Tell whoever comes for this request that it has failed."""
        ...

    async def failure(self, digest: str, *, take: bool) -> Failure | None:
        """What was left for this request; ``take``: it is the caller's, and nobody else's."""
        ...

    def close(self) -> None: ...


class Here:
    """For the processes of one host, or for a single one.

    Parameters
    ----------
    slots
        Where call slots are handed out.
    folder
        Of this run alone, for all of its processes; None: this process shares with no other.

    Raises
    ------
    UsageError
        The folder can't be used.
    """

    def __init__(self, slots: Slots, folder: Path | None) -> None:
        self.slots = slots
        self.many = folder is not None
        self._folder = folder
        try:
            self.board = Board(folder / "board" if folder is not None else None)
        except OSError as error:
            raise UsageError(f"{folder}: budget and rates can't be shared there: {error.strerror}") from None

    async def leave_failure(self, digest: str, failure: Failure) -> None:
        if self._folder is None:
            return
        with suppress(OSError):  # then the other one asks again
            unfinished = self._file(self._folder, f"{digest}-{os.getpid()}")
            unfinished.write_text(json.dumps(failure), encoding="utf-8")
            unfinished.replace(self._file(self._folder, digest))

    async def failure(self, digest: str, *, take: bool) -> Failure | None:
        if self._folder is None:
            return None
        file = self._file(self._folder, digest)
        try:
            text = file.read_text(encoding="utf-8")
            if take:
                file.unlink()  # of two who come at once, one gets it
        except OSError:
            return None
        return Failure(*json.loads(text))

    def close(self) -> None:
        self.slots.close()
        self.board.close()

    def _file(self, folder: Path, name: str) -> Path:
        return folder / f"failed-{name}.json"


def here(store: Path | None, run_id: str, *, alone: bool, folder: Path | None) -> Here:
    """Slots are run-wide where there is a place for the locks; the store tells why where there is none."""
    if store is not None and not alone:
        with suppress(OSError):
            return Here(SharedSlots(store.with_name(f"{store.name}.slots"), run_id), folder)
    return Here(LocalSlots(), None if alone else folder)
