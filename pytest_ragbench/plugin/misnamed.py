"""A test file in YAML that pytest would pass over, since its name lacks ``.rag``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_ragbench.plugin.state import state_of

_NAMED_LIKE_TESTS = re.compile(r"tests?(?:[_.-].*)?|.*[_.-]tests?|.*rag.*", re.IGNORECASE)
_MOST = 65_536


def misnamed(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """An error in the place of a file that was named on the command line; a warning about one that was found."""
    named = any(_is(arg, path, parent.config) for arg in parent.config.args)
    # Files with other names are data, and not even opened: this is asked in every run with YAML in its folders.
    if not named and not _NAMED_LIKE_TESTS.fullmatch(path.stem):
        return None
    if not _looks_like_tests(path):
        return None
    cure = (
        f"{path.name} looks like tests of ragbench, which end in .rag.yaml: rename it to {path.stem}.rag.yaml"
    )
    if named:
        return _Misnamed.from_parent(parent, path=path, cure=cure)
    parent.warn(pytest.PytestCollectionWarning(f"{path}: {cure}"))
    return None


def _is(arg: str, path: Path, config: pytest.Config) -> bool:
    return (config.invocation_params.dir / str(arg).partition("::")[0]) == path


def _looks_like_tests(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return False
    one = re.search(r"^questions\s*:", text, re.MULTILINE)
    several = re.search(r"^tests\s*:", text, re.MULTILINE)
    asserted = re.search(r"^(?:thresholds|over|expect)\s*:", text, re.MULTILINE)
    inner = re.search(r"^[\s-]*(?:\{.*)?\b(?:thresholds|over|expect)\s*:", text, re.MULTILINE)
    return bool((one and asserted) or (several and inner))


class _Misnamed(pytest.File):
    def __init__(self, *, cure: str, **more: object) -> None:
        super().__init__(**more)  # type: ignore[arg-type]
        self._cure = cure

    def collect(self) -> Iterable[NoReturn]:
        state_of(self.config).collect_error = True
        raise self.CollectError(self._cure)
