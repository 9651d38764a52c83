"""A long run in which much goes wrong: does every question have a true outcome, and do the counts add up?

    python benchmarks/soak.py [--questions 1000] [--share 0.2] [--workers 2]

Every reply of the scripted judge that is one is a good grade, so a quality failure can only be a fault taken
for a grade. A share of its calls fails in mixed ways (429, 500, cut, garbage, hang, wrong schema), and two
workers are killed (SIGKILL) on the way. Ends with exit code 1 where something does not add up.
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

from faults import workers_of
from speed import HERE, call, environment, project


def soak(url: str, where: Path, questions: int, workers: int) -> tuple[float, int, int]:
    """Seconds, exit code, workers killed."""
    environ = environment()
    options = ["-q", "-n", str(workers), "--ragbench-json=out.json", "--junitxml=out.xml"]
    began, killed = time.perf_counter(), 0
    with (where / "output.txt").open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *options],
            cwd=where,
            env=environ,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
        while process.poll() is None:
            time.sleep(0.2)
            done = call(f"{url}/peek")["calls"].get("judge", 0)
            if killed < 2 and done > (killed + 1) * questions * 2 / 3:
                candidates = workers_of(process.pid)
                if candidates:
                    os.kill(random.choice(candidates), signal.SIGKILL)
                    killed += 1
    return time.perf_counter() - began, process.returncode, killed


def checks(where: Path, questions: int, killed: int, code: int, server: dict[str, Any]) -> dict[str, bool]:
    report = json.loads((where / "out.json").read_text())
    results = report["results"]
    found = Counter(record["kind"] or record["outcome"] for record in results)
    known = {record["test"] for record in results}
    unscored = [s for r in results for s in r["scores"] if s["value"] is None]
    graded = [s["value"] for r in results for s in r["scores"] if s["value"] is not None]
    print(f"outcomes {dict(found)}; exit code {code}; crashed with their worker {questions - len(known)}")
    print(f"faults met {server['met']}; calls {server['calls']}; repeated {server['repeated']}")
    books = report["summary"]["calls"]
    print(f"the report's calls: { ({kind: sums['calls'] for kind, sums in books.items()}) }")
    return {
        "one result a test": len(known) == len(results),
        "tests without a result are those that a killed worker took": questions - len(known) <= killed,
        "nothing is a quality failure": found["quality"] == 0 and found["failed"] == 0,
        "no other outcome than passed and judge error": set(found) <= {"passed", "judge"},
        "each grade is the judge's": all(value == 1.0 for value in graded),
        "an error for each judge error": len(unscored) >= found["judge"],
        "the report is complete": report["complete"] is True and not report["lost"],
        "the summary counts the results": sum(report["summary"]["outcomes"].values()) == len(results),
        "the exit code is not 0": code != 0 or (not killed and not found["judge"]),
        "the report has no more calls than the server": books["judge"]["calls"] <= server["calls"]["judge"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--share", type=float, default=0.2)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    server = subprocess.Popen(
        [sys.executable, str(HERE / "speed_server.py")], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    try:
        with tempfile.TemporaryDirectory() as directory:
            where = Path(directory)
            project(where, url, "grades", 32, given.questions)
            toml = where / "ragbench.toml"
            toml.write_text(toml.read_text().replace("timeout = 10", "timeout = 3"))
            fault = {"fault": "mixed", "share": given.share, "retry_after": 0.3}
            call(f"{url}/config", {"latency": 0.1, "jitter": 0.5, **fault})
            call(f"{url}/stats")
            seconds, code, killed = soak(url, where, given.questions, given.workers)
            print(f"{given.questions} questions in {seconds:.0f} s, {killed} workers killed")
            held = checks(where, given.questions, killed, code, call(f"{url}/stats"))
            print((where / "output.txt").read_text().splitlines()[-1])
    finally:
        server.kill()
    for name, holds in held.items():
        print(f"{'ok ' if holds else 'NOT'} {name}")
    return 0 if all(held.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
