"""``python -m tests.cases FOLDER [ID ...]``: run case files against the product."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from tests.cases.running import case_files, run_file


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder of case files, or one case file")
    parser.add_argument("ids", nargs="*", help="only these cases")
    given = parser.parse_args(arguments)
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


if __name__ == "__main__":
    sys.exit(main())
