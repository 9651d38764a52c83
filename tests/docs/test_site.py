"""The documentation is built without a warning (extra ``docs``)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
