"""Stops asking a provider that is down: one clear message instead of a hundred timeouts."""

from __future__ import annotations

from collections.abc import Callable

from pytest_ragbench.model.errors import cause_of, with_details

FAILURES = 3
"""So many requests in a row must fail, retries used up, before a provider counts as down."""
PAUSE_S = 30.0
"""Seconds until one attempt may try again."""


class Down(Exception):
    """The provider is not asked now; the message says why. (The sender makes it the request's own error.)"""


class Breaker:
    """The health of one provider.

    Three things open it:

    - ``FAILURES`` requests in a row used up their retries;
    - ``FAILURES`` times in a row a request met a second 500, of a provider that has not answered anything yet:
      more likely it is set up wrongly than about to recover;
    - ``FAILURES`` attempts timed out, and the provider sent nothing at all since each of them
      began. This ends a hanging provider after one timeout instead of one for each retry. (A
      hanging call among answered ones proves nothing: it is retried.)

    A reply closes it, also a refusal that no retry can heal: such errors say nothing about the
    provider's health.
    """

    def __init__(self, provider: str, clock: Callable[[], float]) -> None:
        self._provider = provider
        self._clock = clock
        self._exhausted = 0
        self._silent = 0
        self._broken = 0
        self._answered = False
        self._last = ""
        self._last_sign = float("-inf")
        self._open_until: float | None = None
        self._probing = False

    def enter(self) -> None:
        """An attempt is about to be made. After the pause, one (the probe) may be, the others wait for it.

        Raises
        ------
        Down
            Where the provider is not to be asked now.
        """
        if self._open_until is None:
            return
        left = self._open_until - self._clock()
        # One probe at a time: a provider that has just come back is not met by all who waited.
        if left > 0 or self._probing:
            raise Down(
                with_details(
                    cause_of(self._last),
                    f"{self._provider} is not answering: {FAILURES} requests in a row failed like this; "
                    f"not asked again for {max(left, 1):.0f} s",
                )
            )
        self._probing = True

    def replied(self) -> None:
        """An attempt got an answer, be it a refusal that no retry can heal."""
        self._last_sign = self._clock()
        self._exhausted = self._silent = self._broken = 0
        self._answered = True
        self._open_until, self._probing = None, False

    def failed(self, began: float, code: str, message: str, attempt: int) -> None:
        """A request's n-th attempt, begun at ``began`` of the clock, failed in a way that can heal."""
        # A probe that fails says enough: the count does not start again from zero.
        if self._probing:
            self._open(message)
        elif code not in ("timeout", "connection"):  # 429, 500: it is there, if not well
            self._last_sign = self._clock()
            self._silent = 0
            self._broken += code == "http_500" and attempt > 1 and not self._answered
            if self._broken >= FAILURES:
                self._open(message)
        # A sign since this attempt began came from a provider that lives: this one call hangs, not all.
        elif code == "timeout" and self._last_sign < began:
            self._silent += 1
            if self._silent >= FAILURES:
                self._open(message)

    def exhausted(self, message: str) -> None:
        """A request used up its retries."""
        self._exhausted += 1
        if self._exhausted >= FAILURES:
            self._open(message)

    def abandoned(self) -> None:
        """An attempt was cancelled: if it was the probe, it told nothing."""
        self._probing = False

    def _open(self, message: str) -> None:
        self._last = message
        self._open_until = self._clock() + PAUSE_S
        self._probing = False
