"""Amounts of money in words: one way for terminal, reports, gates and messages."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal

_EXACT = Context(prec=1100)
"""Digits enough for any float."""


def dollars(cost: float | None) -> str:
    """US dollars: ``$1,234.50``, ``$0.0123``, ``$0.000001``; ``$0`` for nothing, ``-`` where it is not known.

    Cents from a dollar on, hundredths of a cent from a cent on; below that as many digits as it takes to show two that
    are not zero, since one call of a small model costs some millionths.
    """
    if not cost:
        return "-" if cost is None else "$0"
    sign, amount = ("-" if cost < 0 else ""), abs(cost)
    if not math.isfinite(amount):
        return f"{sign}${amount}"
    if amount >= 1:
        return f"{sign}${_rounded(amount, 2):,f}"
    digits = 4 if amount >= 0.01 else max(6, 1 - math.floor(math.log10(amount)))
    whole, _, part = f"{_rounded(amount, digits):f}".partition(".")
    return f"{sign}${whole}.{part.rstrip('0').ljust(2, '0')}"


def _rounded(amount: float, digits: int) -> Decimal:
    # Halves up, as in the page's script: format() rounds 1.125 to the even 1.12.
    return Decimal(amount).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP, _EXACT)
