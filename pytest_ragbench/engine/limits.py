"""The engine's limits of a provider, or of the RAG service, from its section of the settings."""

from __future__ import annotations

from pytest_ragbench.engine.sending import Limits
from pytest_ragbench.settings import ProviderSettings, RagSettings


def limits_of(section: ProviderSettings | RagSettings) -> Limits:
    """Times in seconds. The service's own client gets to speak first about a timeout: it names the URL."""
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
