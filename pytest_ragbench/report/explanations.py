"""What a metric says, for people, in English, Russian or Japanese."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal, get_args

from pytest_ragbench.report.figures import known

Lang = Literal["en", "ru", "ja"]
LANGS: tuple[str, ...] = get_args(Lang)


def explanation(metric: str, lang: str = "en") -> str | None:
    """One or two sentences; English where there is none in ``lang``; None for a metric that is not known here."""
    found = known(metric)
    if found is None:
        return None
    base = found.name.partition("@")[0]
    return _texts().get(lang, {}).get(base) or found.summary or None


@cache
def _texts() -> dict[str, dict[str, str]]:
    text = (files("pytest_ragbench.report") / "explanations.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
