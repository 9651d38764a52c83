"""Is an outcome the one that a case expects? A list of what is wrong; empty where all is right."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tests.cases.checks import contradictions
from tests.cases.naming import missing, named
from tests.cases.nevers import FINE, nevers
from tests.cases.outcomes import Outcome

_KEYS = {
    "outcome", "value", "tol", "each", "any", "extra", "gates", "gate", "must_name", "must_not",
    "must_not_name_first", "must_report", "never", "or", "http_calls", "max_http_calls", "with_option", "machine",
    "checks", "property", "also",
}  # fmt: skip
_FOR_READERS = {"note", "comment", "policy", "applies_if", "may_show", "with", "encoded_examples"}
"""What tells more of an outcome that other keys pin down; ``encoded_examples`` goes to the operation."""


def unknown_keys(expected: Mapping[str, Any]) -> list[str]:
    """Keys of an expected outcome, and of those in it, that nothing holds against what came out."""
    why = [
        f"the runner reads no key {key!r} of 'expected'"
        for key in expected
        if key not in _KEYS | _FOR_READERS
    ]
    for part in ("each", "any"):
        why += [told for one in expected.get(part, ()) for told in unknown_keys(one)]
    return why


def wrong(expected: Mapping[str, Any], got: Outcome) -> list[str]:
    """What contradicts ``expected``."""
    if got.kind == "crash":
        return [got.message or "crash"]
    why = _each(expected, got)
    outcome = expected.get("outcome")
    if outcome == "one_of":
        attempts = [wrong(one, got) for one in expected["any"]]
        if all(attempts):
            shortest = min(attempts, key=len)
            why.append(f"none of {len(attempts)} right outcomes: {shortest[0]} (got {got.told():.160})")
    elif outcome is not None and "each" not in expected:
        why += _outcome(str(outcome), expected, got)
    elif outcome is None and "value" in expected:
        why += _top_value(expected, got)
    why += [f"never: {told}" for told in nevers(expected.get("never", ()), _asked_for(expected, got))]
    why += _facts(expected, got)
    for part in ("extra", "gates"):
        if part in expected:
            why += _part(part, expected[part], got)
    return why


def _each(expected: Mapping[str, Any], got: Outcome) -> list[str]:
    wanted = expected.get("each")
    if wanted is None:
        return list(got.problems) if got.each is not None else []
    items = got.each
    if items is None:
        return [f"{len(wanted)} outcomes expected, one came: {got.told():.160}"]
    if len(items) != len(wanted):
        return [f"{len(wanted)} outcomes expected, {len(items)} came"]
    # Problems of the whole are nobody's item.
    why = list(got.problems)
    for number, (one, item) in enumerate(zip(wanted, items, strict=True), 1):
        why += [f"#{number} {told}" for told in wrong(one, item)]
    return why


def _part(part: str, wanted: Sequence[Any], got: Outcome) -> list[str]:
    items = got.parts.get(part)
    if items is None or len(items) != len(wanted):
        return [f"{part}: {len(wanted)} expected, {len(items or ())} came"]
    why = []
    for number, (one, item) in enumerate(zip(wanted, items, strict=True), 1):
        told = {"outcome": one} if isinstance(one, str) else one
        why += [f"{part} #{number} {text}" for text in wrong(told, item)]
    return why


def _outcome(outcome: str, expected: Mapping[str, Any], got: Outcome) -> list[str]:
    if outcome == "property":
        if got.problems:
            return list(got.problems)
        run = got.facts.get("machine")
        if told := [text for check in expected.get("checks", ()) for text in contradictions(str(check), got)]:
            return told
        fine = got.kind in FINE or run is not None  # a run of pytest may well end badly
        return [] if fine else [f"property expected, got {got.told()}"]
    if got.problems:
        return list(got.problems)
    if outcome == "value":
        if got.kind not in ("value", "pass"):
            return [f"value expected, got {got.told()}"]
        return _values(expected["value"], got.value, float(expected.get("tol", 1e-9)))
    same = got.kind == outcome or (outcome == "pass" and got.kind == "value")
    if not same:
        warned = bool(got.facts.get("warnings")) and "warning" in str(expected.get("or", ""))
        return [] if warned and got.kind in FINE else [f"{outcome} expected, got {got.told()}"]
    lacking = missing(expected.get("must_name", ()), got.message, got.phrases)
    why = [f"the message does not name {item!r}: {got.message:.200}" for item in lacking]
    if "empty failure message" in expected.get("must_not", ()) and not _says_why(got.message):
        why.append(f"empty failure message: {got.message:.100}")
    return why


def _says_why(message: str) -> bool:
    return len(message.partition("\n")[0].strip()) > 10


def _top_value(expected: Mapping[str, Any], got: Outcome) -> list[str]:
    """A value beside ``each``: ``{"bleu": 100.0, "tol": 1e-06}``."""
    wanted = dict(expected["value"]) if isinstance(expected["value"], Mapping) else expected["value"]
    tol = wanted.pop("tol", expected.get("tol", 1e-9)) if isinstance(wanted, dict) else 1e-9
    return _values(wanted, got.value, float(tol))


def _values(wanted: Any, got: Any, tol: float, path: str = "value") -> list[str]:
    if isinstance(got, Outcome):
        return _inner(wanted, got, tol, path)
    if isinstance(wanted, Mapping):
        if not isinstance(got, Mapping):
            return [f"{path}: {got!r:.80} is not {wanted!r:.80}"]
        why = []
        for key, item in wanted.items():
            why += _values(item, got.get(key), tol, f"{path}.{key}")
        return why
    if isinstance(wanted, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return [f"{path}: {got!r:.160} is not {wanted!r:.160}"]
        pairs = enumerate(zip(wanted, got, strict=True))
        return [told for i, (one, other) in pairs for told in _values(one, other, tol, f"{path}[{i}]")]
    if isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        number = isinstance(got, (int, float)) and not isinstance(got, bool)
        return [] if number and abs(got - wanted) <= tol else [f"{path}: {got!r:.80} is not {wanted!r}"]
    return (
        []
        if got == wanted and isinstance(got, bool) == isinstance(wanted, bool)
        else [f"{path}: {got!r:.120} is not {wanted!r:.120}"]
    )


def _inner(wanted: Any, got: Outcome, tol: float, path: str) -> list[str]:
    """An outcome inside a value: a number, or words such as ``"usage_error naming one question"``."""
    if not isinstance(wanted, str):
        return _values(wanted, got.value if got.kind in FINE else got.told(), tol, path)
    parts = wanted.split(" or ")
    if any(got.kind in part for part in parts):
        return []
    return [f"{path}: {got.told():.120} is not {wanted!r}"]


# What must never be


def _asked_for(expected: Mapping[str, Any], got: Outcome) -> Outcome:
    """Of an operation that computes more than a case asks for, what it does."""
    wanted = expected.get("value")
    if not (isinstance(wanted, Mapping) and isinstance(got.value, Mapping) and got.each is None):
        return got
    return replace(got, value={key: value for key, value in got.value.items() if key in wanted})


# Facts beside the outcome


def _checked(text: str, got: Outcome) -> bool:
    """Sentences that the operations hold against what came out, by their own checks."""
    every = got.each or [got]
    if re.fullmatch(r"no file \S+ appears", text):
        return all(one.facts.get("files_compared") for one in every)
    if "j.xml" in text:
        return all("machine" in one.facts for one in every)
    return False


def _facts(expected: Mapping[str, Any], got: Outcome) -> list[str]:
    why = []
    calls = got.facts.get("http_calls")
    if "http_calls" in expected and calls != expected["http_calls"]:
        why.append(f"{calls} HTTP calls, {expected['http_calls']} expected")
    if "max_http_calls" in expected and (calls is None or calls > expected["max_http_calls"]):
        why.append(f"{calls} HTTP calls, at most {expected['max_http_calls']} expected")
    for name in expected.get("must_not_name_first", ()):
        if name in got.message.partition("\n")[0]:
            why.append(f"the first line names {name!r}")
    if "gate" in expected and got.facts.get("gate") != expected["gate"]:
        why.append(f"the gate came to {got.facts.get('gate')}, {expected['gate']} expected")
    for text in (expected[key] for key in ("property", "also") if key in expected):
        if text not in got.facts.get("checked", ()) and not _checked(str(text), got):
            why.append(f"nothing checks {text!r}")
    if report := expected.get("must_report"):
        notes = " ".join(map(str, got.facts.get("notes", ())))
        if not all(named(part.strip(), notes, got.phrases) for part in report.split(",")):
            why.append(f"not reported: {report!r} (reported: {notes!r:.120})")
    return why
