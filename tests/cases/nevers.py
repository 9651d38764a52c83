"""``never``: what must not come out. A sentence that no reader here understands can't be held against an outcome."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from tests.cases.outcomes import Outcome

FINE = ("value", "pass", "property")
OUTCOMES = (
    "value", "pass", "quality_failure", "judge_error", "endpoint_error", "embedding_error", "data_error",
    "usage_error", "not_applicable",
)  # fmt: skip
_FLAGS = ("must_pass", "should_abstain")
"""Columns that are true or false by nature: no text that was read as a boolean."""
_NUMBER = r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_PIECE = re.compile(r"'(.+?)'")


class Unreadable(Exception):
    """No reader knows the sentence."""


def nevers(items: Any, got: Outcome) -> list[str]:
    """Those of ``never`` that the outcome breaks, and those that can't be read."""
    told = []
    for never in [items] if isinstance(items, (str, int, float)) else list(items):
        text, chosen = _of_items(never, got)
        try:
            broken = [one for one in chosen if is_broken(text, one)]
        except Unreadable:
            told.append(f"{never!r} can't be read")
        else:
            told += [f"{never!r} ({one.told():.100})" for one in broken[:1]]
    return told


_ITEMS = re.compile(r"^(?P<what>.+?) for (?:item|items) (?P<which>[\d ,\-and or]+?)(?: unless .*)?$")
_ORDER = re.compile(r"^(?P<what>.+?) for the (?P<which>first|second|given pair)$")


def _of_items(never: Any, got: Outcome) -> tuple[Any, list[Outcome]]:
    """``"0.0 for items 1-3"``: what, and the outcomes that it speaks of."""
    everything = got.each if got.each is not None else [got]
    if not isinstance(never, str):
        return never, everything
    if match := _ITEMS.match(never):
        numbers = _numbers(match["which"])
        return match["what"], [one for number, one in enumerate(everything, 1) if number in numbers]
    if match := _ORDER.match(never):
        if got.each is not None:
            return match["what"], everything[1:2] if match["which"] == "second" else everything[:1]
        return match["what"], [_half(got, match["which"])]
    return never, everything


def _half(got: Outcome, which: str) -> Outcome:
    """Of a value that has results of further inputs, those of one input."""
    if not isinstance(got.value, Mapping):
        return got
    if which == "second":
        return Outcome(got.kind, got.value.get("second"), got.message)
    others = ("second", "identical_", "disjoint_")
    first = {key: value for key, value in got.value.items() if not str(key).startswith(others)}
    return Outcome(got.kind, first, got.message)


def _numbers(text: str) -> set[int]:
    found: set[int] = set()
    for low, high in re.findall(r"(\d+)(?:-(\d+))?", text):
        found |= set(range(int(low), int(high or low) + 1))
    return found


def is_broken(never: Any, got: Outcome) -> bool:
    """Raises :class:`Unreadable` where nothing here knows the sentence."""
    if isinstance(never, (int, float)):
        return _near(got, float(never))
    text = str(never).strip()
    if text in OUTCOMES:
        return got.kind == text and text != "value"
    for pattern, reader in _READERS:
        if match := re.fullmatch(pattern, text):
            return reader(match, got)
    if " " not in text or not text.isascii():  # a piece of text that no value may hold
        return any(isinstance(leaf, str) and text in leaf for leaf in leaves(got))
    raise Unreadable(text)


def leaves(got: Outcome) -> list[Any]:
    return list(_leaves(got.value)) if got.kind in FINE else []


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Outcome):
        yield from _leaves(value.value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key not in _FLAGS:
                yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _scores(got: Outcome) -> list[float]:
    return [leaf for leaf in leaves(got) if isinstance(leaf, (int, float)) and not isinstance(leaf, bool)]


def _near(got: Outcome, number: float) -> bool:
    return any(abs(one - number) < 1e-12 for one in _scores(got))


def _named(name: str, number: float, got: Outcome) -> bool:
    if got.kind not in FINE:
        return False
    if isinstance(got.value, Mapping):
        found = [
            value for key, value in got.value.items() if str(key).split("@")[0] == name or name == "score"
        ]
    else:
        found = [got.value] if name in ("score", "") else []
    return any(isinstance(value, (int, float)) and abs(value - number) < 1e-12 for value in found)


def _texts(got: Outcome) -> list[str]:
    return [leaf for leaf in leaves(got) if isinstance(leaf, str)]


def _pieces(text: str) -> list[str]:
    return _PIECE.findall(text)


def _first_line_is(name: str, got: Outcome) -> bool:
    """An exception of somebody else's as the first thing that is said."""
    if run := got.facts.get("machine"):
        return name in run.text if name == "INTERNALERROR" else f"\nE   {name}" in run.text
    return got.message.lstrip().startswith(name)


def _warned(name: str, got: Outcome) -> bool:
    run = got.facts.get("machine")
    told = [*map(str, got.facts.get("warnings", ())), run.text if run else ""]
    return got.kind in FINE and any(name in one for one in told)


def _judged(got: Outcome) -> bool:
    """A judge was asked, or an answer that nobody should judge came out."""
    if got.facts.get("judge_calls") or any("judge was called" in problem for problem in got.problems):
        return True
    answer = got.value.get("answer") if isinstance(got.value, Mapping) and got.kind in FINE else None
    return got.facts.get("raw", False) or (isinstance(answer, str) and not answer.strip())


def _tests(got: Outcome) -> int:
    run = got.facts.get("machine")
    if run is None:
        return len(got.value) if isinstance(got.value, list) else 0
    return sum(run.count(word) for word in ("passed", "failed", "errors"))


def _one_column(got: Outcome) -> bool:
    rows = got.value if got.kind in FINE and isinstance(got.value, list) else []
    kept = [
        sum(value not in (None, [], {}, False) for key, value in row.items() if key != "id") for row in rows
    ]
    return bool(kept) and max(kept) == 1


def _joined(got: Outcome) -> bool:
    value = got.value if got.kind in FINE else None
    return isinstance(value, list) and len(value) == 1 and re.search(r"'\s+'", str(value[0])) is not None


def _together(pairs: str, got: Outcome) -> bool:
    wanted = {name: float(number) for name, number in re.findall(rf"(\w+): ({_NUMBER})", pairs)}
    if not (wanted and isinstance(got.value, Mapping) and got.kind in FINE):
        return False
    return all(got.value.get(name) == number for name, number in wanted.items())


def _silent(number: float, pieces: Sequence[str], got: Outcome) -> bool:
    told = " ".join([got.message, *map(str, got.facts.get("notes", ()))])
    return (
        got.kind in FINE and (not _scores(got) or _near(got, number)) and not all(p in told for p in pieces)
    )


def _run(got: Outcome) -> Any:
    run = got.facts.get("machine")
    if run is None:
        raise Unreadable("speaks of a run of pytest, and there was none")
    return run


_READERS: Sequence[tuple[str, Callable[[re.Match[str], Outcome], bool]]] = (
    # numbers
    ("numeric score", lambda m, got: got.kind == "value" and bool(_scores(got))),
    (r"(?i)nan\b.*", lambda m, got: any(not math.isfinite(score) for score in _scores(got))),
    (rf"score ({_NUMBER}) for ([a-z_]+)", lambda m, got: _named(m[2], float(m[1]), got)),
    (rf"([a-z_]+) ({_NUMBER})", lambda m, got: _named(m[1], float(m[2]), got)),
    (_NUMBER, lambda m, got: _near(got, float(m[0])) or m[0] in map(str, leaves(got))),
    (rf"clamped to ({_NUMBER}) or ({_NUMBER})", lambda m, got: any(_near(got, float(n)) for n in m.groups())),
    (rf"score reported as > ({_NUMBER}) or .*", lambda m, got: max(_scores(got), default=0.0) > float(m[1])),
    (r"mixed \{(.*)\}", lambda m, got: _together(m[1], got)),
    (
        rf"mean ({_NUMBER}) as quality failure",
        lambda m, got: got.kind == "quality_failure" and m[1] in got.message,
    ),
    (
        r"a positive score for an empty side",
        lambda m, got: bool(got.facts.get("empty_side")) and max(_scores(got), default=0.0) > 0,
    ),
    # outcomes
    (rf"({'|'.join(OUTCOMES)}) (?:caused by|because of) .*", lambda m, got: got.kind == m[1]),
    (
        rf"silent pass with ({_NUMBER}) that does not mention (.*)",
        lambda m, got: _silent(float(m[1]), _pieces(m[2]), got),
    ),
    (r"silent pass", lambda m, got: got.kind in ("value", "pass") and not got.facts.get("warnings")),
    (r"(?:silent )?skip\b.*", lambda m, got: "machine" in got.facts and _run(got).count("skipped") > 0),
    (r"\w+ computed with no contexts", lambda m, got: got.kind in FINE and bool(_scores(got))),
    (r"(?:empty answer judged|judge called\b.*)", lambda m, got: _judged(got)),
    # what is said
    (
        r"(?:bare )?(\w+(?:Error|Exception)|INTERNALERROR)(?: as the headline)?",
        lambda m, got: _first_line_is(m[1], got),
    ),
    (r"(\w+Warning)\b.*", lambda m, got: _warned(m[1], got)),
    (r"message ('.*)", lambda m, got: any(piece in got.message for piece in _pieces(m[1]))),
    # texts
    (r"any U\+FFFD", lambda m, got: any("\ufffd" in text for text in _texts(got))),
    (r"(?:True|False|None)", lambda m, got: any(str(leaf) == m[0] for leaf in leaves(got))),
    (r"str\(dict\) as answer", lambda m, got: any(text.startswith(("{'", '{"')) for text in _texts(got))),
    (r"\w+ starting with '(.+)'", lambda m, got: any(text.startswith(m[1]) for text in _texts(got))),
    (r"(?:\w+ containing )?'(.+)'", lambda m, got: any(m[1] in text for text in _texts(got))),
    (r"a chunk of length 1 character", lambda m, got: any(len(text) == 1 for text in _texts(got))),
    (r".*joining two chunks into one string", lambda m, got: _joined(got)),
    # question files
    (r"1 column loaded", lambda m, got: _one_column(got)),
    (
        r"(\d+)(?: or (\d+))? questions loaded.*",
        lambda m, got: got.kind in FINE and len(got.value or ()) in {int(n) for n in m.groups() if n},
    ),
    (r"(\d+) tests", lambda m, got: _tests(got) == int(m[1])),
    # runs of pytest
    (r"exit code (\d+)", lambda m, got: _run(got).code == int(m[1])),
    (r"no tests ran", lambda m, got: m[0] in _run(got).text),
    (r"asyncio loop patched globally.*", lambda m, got: _run(got).code != 0),  # the canned test compares it
)  # fmt: skip
