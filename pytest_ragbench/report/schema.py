"""The JSON Schema of the report: what a run of this version writes.

``python -m pytest_ragbench.report.schema`` prints it. The file in the package is this text, which a test checks.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from pytest_ragbench.report.reading import Report

FILE = "ragbench-report.schema.json"
# The rest of the top level is written when the run ends.
_ALWAYS = ["schema", "version", "run", "results", "complete"]
# The rest of a score is written where there is one.
_OF_A_SCORE = ["metric", "tier", "sample", "count", "value", "threshold", "passed", "band", "error"]


def made_schema() -> dict[str, Any]:
    """The schema as the models have it: every field that a run writes is required, others are allowed."""
    made = Report.model_json_schema(by_alias=True, mode="serialization")
    made["required"] = _ALWAYS
    made["$defs"]["Score"]["required"] = _OF_A_SCORE
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def report_schema() -> dict[str, Any]:
    """The schema file in the package."""
    text = (files("pytest_ragbench.report") / FILE).read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def as_text(schema: dict[str, Any]) -> str:
    """As it stands in the file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    import sys

    sys.stdout.write(as_text(made_schema()))
