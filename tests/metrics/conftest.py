from __future__ import annotations

from tests.plugin.conftest import Project, project

__all__ = ["Project", "project"]
