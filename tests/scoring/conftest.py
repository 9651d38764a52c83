from __future__ import annotations

from tests.plugin.conftest import Project, both, project

__all__ = ["Project", "both", "project"]
