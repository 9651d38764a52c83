"""What a run makes of a judge that fails, and what a killed run leaves to do.

    python benchmarks/faults.py [--questions 6] [--only "500 always,hang always"]

Each fault meets a run of its own: wall time (start included), calls at the server, exit code, outcomes. Then
a run is killed (SIGKILL, the whole session or one worker) at random moments and run again, each call counted at
the server, with the moments at which it came and was answered.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from speed import HERE, call, measured, project

TIMEOUT = 10
FAULTS: dict[str, dict[str, Any]] = {
    "none": {},
    "429 for 5 s, Retry-After 1": {"fault": "429", "for_seconds": 5},
    "500 always": {"fault": "500"},
    "garbage always": {"fault": "garbage"},
    "wrong schema always": {"fault": "schema"},
    "empty always": {"fault": "empty"},
    "cut always": {"fault": "cut"},
    "hang always": {"fault": "hang"},
    "hang for 1 call in 5": {"fault": "hang", "every": 5},
}


def workers_of(controller: int) -> list[int]:
    """Its children."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == controller:
            found.append(int(path.parent.name))
    return found


def outcomes(where: Path) -> str:
    report = json.loads((where / "out.json").read_text())
    found = Counter(record["kind"] or record["outcome"] for record in report["results"])
    return ", ".join(f"{count} {name}" for name, count in sorted(found.items()))


def command(*options: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "--ragbench-json=out.json", *options]


def fault(name: str, url: str, questions: int, options: list[str]) -> str:
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        project(where, url, "grades", 16, questions)
        call(f"{url}/config", {"latency": 0.2, **FAULTS[name]})
        call(f"{url}/stats")
        seconds, _, code = measured(command(*options), where)
        calls = call(f"{url}/stats")["calls"]
        said = outcomes(where)
    return f"| {name}{' -n 2' if options else ''} | {seconds:.1f} s | {calls.get('judge', 0)} | {code} | {said} |"


def twice(marks: list[dict[str, Any]], moment: float) -> tuple[int, int]:
    """How many calls were unanswered at that moment, and how many were answered before and came again after."""
    by_body: dict[str, list[dict[str, Any]]] = {}
    for mark in marks:
        by_body.setdefault(mark["body"], []).append(mark)
    before = [mark for mark in marks if mark["came"] < moment]
    answered = {mark["body"] for mark in before if mark["answered"] and mark["answered"] < moment}
    again = [body for body in answered if any(mark["came"] > moment for mark in by_body[body])]
    return len(before) - sum(bool(mark["answered"] and mark["answered"] < moment) for mark in before), len(
        again
    )


def killed(url: str, questions: int, options: list[str], of_all: bool = True) -> str:
    """Killed at a random moment while calls are out, then run again. Or one of the workers alone."""
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        project(where, url, "grades", 4, questions)
        toml = where / "ragbench.toml"
        toml.write_text(toml.read_text().replace("[rag]", "[rag]\nreuse_answers = true", 1))
        call(f"{url}/config", {"latency": 0.3, "jitter": 0.3})
        call(f"{url}/stats")
        environ = {**os.environ, "SPEED_KEY": "none", "PYTHONPATH": str(HERE.parent)}
        with (where / "first.txt").open("w") as output:
            process = subprocess.Popen(
                command(*options),
                cwd=where,
                env=environ,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        needed = 3 * questions
        wanted = random.uniform(0.1, 0.9) * needed
        while sum(call(f"{url}/peek")["calls"].values()) < wanted and process.poll() is None:
            time.sleep(0.02)
        workers = [] if of_all else workers_of(process.pid)
        moment = time.monotonic()
        if workers:
            os.kill(random.choice(workers), signal.SIGKILL)
        elif of_all:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.5)  # the server may still be writing replies to nobody
        on_disk = len(json.loads((where / "out.json").read_text())["results"])
        first = sum(call(f"{url}/peek")["calls"].values())
        _, _, code = measured(command(*options), where)
        marks = call(f"{url}/marks")
        said = outcomes(where)
    unanswered, again = twice(marks, moment)
    before = sum(mark["came"] < moment for mark in marks)
    who = f"{' '.join(options) or 'alone'}{'' if of_all else ', one worker'}"
    return (
        f"| {who} | {before} of {needed} | {unanswered} | {on_disk} | {len(marks) - first} | "
        f"{again} | {code} | {said} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--only", default=",".join(FAULTS))
    parser.add_argument("--kills", type=int, default=2)
    given = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, str(HERE / "speed_server.py")], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        print("| judge | wall | judge calls | exit | outcomes |\n|---|---|---|---|---|")
        for name in [
            part.replace("s; R", "s, R") for part in given.only.replace("s, R", "s; R").split(",") if part
        ]:
            print(fault(name, url, given.questions, []), flush=True)
        print(
            "\n| killed | calls before | unanswered then | results on disk | calls of the second run | "
            "answered before the kill and asked again | exit | outcomes |\n|---|---|---|---|---|---|---|---|"
        )
        for _ in range(given.kills):
            for options in ([], ["-n", "2"]):
                print(killed(url, 20, options), flush=True)
            print(killed(url, 20, ["-n", "2"], of_all=False), flush=True)
    finally:
        server.kill()


if __name__ == "__main__":
    main()
