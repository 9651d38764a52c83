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


# What a run has only in some circumstances.
_AT_TIMES = {"Run": ["shards"], "Reply": ["cut", "task", "judge", "vote", "cached"]}


def made_schema(*, closed: bool = False) -> dict[str, Any]:
    """The schema as the models have it: every field that a run writes is required.

    Parameters
    ----------
    closed
        Refuse fields that the models do not have. Else they are allowed, so that a report of a later
        version, which has more of them, is not refused by the schema of this one.
    """
    made = Report.model_json_schema(by_alias=True, mode="serialization")
    made["required"] = _ALWAYS
    made["$defs"]["Score"]["required"] = _OF_A_SCORE
    for name, fields in _AT_TIMES.items():
        made["$defs"][name]["required"] = [
            field for field in made["$defs"][name]["required"] if field not in fields
        ]
    if closed:
        for part in (made, *made["$defs"].values()):
            part["additionalProperties"] = False
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
