"""Workers in folders of their own, as on other hosts: what they share is a Redis server."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_ragbench.plugin.xdist import XdistHooks
from tests.plugin.conftest import Project
from tests.servers.rag_server import default_answer, rag_server
from tests.servers.redis_server import BINARY, MISSING, redis_server

TESTS = """
import pytest

@pytest.mark.rag_questions("q.jsonl")
def test_one(rag_sample): ...

@pytest.mark.rag_questions("q.jsonl")
def test_other(rag_sample): ...
"""


@pytest.mark.skipif(BINARY is None, reason=MISSING)
def test_hosts_share_calls_slots_and_budget(project: Project) -> None:
    pytest.importorskip("redis")
    lock, out, peak = threading.Lock(), 0, 0

    def answer(question: str) -> dict[str, object]:
        nonlocal out, peak
        with lock:
            out += 1
            peak = max(peak, out)
        time.sleep(0.05)
        with lock:
            out -= 1
        return default_answer(question)

    tests = project.path / "tests"
    for folder in ("tests", "redis", "host a", "host b"):
        (project.path / folder).mkdir()
    (tests / "test_a.py").write_text(TESTS)
    (tests / "q.jsonl").write_text("".join(f'{{"id": "q{n}", "question": "Q{n}?"}}\n' for n in range(6)))
    with redis_server(project.path / "redis") as redis, rag_server(answer) as service:
        (tests / "ragbench.toml").write_text(
            f'store = "{redis.url}"\n[rag]\nurl = "{service.url}"\nmax_concurrency = 2\n[budget]\nmax_calls = 4\n'
        )
        hosts = [f"--tx=popen//chdir={project.path / name}" for name in ("host a", "host b")]
        ran = project.run("-d", *hosts, f"--rsyncdir={tests}", "--ragbench-json=out.json", str(tests))
    ran.assert_outcomes(passed=8, errors=4)
    assert ran.ret == 8
    assert (
        len(service.questions) == len(set(service.questions)) == 4
    )  # each once, and no more than the budget
    assert peak <= 2
    report = project.report()
    assert sorted(str(each["kind"]) for each in report["results"]) == ["None"] * 8 + ["budget"] * 4
    assert sum("max_calls 4" in (record["message"] or "") for record in report["results"]) == 4
    assert not list((project.path / "host a").rglob("*.sqlite*"))


@pytest.mark.parametrize(
    ("tx", "store", "warned"),
    [
        (["2*popen"], None, False),
        (["popen//chdir=x"], None, False),
        (["ssh=host1", "ssh=host2"], None, True),
        (["popen", "3*socket=host1:8888"], "replies.sqlite", True),
        (["ssh=host1"], "redis://host", False),
        (None, None, False),
    ],
)
def test_hosts_that_share_nothing_are_told_of(tx: list[str] | None, store: str | None, warned: bool) -> None:
    said: list[str] = []
    settings = SimpleNamespace(record=None, store=store)
    state: Any = SimpleNamespace(is_controller=True, is_configured=True, settings=settings, warn=said.append)
    session: Any = SimpleNamespace(config=SimpleNamespace(getoption=lambda *_: tx))
    XdistHooks(state).pytest_sessionstart(session)
    assert bool(said) is warned
    settings.record = "cassette.jsonl"
    if tx and not tx[-1].startswith(("popen", "2*popen")):
        with pytest.raises(pytest.UsageError, match=r"can't be used with --tx (ssh|socket)=.*record with -n"):
            XdistHooks(state).pytest_sessionstart(session)
    else:
        XdistHooks(state).pytest_sessionstart(session)
