"""Every install command works before the package is on an index: from a clone, or on top of what was installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import PAGES, ROOT, name_of

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FIRST = [ROOT / "README.md", *(ROOT / "docs" / name for name in ("index.md", "start.ru.md", "start.ja.md"))]
"""Pages of readers who have not installed it yet."""
EXAMPLES = [ROOT / "examples" / "README.md"]


def requirements(page: Path) -> Iterator[tuple[str, str]]:
    """(requirement, its extras) of this package in each install command of a page."""
    for command in re.findall(r"pip install ([^`&|#<)\n]+)", page.read_text(encoding="utf-8")):
        for word in command.split():
            if found := re.fullmatch(r"(\.[./\w-]*|pytest-ragbench)(?:\[([\w,-]+)\])?", word.strip("'\"")):
                yield found[1], found[2] or ""


@pytest.mark.parametrize("page", PAGES + EXAMPLES, ids=name_of)
def test_a_page_names_extras_that_there_are_and_begins_with_the_clone(page: Path) -> None:
    found = list(requirements(page))
    for requirement, extras in found:
        assert set(extras.split(",")) <= {"", *PROJECT["optional-dependencies"]}, requirement
        # Without an extra, the name alone asks an index.
        assert requirement.startswith(".") or extras, requirement
    if page in FIRST:
        assert found[0][0].startswith("."), found


def test_an_extra_is_added_to_the_installed_package_without_an_index() -> None:
    pytest.importorskip("pip")
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "pytest-ragbench[parquet]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Would install" not in done.stdout


def test_the_wheel_of_the_ci_page_is_that_of_this_version() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    from pytest_ragbench import __version__

    assert f"pytest_ragbench-{__version__}-py3-none-any.whl[local]" in page
