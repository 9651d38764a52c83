"""What a report looks like, made from its model: a JSON Schema, and the tables of the documentation."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from pytest_ragbench.model import report, tests
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import Part
from pytest_ragbench.report.writing import ALWAYS_IN_A_REPORT, ALWAYS_IN_A_SCORE, AT_TIMES


def report_schema(*, closed: bool = False) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a report; every field that a run writes is required.

    Parameters
    ----------
    closed
        Refuse fields that the model does not have. Else they are allowed, so that a report of a later
        version, which has more of them, is not refused by the schema of this one.
    """
    made = TypeAdapter(RunReport).json_schema(mode="serialization")
    parts: dict[str, dict[str, Any]] = {"RunReport": made, **made["$defs"]}
    # Pydantic calls required what has no default; here it means what a run always writes.
    made["required"] = list(ALWAYS_IN_A_REPORT)
    parts["ScoreRecord"]["required"] = list(ALWAYS_IN_A_SCORE)
    for kind, at_times in AT_TIMES.items():
        required = parts[kind.__name__]["required"]
        parts[kind.__name__]["required"] = [name for name in required if name not in at_times]
    for name, part in parts.items():
        for field, said in _described().get(name, {}).items():
            part["properties"][field]["description"] = said
        if closed:
            part["additionalProperties"] = False
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


@cache
def _described() -> dict[str, dict[str, str]]:
    """Class -> field -> the docstring below it, from the source of the model; a subclass has those of its base."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(inspect.getsource(tests) + inspect.getsource(report)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        bases = [base.id for base in node.bases if isinstance(base, ast.Name) and base.id != Part.__name__]
        told = {name: said for base in bases for name, said in found.get(base, {}).items()}
        # Python keeps no docstrings of fields, so they are read from the source.
        for field, below in zip(node.body, node.body[1:], strict=False):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            match below:
                case ast.Expr(value=ast.Constant(value=str() as said)):
                    told[field.target.id] = " ".join(said.split())
        found[node.name] = told
    return found
