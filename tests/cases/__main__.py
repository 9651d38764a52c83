"""``python -m tests.cases FOLDER [ID ...]``: run case files against the product."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from tests.cases.flips import flipped
from tests.cases.running import case_files, run_file


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder of case files, or one case file")
    parser.add_argument("ids", nargs="*", help="only these cases")
    parser.add_argument(
        "--flips",
        action="store_true",
        help="change each expected fact in turn, and tell which change is not noticed",
    )
    given = parser.parse_args(arguments)
    if given.flips:
        return _flips(given.folder, given.ids)
    totals: Counter[str] = Counter()
    for path in case_files(given.folder):
        name, why = run_file(path, given.ids)
        if name is None:
            continue
        totals["WRONG" if why else "ok"] += 1
        print(name, "WRONG " + " | ".join(why) if why else "ok", flush=True)
    if not totals:
        print(f"no case file in {given.folder}", file=sys.stderr)
        return 1
    print(f"{totals.total()} cases: {totals['ok']} ok, {totals['WRONG']} WRONG")
    return 1 if totals["WRONG"] else 0


def _flips(folder: Path, ids: list[str]) -> int:
    tried = unnoticed = wrong = 0
    for path in case_files(folder):
        case = json.loads(path.read_text(encoding="utf-8"))
        if ids and case["id"] not in ids:
            continue
        found = flipped(case)
        tried, unnoticed = tried + found.tried, unnoticed + len(found.unnoticed)
        print(case["id"], f"{found.tried - len(found.unnoticed)} of {found.tried} noticed", flush=True)
        wrong += bool(found.wrong)  # of which each change would be noticed
        told = [f"wrong as it is: {why}" for why in found.wrong]
        told += [f"not noticed: {name}" for name in found.unnoticed]
        print(*(f"  {line}" for line in told), sep="\n", end="\n" if told else "")
    print(f"{tried - unnoticed} of {tried} changes noticed")
    return 1 if unnoticed or wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
