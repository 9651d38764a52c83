"""What a metric says, for people, in their language."""

from __future__ import annotations

from functools import cache
from typing import Any

from pytest_ragbench.languages import DEFAULT, catalog
from pytest_ragbench.report.summary import known_metric


def explanation(metric: str, lang: str = DEFAULT) -> str | None:
    """One or two sentences; English where there is none in ``lang``; None for a metric that is not known here."""
    found = known_metric(metric)
    if found is None:
        return None
    base = found.name.partition("@")[0]
    return _texts(lang).get(base) or found.summary or None


@cache
def _texts(lang: str) -> dict[str, Any]:
    # English has no file: it is the first line of the metric's docstring.
    language = catalog().get(lang)
    return dict(language.data("explanations")) if language else {}
