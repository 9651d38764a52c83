"""Python as it is where there is no POSIX, as far as that can be had: ``pytest -p tests.posix_free ...``.

Modules that exist on POSIX systems only can't be imported, and nothing forks. For a process that a test starts, the
text of this file can serve as its ``sitecustomize.py``.
"""

import os
import sys

MODULES = ("fcntl", "grp", "pwd", "resource", "termios")
FUNCTIONS = ("fork", "forkpty", "register_at_fork", "sched_getaffinity")


def block() -> None:
    """What has been imported already (by Python itself) keeps what it has."""
    for module in MODULES:
        sys.modules[module] = None  # type: ignore[assignment]  # importing it raises
    for function in FUNCTIONS:
        if hasattr(os, function):
            delattr(os, function)


block()
