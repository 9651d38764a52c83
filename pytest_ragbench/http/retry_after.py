"""The Retry-After header in both its forms (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_MILLISECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]+)?")
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_MAX_S = 1e9


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a reply's headers ask to wait: ``retry-after-ms`` (as OpenAI sends it), else ``Retry-After``."""
    milliseconds = headers.get("retry-after-ms") or ""
    if _MILLISECONDS.fullmatch(milliseconds):
        return float(milliseconds) / 1000
    return parse_retry_after(headers.get("Retry-After"), time.time())


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Seconds to wait, at least 0; None where the header is absent or says nothing readable.

    Parameters
    ----------
    value
        The header: seconds (a fraction too, as some proxies send it) or an HTTP date.
    now
        The present as POSIX seconds, in the clock that the date is compared with.
    """
    text = (value or "").strip()
    if _SECONDS.fullmatch(text):
        return min(float(text), _MAX_S)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # "-0000" and a missing zone: RFC 9110 dates are in UTC
            moment = moment.replace(tzinfo=UTC)
        return min(max(moment.timestamp() - now, 0.0), _MAX_S)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
