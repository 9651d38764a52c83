"""The version of this package, as ``pyproject.toml`` has it."""

VERSION = "0.1.0"
