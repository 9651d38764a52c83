"""Is a case held against all that it expects? Each expected fact is changed in turn; each change must be told.

A case that is right and stays right when a number in it is another one tests nothing there.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.cases.judging import unknown_keys
from tests.cases.running import Done, done, judged

_NUMBER = re.compile(r"(?<![\w.'])\d+(?:\.\d+)?(?![\w'])")
_NONSENSE = "zzqx"

Right = Callable[[list[Any], Any], bool]
Place = tuple[list[Any], list[Any]]
"""A path into what is expected, and the values that are put there."""


@dataclass
class Flipped:
    """What is wrong with a case as it is, how many changes were tried, and those that nobody noticed."""

    wrong: list[str] = field(default_factory=list)
    tried: int = 0
    unnoticed: list[str] = field(default_factory=list)


def flipped(case: Mapping[str, Any]) -> Flipped:
    """Run a case once and hold its outcome against each changed copy of what it expects."""
    expected = case["expected"]
    came = done(case)
    result = Flipped(unknown_keys(expected) or judged(expected, came))
    for name, changed in _changes(expected, _only_right(came, expected)):
        result.tried += 1
        again = done({**case, "expected": changed}) if "encoded_examples" in name else came
        if not judged(changed, again):
            result.unnoticed.append(name)
    return result


def _only_right(came: Done, expected: Mapping[str, Any]) -> Right:
    """Of the alternatives of a case, whether one alone is what came out."""

    def right(path: list[Any], alternative: Any) -> bool:
        alone: Any = copy.deepcopy(expected)
        place = alone
        for step in path:
            place = place[step]
        place["any"] = [alternative]
        return not judged(alone, came)

    return right


def _changes(expected: Mapping[str, Any], right: Right) -> Iterator[tuple[str, Any]]:
    """``("each.1.value -> 0.5137", the expected facts with that one changed)``."""
    for path, values in _places(expected, [], right):
        for value in values:
            changed: Any = copy.deepcopy(expected)
            place = changed
            for step in path[:-1]:
                place = place[step]
            place[path[-1]] = value
            yield f"{'.'.join(map(str, path))} -> {value!r:.60}", changed


def _places(expected: Mapping[str, Any], path: list[Any], right: Right) -> Iterator[Place]:
    """Where something can be changed, and into what."""
    for key, value in expected.items():
        here = [*path, key]
        match key:
            case "outcome" if value != "one_of" and "each" not in expected:
                yield here, [_other(value)]
            case "any":
                yield from _alternatives(value, here, path, right)
            case "each" | "extra" | "gates":
                yield here, [value[:-1]]
                for number, one in enumerate(value):
                    if isinstance(one, str):
                        yield [*here, number], [_other(one)]
                    else:
                        yield from _places(one, [*here, number], right)
            case "value":
                yield from _values(value, here)
            case "must_name":
                yield from (([*here, number], [_NONSENSE]) for number in range(len(value)))
            case "never":
                # A sentence that nobody reads is no sentence: each of them is made one.
                yield from (
                    ([*here, number], ["the sky falls on a rainy day"]) for number in range(len(value))
                )
            case "http_calls":
                yield here, [value + 1]
            case "max_http_calls":
                yield here, [0]
            case "gate" | "property" | "also" | "must_report":
                yield here, [_NONSENSE]
            case "checks":
                yield from (
                    ([*here, number], [text[: m.start()] + _more(m[0]) + text[m.end() :]])
                    for number, text in enumerate(value)
                    for m in _NUMBER.finditer(str(text))
                    # A bound that is only widened, or another number that is not there, contradicts nothing.
                    if not re.search(r"(?:< |-n |not )$|'\S*$", text[: m.start()])
                )
            case "with_option":
                yield from _places(value["then"], [*here, "then"], right)
            case "machine":
                yield from _machine(value, here)
            case "encoded_examples":
                yield from (([*here, name], [_NONSENSE]) for name in value)


def _alternatives(value: list[Any], here: list[Any], path: list[Any], right: Right) -> Iterator[Place]:
    """What else is right, is right: those that came out are changed, alone."""
    for one in value:
        if right(path, one):
            for inner, values in _places(one, [], right):
                for changed in values:
                    alone = copy.deepcopy(one)
                    place = alone
                    for step in inner[:-1]:
                        place = place[step]
                    place[inner[-1]] = changed
                    yield here, [[alone]]


def _machine(value: Mapping[str, Any], here: list[Any]) -> Iterator[Place]:
    for key, wanted in value.items():
        match key:
            case "exit_code":
                yield [*here, key], [wanted + 1]
            case "counts":
                yield from (([*here, key, word], [number + 1]) for word, number in wanted.items())
            case "file_contains":
                yield from (
                    ([*here, key, name, number], [_NONSENSE])
                    for name, pieces in wanted.items()
                    for number in range(len(pieces))
                )
            case "no_file":
                yield [*here, key], [[*wanted, "pytest.ini"]]
            case "contains":
                yield from (([*here, key, number], [_NONSENSE]) for number in range(len(wanted)))
            case "lacks":
                yield [*here, key], [[*wanted, " in "]]  # "1 passed in 0.1s"
            case "lacks_bytes_hex":
                yield [*here, key], [[*wanted, "20"]]
            case "xml_parses":
                yield [*here, key], [f"{_NONSENSE}.xml"]


def _values(value: Any, here: list[Any]) -> Iterator[Place]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key != "tol":
                yield from _values(item, [*here, key])
    elif isinstance(value, list):
        yield here, [[*value, _NONSENSE]]
        for number, item in enumerate(value):
            yield from _values(item, [*here, number])
    elif isinstance(value, bool):
        yield here, [not value]
    elif isinstance(value, (int, float)):
        yield here, [value + 0.0137]
    else:
        yield here, [_NONSENSE]


def _other(outcome: str) -> str:
    return "data_error" if outcome != "data_error" else "not_applicable"


def _more(number: str) -> str:
    return str(float(number) + 7) if "." in number else str(int(number) + 7)
