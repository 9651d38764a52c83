"""What a provider gets: times, attempts, requests at a time and per minute."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_ragbench.settings import ProviderSettings, RagSettings


@dataclass(frozen=True)
class Limits:
    """What one provider gets. Times in seconds.

    ``timeout`` bounds one attempt. ``attempts`` counts the first one too. The n-th wait is
    ``wait * 2**(n-1)`` plus up to ``wait`` of jitter, or what Retry-After says where that is more;
    no wait is longer than ``max_wait``: a server that asks for more is given up at once. A server that
    says it is busy (429) does not count as failing: it is asked again beyond ``attempts`` until ``patience``
    seconds have been waited. ``requests_per_minute`` and ``tokens_per_minute`` hold for the whole run.
    """

    timeout: float = 30.0
    max_concurrency: int = 16
    attempts: int = 4
    wait: float = 0.5
    max_wait: float = 30.0
    patience: float = 0.0
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None


def limits_of(section: ProviderSettings | RagSettings) -> Limits:
    """From a section of the settings. The service's own client gets to speak first about a timeout: it names
    the URL.
    """
    return Limits(
        timeout=section.timeout + (1.0 if isinstance(section, RagSettings) else 0.0),
        max_concurrency=section.max_concurrency,
        attempts=section.retry.attempts,
        wait=section.retry.wait,
        max_wait=section.retry.max_wait,
        patience=section.retry.waits_for_busy,
        requests_per_minute=section.requests_per_minute,
        tokens_per_minute=section.tokens_per_minute if isinstance(section, ProviderSettings) else None,
    )
