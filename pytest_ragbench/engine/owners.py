"""Who holds a claim, and whether they still live."""

from __future__ import annotations

import os
import platform
import uuid
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Owner:
    """One engine in one process. ``started`` tells a process from a later one with its number."""

    token: str
    host: str
    pid: int
    started: str

    @classmethod
    def here(cls) -> Owner:
        pid = os.getpid()
        return cls(uuid.uuid4().hex, _host(), pid, _started(pid) or "")


def is_gone(host: str, pid: int, started: str) -> bool:
    """True only where the process is certain to be dead: it was of this host, and is no more."""
    if host != _host():
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False  # somebody else's process: there
    now = _started(pid)
    return now is not None and now != started


def _host() -> str:
    """The machine and the process namespace: pids of another container mean nothing here."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return f"{platform.node()}/{namespace}"


def _started(pid: int) -> str | None:
    """Start time as the kernel gives it; ``"dead"`` for a process that only waits to be reaped.

    None where there is no /proc: then only the lease tells.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before it may hold anything
    if len(fields) < 20:
        return None
    return "dead" if fields[0] in ("Z", "X") else fields[19]
