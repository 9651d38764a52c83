"""promptfoo's ``assert`` of a test, as expectations and thresholds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.specs.limits import Limit

_SAME = {
    "contains": "contains", "icontains": "contains", "contains-all": "contains", "icontains-all": "contains",
    "contains-any": "contains_any", "icontains-any": "contains_any", "not-contains": "not_contains",
    "not-icontains": "not_contains", "equals": "equals", "regex": "regex", "not-regex": "not_regex",
}  # fmt: skip
"""Its name -> ours, where the value is the same."""

_OTHERWISE: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "starts-with": lambda each: {"regex": rf"\A\s*{re.escape(str(each['value']))}"},
    "is-json": lambda each: {"json_schema": _schema(each.get("value"))},
    "latency": lambda each: {"max_latency": float(each["threshold"]) / 1000},  # it counts milliseconds
    "cost": lambda each: {"max_cost": each["threshold"]},
    "similar": lambda each: {
        "similar": {"to": each["value"], "threshold": f">={each.get('threshold', 0.75)}"}
    },
    "is-refusal": lambda each: {"abstains": True},
    "not-is-refusal": lambda each: {"abstains": False},
}
_METRICS = {
    "context-faithfulness": "faithfulness", "context-recall": "context_recall",
    "context-relevance": "context_sentence_relevancy", "answer-relevance": "answer_relevancy",
    "factuality": "factual_correctness", "rouge-n": "rouge1", "bleu": "bleu",
}  # fmt: skip
_FILE = "file://"
_ELSEWHERE = {
    "python": "a question file is data, whose code is not run: write it as expect: {python: ...} into the test file",
    "javascript": "write it as expect: {python: ...} into the test file",
    "levenshtein": "write expect: {similar: {to: ..., metric: string_similarity, threshold: ...}}",
}


def from_promptfoo(given: Any) -> tuple[list[dict[str, Any]], list[Limit]]:
    """What a list of assertions expects, and the metrics that it asks for.

    Raises
    ------
    ValueError
        One that has no counterpart, or lacks its value; nothing is left out unseen.
    """
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ValueError("wanted promptfoo's list of assertions")
    expected: list[dict[str, Any]] = []
    found: list[Limit] = []
    for each in given:
        kind = str(each.get("type")) if isinstance(each, Mapping) else str(each)
        try:
            if kind in _SAME:
                expected.append({_SAME[kind]: each["value"]})
            elif kind in _OTHERWISE:
                expected.append(_OTHERWISE[kind](each))
            elif kind == "llm-rubric":
                found.append(Limit("aspect", None, {"definition": str(each["value"])}))
            elif kind in _METRICS:
                found.append(Limit(_METRICS[kind], _threshold(kind, each.get("threshold"))))
            else:
                known = [*_SAME, *_OTHERWISE, *_METRICS, "llm-rubric"]
                raise ValueError(
                    f"promptfoo's {kind!r} has no counterpart; {_ELSEWHERE.get(kind) or did_you_mean(kind, known)}"
                )
        except (KeyError, TypeError) as error:
            raise ValueError(f"promptfoo's {kind!r} without its {error}") from None
    return expected, found


def _schema(value: Any) -> Any:
    """A schema, its file, or its text in YAML."""
    if not isinstance(value, str) or not value:
        return value or True
    if value.startswith(_FILE):
        return value.removeprefix(_FILE)
    import yaml

    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        raise ValueError("promptfoo's 'is-json': its value is not a JSON Schema") from None


def _threshold(kind: str, limit: Any) -> str | None:
    if limit is None:
        return None
    # Its BLEU ends at 1, ours at 100 as sacrebleu's.
    return f">={float(limit) * 100:g}" if kind == "bleu" else f">={limit}"
