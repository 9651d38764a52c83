"""Options of metrics that ``[metrics]`` of the configuration gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench.config_files import Tree
from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.metrics.checks import ASKING_OPTIONS, formula_options
from pytest_ragbench.metrics.options import options_from_file
from pytest_ragbench.metrics.registry import all_metrics, find, known_metric
from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from pytest_ragbench.settings import MetricSettings, Settings

_LIKE = 0.8
"""From this ratio of difflib on, a name that nothing has registered is a known one, misspelt ..."""
_MORE_LETTERS = 2
"""... unless it is longer or shorter by more: ``faithfulness_ru`` may be a metric of somebody's own."""


def configured_options(settings: Settings, name: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """The options of a call, and what ``[metrics]`` of the configuration says where the call says nothing.

    Raises
    ------
    UsageError
        ``[metrics]`` misspells a metric, or gives one an option that it has not.
    """
    # All of [metrics], not only this one: a misspelt name is found by the first test, not by none.
    configured: dict[str, Any] = {}
    for known, chosen in settings.metrics.items():
        own = _own_options(settings, known, chosen)
        # ndcg stands for ndcg@10, too; the longer name wins.
        if isinstance(name, str) and known in (name, name.partition("@")[0]):
            configured = {**configured, **own} if known == name else {**own, **configured}
    options = {key: value for key, value in options.items() if value is not None or key not in ASKING_OPTIONS}
    ways = (
        [settings.metrics.get(each) for each in (name, name.partition("@")[0])]
        if isinstance(name, str)
        else []
    )
    way = next((each for each in ways if each is not None and each.verdicts is not None), None)
    if way is not None and "verdicts" not in options:
        configured |= {"verdicts": way.verdicts}
        configured |= {"yes_from": way.yes_from} if way.verdicts == "probability" else {}
    return {**configured, **options} if configured else options


def unregistered(settings: Settings) -> Iterator[str]:
    """A line about each table of ``[metrics]`` whose metric nothing has registered, and no ``conftest.py`` or test
    file beside or below the configuration names either.

    Raises
    ------
    UsageError
        As :func:`configured_options`.
    """
    for name, chosen in settings.metrics.items():
        _own_options(settings, name, chosen)
        if not _is_registered(name) and not _is_named(name, settings.folder):
            place = settings.place_of("metrics", name)
            yield f"{place}: nothing has registered a metric {name!r}; {did_you_mean(name, sorted(all_metrics()))}"


def _own_options(settings: Settings, name: str, chosen: MetricSettings) -> Mapping[str, Any]:
    """What ``[metrics.NAME]`` says, held against the registry; nothing where its metric is registered elsewhere."""
    try:
        if not _is_registered(name):
            if _is_misspelt(name, frozenset(all_metrics())) and not _is_named(name, settings.folder):
                find(name)
            return {}
        if not chosen.options and chosen.verdicts != "probability":
            return {}
        if chosen.verdicts == "probability":
            formula_options(known_metric(name) or find(name), {"verdicts": chosen.verdicts})
        return options_from_file(name, chosen.options, part=True)
    except UsageError as error:
        option = getattr(error, "option", None)
        place = settings.place_of("metrics", name, *([option] if option else []))
        raise UsageError(f"{place}: {error}") from None


def _is_registered(name: str) -> bool:
    return known_metric(name) is not None or known_metric(name.partition("@")[0]) is not None


@lru_cache(maxsize=256)
def _is_misspelt(name: str, known: frozenset[str]) -> bool:
    base = name.partition("@")[0]
    return any(
        abs(len(base) - len(other)) <= _MORE_LETTERS and SequenceMatcher(None, base, other).ratio() >= _LIKE
        for other in known
    )


@lru_cache(maxsize=256)
def _is_named(name: str, folder: Path | None) -> bool:
    """Whether a file that may register it does so when its own tests are run."""
    return folder is not None and Tree().names(name.partition("@")[0], [folder])
