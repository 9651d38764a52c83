"""A run that asserts latency asks its questions one at a time."""

from __future__ import annotations

import json
import threading
import time

import pytest

from tests.plugin.conftest import Project
from tests.servers.rag_server import default_answer, rag_server

TESTS = {
    "assertion": "def test_a(rag_sample):\n    check(rag_sample)\n\n"
    "def check(sample):\n    assert_expected(sample, max_latency=5)\n",
    "attribute": "def test_a(rag_sample):\n    assert rag_sample.latency < 5\n",
    "gate": "def test_a(rag_sample):\n    assert rag_sample.answer\n",
    "none": "def test_a(rag_sample):\n    assert rag_sample.answer\n",
}


@pytest.mark.parametrize(
    ("kind", "options", "most"),
    [
        ("assertion", [], 1),
        ("attribute", ["-n", "2"], 1),
        ("gate", ["--ragbench-gate", "latency p95 <= 5"], 1),
        ("assertion", ["-n", "2", "several"], 3),
        ("none", [], 4),
    ],
)
def test_one_at_a_time(project: Project, kind: str, options: list[str], most: int) -> None:
    lock, out, seen = threading.Lock(), [0], [0]

    def answer(question: str) -> object:
        with lock:
            out[0] += 1
            seen[0] = max(seen[0], out[0])
        time.sleep(0.05)
        with lock:
            out[0] -= 1
        return default_answer(question)

    config = "[rag]\nmax_concurrency = 4\n" + ("latency_concurrency = 3\n" if "several" in options else "")
    project.write(
        ragbench_toml=config,
        q_jsonl="\n".join(json.dumps({"question": f"q {n}"}) for n in range(12)),
        test_a_py="import pytest\nfrom pytest_ragbench import assert_expected\n"
        "pytestmark = pytest.mark.rag_questions('q.jsonl')\n" + TESTS[kind],
    )
    with rag_server(answer) as server:  # type: ignore[arg-type]
        run = project.run("--rag-url", server.url, *(each for each in options if each != "several"))
    run.assert_outcomes(passed=12)
    assert 1 < seen[0] <= most or seen[0] == most == 1
