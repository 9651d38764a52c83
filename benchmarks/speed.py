"""How long a run takes beside the floor, with a scripted server: the same calls by bare asyncio, with aiohttp and
with the client of ``openai``.

    python benchmarks/speed.py [--questions 100] [--latency 1] [--only plain,n2] [--faults]

One RAG call and two judged metrics a question. Wall time of whole processes, start included; summed
memory of all processes of a run; calls counted at the server. All rows of a table come from one run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PAIRS = {
    "grades": ("faithfulness_holistic", "answer_relevancy_holistic"),
    "claims": ("faithfulness", "answer_relevancy"),
}
ROWS: dict[str, tuple[str, int, list[str]]] = {
    "plain": ("grades", 200, []),
    "again": ("grades", 200, ["--again"]),
    "n2": ("grades", 200, ["-n", "2"]),
    "n4": ("grades", 200, ["-n", "4"]),
    "at-16": ("grades", 16, []),
    "claims": ("claims", 200, []),
    "off": ("grades", 200, ["--ragbench-lookahead=0"]),
}
FAULTS: dict[str, dict[str, Any]] = {
    "jitter": {"jitter": 0.5},
    "429 for 5 s": {"fault": "429", "for_seconds": 5},
    "500 for 1 call in 10": {"fault": "500", "every": 10},
    "cut for 1 call in 10": {"fault": "cut", "every": 10},
    "500 always": {"fault": "500"},
    "hang always": {"fault": "hang"},
}
TEST = """
import pytest
from pytest_ragbench import assert_metric

@pytest.mark.rag_questions("q.jsonl")
def test_answer(rag_sample):
    assert_metric("{0}", rag_sample, ">=0.1")
    assert_metric("{1}", rag_sample, ">=0.1")
"""
TOML = """
embedder = "local"
[rag]
url = "{url}"
max_concurrency = {slots}
[providers.judge]
base_url = "{url}/v1"
api_key_env = "SPEED_KEY"
model = "m"
max_concurrency = {slots}
timeout = 10
"""


PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "pytest_ragbench.plugin,xdist.plugin",
}
"""Without those of a developer's environment, which cost each process up to a second: a project that tests a RAG
service needs none of them."""


def environment(package: Path = HERE.parent) -> dict[str, str]:
    """The variables of a run that imports pytest_ragbench from the checkout ``package``."""
    environ = {**os.environ, **PLUGINS, "SPEED_KEY": "none", "PYTHONPATH": str(package)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return environ


def call(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as reply:
        return json.load(reply)


@contextmanager
def serving(latency: float) -> Iterator[str]:
    """The address of a scripted server that replies after ``latency`` seconds."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "speed_server.py")], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    try:
        url = server.stdout.readline().strip()
        call(f"{url}/config", {"latency": latency})
        yield url
    finally:
        server.kill()


def cpu() -> float:
    """Seconds that processes which have been waited for have computed, theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(command: list[str], where: Path, package: Path = HERE.parent) -> tuple[float, int, int]:
    """Seconds, peak of the summed resident memory (MB), exit code. :func:`cpu` tells what it computed.

    ``package``: the checkout whose pytest_ragbench is imported.
    """
    environ = environment(package)
    began, peak = time.perf_counter(), 0
    with (where / "output.txt").open("w") as output:
        process = subprocess.Popen(
            command, cwd=where, env=environ, stdout=output, stderr=output, start_new_session=True
        )
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(0.05)
    return time.perf_counter() - began, peak // 2**20, process.returncode


def memory(session: int) -> int:
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return total


def project(where: Path, url: str, pair: str, slots: int, questions: int) -> None:
    rows = [json.dumps({"id": f"q{n}", "question": f"Question {n}?"}) for n in range(questions)]
    (where / "q.jsonl").write_text("\n".join(rows))
    (where / "test_speed.py").write_text(TEST.format(*PAIRS[pair]))
    (where / "ragbench.toml").write_text(TOML.format(url=url, slots=slots))
    (where / "pytest.ini").write_text("[pytest]\n")


async def floor(url: str, questions: int, slots: int, chain: int, by_openai: bool) -> None:
    """The same calls and nothing else: a question, then a judge call beside ``chain`` that follow each other.
    The judge is asked by aiohttp, or by the client of ``openai``.
    """
    import aiohttp

    schema = {"properties": {"grade": {"type": "number"}}}
    format_ = {"type": "json_schema", "json_schema": {"name": "grade", "schema": schema}}
    asking, judging = asyncio.Semaphore(slots), asyncio.Semaphore(slots)
    if by_openai:
        import openai

        client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def judge(text: str) -> None:
            body: dict[str, Any] = {
                "model": "m",
                "messages": [{"role": "user", "content": text}],
                "response_format": format_,
            }
            if by_openai:
                async with judging:
                    await client.chat.completions.create(**body)
                return
            async with judging, session.post(f"{url}/v1/chat/completions", json=body) as reply:
                await reply.json()

        async def judges(number: int) -> None:
            for step in range(chain):
                await judge(f"a {number} {step}")

        async def one(number: int) -> None:
            async with (
                asking,
                session.get(f"{url}/llm/search-rag", params={"questions": f"F{number}"}) as reply,
            ):
                await reply.json()
            await asyncio.gather(judges(number), judge(f"b {number}"))

        await asyncio.gather(*(one(number) for number in range(questions)))


def row(name: str, url: str, questions: int, pair: str, slots: int, options: list[str]) -> str:
    with tempfile.TemporaryDirectory() as directory:
        where = Path(directory)
        project(where, url, pair, slots, questions)
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            *[option for option in options if option != "--again"],
        ]
        if "--again" in options:
            measured(command, where)
        chain = "2" if pair == "claims" else "1"
        bare = [sys.executable, __file__, "--floor", url, "--questions", str(questions)]
        bare += ["--slots", str(slots), "--chain", chain]
        least, _, _ = measured(bare, where)
        usual, _, _ = measured([*bare, "--by-openai"], where)
        call(f"{url}/stats")
        before = cpu()
        seconds, megabytes, code = measured(command, where)
        computed = cpu() - before
        stats = call(f"{url}/stats")
        last = (where / "output.txt").read_text().strip().splitlines()[-1:]
    calls = stats["calls"]
    cells = [
        name, f"{seconds:.1f} s", f"{computed:.1f} s", f"{least:.1f} s", f"{seconds / least:.2f}",
        f"{usual:.1f} s", f"{seconds / usual:.2f}",
        f"{calls.get('rag', 0)} + {calls.get('judge', 0)}", stats["repeated"], f"{megabytes} MB", code,
        "".join(last)[:40],
    ]  # fmt: skip
    return f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--only", default=",".join(ROWS))
    parser.add_argument("--faults", action="store_true", help="Also the job under each fault.")
    parser.add_argument("--floor", help=argparse.SUPPRESS)
    parser.add_argument("--slots", type=int, default=200, help=argparse.SUPPRESS)
    parser.add_argument("--by-openai", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--chain", type=int, default=1, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.floor:
        asyncio.run(floor(given.floor, given.questions, given.slots, given.chain, given.by_openai))
        return
    with serving(given.latency) as url:
        print(
            "| run | wall | CPU | by aiohttp | ratio | by openai | ratio | calls | repeated | memory | exit | said |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for name in given.only.split(","):
            print(row(name, url, given.questions, *ROWS[name]), flush=True)
        for name, config in FAULTS.items() if given.faults else ():
            call(f"{url}/config", {"latency": 0.2, **config})
            print(row(name, url, 20, "grades", 16, []), flush=True)


if __name__ == "__main__":
    main()
