"""What the keys are called. All of them run out by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ragbench.engine.owners import Owner, is_gone


@dataclass(frozen=True)
class Keys:
    """``PREFIX:reply:DIGEST`` and the like."""

    prefix: str

    def __call__(self, *parts: str) -> str:
        return ":".join((self.prefix, *parts))

    @property
    def alive(self) -> str:
        """What the key of each living process begins with."""
        return self("alive", "")


def who(owner: Owner) -> str:
    """The owner for the others to see."""
    return f"{owner.host}\n{owner.pid}\n{owner.started}"


def has_gone(text: str) -> bool:
    """Whether a process of this host, as :func:`who` gives it, is dead. Of other hosts only the lease tells."""
    host, pid, started = (*text.split("\n"), "", "")[:3]
    return pid.isdigit() and is_gone(host, int(pid), started)
