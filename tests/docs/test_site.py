"""The documentation is built without a warning (extra ``docs``)."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_the_site_is_built_without_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings_handlers.python")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site"), strict=True)
    with caplog.at_level(logging.WARNING):
        build(config)
    assert not [record.getMessage() for record in caplog.records if record.name.startswith("mkdocs")]
    for page in ("index.html", "start.ru/index.html", "start.ja/index.html", "reference/index.html"):
        assert (tmp_path / "site" / page).is_file()


def test_every_page_is_in_the_navigation_once() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = [
        page
        for section in nav
        for entries in section.values()
        for entry in entries
        for page in entry.values()
    ]
    assert sorted(pages) == sorted(page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md"))
    assert [list(section) for section in (nav[0], nav[-1])] == [["Start"], ["Internals"]]


def anchors_of(page: Path) -> set[str]:
    slugify = pytest.importorskip("markdown.extensions.toc").slugify
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {slugify(re.sub(r"\[([^]]*)\]\([^)]*\)|`", r"\1", heading), "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md", "examples/README.md"])
def test_links_into_the_site_from_outside_it(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]+)(?:#([^)]+))?\)", text):
        file = (ROOT / name).parent / target
        assert file.exists(), f"{name}: {target}"
        assert not anchor or anchor in anchors_of(file), f"{name}: {target}#{anchor}"


def test_pages_that_the_code_names_exist() -> None:
    files = [
        file for suffix in ("py", "js", "html") for file in (ROOT / "pytest_ragbench").rglob(f"*.{suffix}")
    ]
    assert len(files) > 100
    for file in files:
        for page in re.findall(r"(?<![\w/])docs/[\w/-]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / page).is_file(), f"{file}: {page}"
