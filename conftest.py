"""Tests of the plugin run pytest inside pytest."""

import warnings

import pytest

pytest_plugins = ["pytester"]

# An ini option would do, but pytest-asyncio is not there when somebody only runs the examples, and
# --strict-config refuses what nobody knows.
warnings.filterwarnings(
    "ignore", message="The configuration option .asyncio_default", category=pytest.PytestDeprecationWarning
)
