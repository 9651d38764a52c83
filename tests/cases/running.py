"""One case file: read, run, compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cases import product, registry
from tests.cases.judging import unknown_keys, wrong
from tests.cases.outcomes import Outcome
from tests.cases.projects import Run

MACHINE = {
    "exit_code", "counts", "contains", "lacks", "lacks_bytes_hex", "xml_parses", "file_contains", "no_file",
}  # fmt: skip


def case_files(folder: Path) -> list[Path]:
    """The case files of a folder, by name; a file stands for itself."""
    return [folder] if folder.is_file() else sorted(folder.glob("*.json"))


def run_file(path: Path, ids: Collection[str] = ()) -> tuple[str | None, list[str]]:
    """The case's id and what is wrong with its outcome; no id where it was not asked for."""
    try:
        case = json.loads(path.read_text(encoding="utf-8"))
        name = str(case["id"])
    except (ValueError, KeyError, TypeError) as error:
        return path.name, [f"no case file: {type(error).__name__}: {error}"]
    if ids and name not in ids:
        return None, []
    return name, [" ".join(told.split()) for told in run_case(case)]


@dataclass(frozen=True)
class Done:
    """What the input of a case came to; ``again`` with the options of ``with_option``."""

    got: Outcome
    again: Outcome | None = None


def run_case(case: Mapping[str, Any]) -> list[str]:
    """What is wrong with the outcome of one case."""
    return unknown_keys(case["expected"]) or judged(case["expected"], done(case))


def done(case: Mapping[str, Any]) -> Done:
    """Do what the input says; of ``expected``, an operation gets only what it can alone compare."""
    given, expected = case["input"], case["expected"]
    if "encoded_examples" in expected:
        given = {**given, "encoded_examples": expected["encoded_examples"]}
    with product.isolated():
        got = registry.run(given)
        option = expected.get("with_option")
        if not option:
            return Done(got)
        options = {key: value for key, value in option.items() if key != "then"}
        return Done(got, registry.run({**given, "options": options}))


def judged(expected: Mapping[str, Any], came: Done) -> list[str]:
    """What of ``expected`` did not come out."""
    why = wrong(expected, came.got)
    if "machine" in expected:
        why += _machine(expected["machine"], came.got)
    for number, (one, item) in enumerate(zip(expected.get("each", ()), came.got.each or (), strict=False), 1):
        why += [f"#{number} {told}" for told in _machine(one["machine"], item)] if "machine" in one else []
    if came.again is not None:
        option = expected["with_option"]
        options = {key: value for key, value in option.items() if key != "then"}
        why += [f"with {options}: {told}" for told in wrong(option["then"], came.again)]
    return list(dict.fromkeys(why))


def _machine(wanted: Mapping[str, Any], got: Outcome) -> list[str]:
    """What a run of pytest left behind, against ``machine``."""
    run: Run | None = got.facts.get("machine")
    if run is None:
        return ["the operation ran no pytest, so 'machine' was not checked"]
    why = [f"the runner reads no key {key!r} of 'machine'" for key in wanted if key not in MACHINE]
    if "exit_code" in wanted and run.code != wanted["exit_code"]:
        why.append(f"exit code {run.code}, {wanted['exit_code']} expected: {run.tail}")
    for word, number in wanted.get("counts", {}).items():
        if run.count(word) != number:
            why.append(f"{run.count(word)} {word}, {number} expected: {run.tail}")
    why += [f"the output lacks {text!r}" for text in wanted.get("contains", []) if text not in run.text]
    why += [f"the output has {text!r}" for text in wanted.get("lacks", []) if text in run.text]
    why += [
        f"the output has the bytes {text}"
        for text in wanted.get("lacks_bytes_hex", [])
        if bytes.fromhex(text) in run.output
    ]
    for name, pieces in wanted.get("file_contains", {}).items():
        text = run.files.get(name, b"").decode("utf-8", "replace")
        why += [f"{name} lacks {piece!r}" for piece in pieces if piece not in text]
    why += [f"the file {name} is there" for name in wanted.get("no_file", []) if name in run.files]
    if name := wanted.get("xml_parses"):
        problem = run.xml.get(name, "is missing")
        why += [f"{name} {problem}"] if problem else []
    return why
