"""The Retry-After header in both its forms (RFC 9110, section 10.2.3)."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")
_LONGEST = 1e9


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
        return min(float(text), _LONGEST)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # "-0000" and a missing zone: RFC 9110 dates are in UTC
            moment = moment.replace(tzinfo=UTC)
        return min(max(moment.timestamp() - now, 0.0), _LONGEST)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
