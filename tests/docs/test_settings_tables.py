"""docs/configuration.md says of each setting what the model says."""

from __future__ import annotations

import pytest

from pytest_ragbench.options import OPTIONS
from pytest_ragbench.settings import Settings
from pytest_ragbench.settings.keys import type_at
from tests.docs.settings_tables import PAGE, page_with_tables


def test_the_page_has_todays_tables() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == page_with_tables(text), "run python -m tests.docs.settings_tables"


@pytest.mark.parametrize("setting", [option.setting for option in OPTIONS if option.setting])
def test_an_option_sets_a_key_that_there_is(setting: str) -> None:
    assert type_at(Settings, setting.split(".")) is not None
