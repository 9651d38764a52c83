"""Results that promptfoo and DeepEval export, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def rows_of(value: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The rows of promptfoo's results or of a DeepEval test run; None for anything else.

    Both keep their samples deeper in the file than a question file does.
    """
    results = value.get("results")
    if isinstance(results, Mapping) and isinstance(results.get("results"), list):
        return promptfoo_rows(results["results"])
    run = value.get("testRunData", value)
    cases = run.get("testCases") if isinstance(run, Mapping) else None
    if isinstance(cases, list) and all(isinstance(case, Mapping) for case in cases):
        return [dict(case) for case in cases]
    return None


def is_promptfoo_result(row: Mapping[str, Any]) -> bool:
    """Whether the row is one result in promptfoo's JSON Lines."""
    return "promptIdx" in row and "testIdx" in row and isinstance(row.get("vars"), Mapping)


def promptfoo_rows(results: Sequence[Any]) -> list[dict[str, Any]]:
    """Variables and output of each result; where several prompts or providers answered, with an id."""
    found = [result for result in results if isinstance(result, Mapping)]
    several = len({result.get("promptIdx") for result in found}) > 1
    rows: list[dict[str, Any]] = []
    for result in found:
        row: dict[str, Any] = {"vars": result.get("vars") or {}}
        response = result.get("response")
        output = response.get("output") if isinstance(response, Mapping) else None
        if isinstance(output, Mapping):
            row |= {str(name): cell for name, cell in output.items() if name not in ("vars", "id")}
        elif output is not None:
            row["answer"] = output
        if several:
            row["id"] = f"{result.get('testIdx', len(rows))}-{result.get('promptIdx')}"
        rows.append(row)
    return rows
