"""``checks``: what a property comes to, in words; the numbers in them are held against what the operation found."""

from __future__ import annotations

import re
from typing import Any

from tests.cases.outcomes import Outcome

_COUNT = re.compile(
    r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed|rerun|deselected"
    r"|(?:quality failure|judge error|endpoint error|embedding error|usage error)s?)\b"
)
_EXIT = re.compile(r"exit code (?:is )?(not )?(\d+)")
# Of the whole output; what must be absent inside a part of it, the operation itself looks for.
_ABSENT = re.compile(r"no '([^']+)'(?!.* inside )|'([^']+)' occurs nowhere")
_WAITS = re.compile(r"waits? >= ([\d.]+) s, < ([\d.]+) s")
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|-n \d+")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w%]|\.\d)")


def contradictions(check: str, got: Outcome) -> list[str]:
    """Of a check in words, what did not come out, and the numbers that the operation has nothing to say about."""
    run = got.facts.get("machine")
    why = [] if run is None else _of_run(check, run)
    waited = got.facts.get("waited", ())
    for low, high in _WAITS.findall(check):
        if not waited or not float(low) <= waited[0] < float(high):
            why.append(f"{check!r}: waited {list(waited)} s")
    counts = got.facts.get("counts", {})
    if run is None:
        why += [
            f"{check!r}: {counts[word.removesuffix('s')]} {word}"
            for number, word in _COUNT.findall(check)
            if counts.get(word.removesuffix("s"), int(number)) != int(number)
        ]
    rest = check
    for read in (_QUOTED, _WAITS, *((_COUNT, _EXIT) if run is not None or counts else ())):
        rest = read.sub(" ", rest)
    known = {float(number) for number in got.facts.get("numbers", ())}
    text = got.message + (run.text if run is not None else "")
    known |= {float(number) for number in _NUMBER.findall(text)}
    ranged = re.sub(r"(\d)-(\d)", r"\1 \2", rest)
    why += [
        f"{check!r}: nothing came to {number}"
        for number in _NUMBER.findall(ranged)
        if float(number) not in known
    ]
    return why


def _of_run(check: str, run: Any) -> list[str]:
    why = []
    for number, word in _COUNT.findall(check):
        found = run.count(word.removesuffix("s"))
        if found != int(number):
            why.append(f"{check!r}: {found} {word}: {run.tail}")
    for negated, code in _EXIT.findall(check):
        if (run.code == int(code)) == bool(negated):
            why.append(f"{check!r}: exit code {run.code}: {run.tail}")
    for pair in _ABSENT.findall(check):
        piece = "".join(pair)
        if piece in run.text:
            why.append(f"{check!r}: the output has {piece!r}")
    return why
