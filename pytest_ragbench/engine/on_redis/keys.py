"""What the keys are called. All of them run out by themselves."""

from __future__ import annotations

from dataclasses import dataclass


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
