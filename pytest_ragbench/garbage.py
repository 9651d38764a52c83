"""Python's garbage collector, kept from searching objects that live for the whole run.

Importing modules and collecting tests make some hundred thousand objects that live until the end. The collector looks
at all of them again and again: a quarter of the CPU time of a run of 100 questions.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Within, nothing is collected; who has turned the collector off finds it off afterwards, too."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def keep() -> None:
    """Take what there is now out of all collections to come (https://docs.python.org/3/library/gc.html#gc.freeze)."""
    gc.freeze()
