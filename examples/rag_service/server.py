"""Starting and stopping the service: in a thread, or as a process that several workers share."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from urllib.error import URLError
from urllib.request import urlopen

import uvicorn

HOST = "127.0.0.1"


def listening_socket(port: int = 0, host: str = HOST) -> socket.socket:
    """A bound socket that already queues connections, so that its address can be given away."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(128)
    except OSError:
        sock.close()
        raise
    return sock


def url_of(sock: socket.socket) -> str:
    """``http://127.0.0.1:40123``"""
    host, port = sock.getsockname()[:2]
    return f"http://{host}:{port}"


def uvicorn_server(app: Any) -> uvicorn.Server:
    """A quiet server; a second is enough for the requests that are under way when it stops."""
    return uvicorn.Server(
        uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1
        )
    )


class RunningService:
    """A service that answers at ``url`` until :meth:`stop`; also a context manager."""

    def __init__(self, url: str, stop: Any) -> None:
        self.url = url
        self._stop = stop

    def stop(self) -> None:
        """End it (or, where it is shared, this user's part in it). Twice does no harm."""
        stop, self._stop = self._stop, lambda: None
        stop()

    def __enter__(self) -> RunningService:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(*, hallucinate: bool = False, port: int = 0) -> RunningService:
    """Run the service in a thread of this process, on a free port unless one is given."""
    from rag_service.app import create_app

    server = uvicorn_server(create_app(hallucinate=hallucinate))
    sock = listening_socket(port)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [sock]}, name="rag-service", daemon=True)
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join()
        sock.close()

    return RunningService(url_of(sock), stop)


def start_shared(folder: Path, *, hallucinate: bool = False) -> RunningService:
    """One service for all processes that name the same ``folder``, for instance all xdist workers of a run.

    The first caller starts ``python -m rag_service``; the others find its URL in the folder. Each
    caller holds a shared file lock for as long as it uses the service, and the service ends itself
    soon after nobody holds one. The operating system drops the lock of a process that is killed, so
    neither the end of the worker that started it nor ``kill -9`` leaves others without a service, or
    a service without users.

    Raises
    ------
    RuntimeError
        The service could not be started; the message holds what it wrote to standard error.
    """
    folder = folder / ("rag-service-hallucinating" if hallucinate else "rag-service")
    folder.mkdir(parents=True, exist_ok=True)
    lease = (folder / "users.lock").open("a")
    try:
        with _locked(folder / "start.lock"):
            fcntl.flock(lease, fcntl.LOCK_SH)  # waits for a service that is just ending
            url = _running(folder / "service.json") or _start_process(folder, hallucinate)
    except BaseException:
        lease.close()
        raise
    return RunningService(url, lease.close)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _running(record: Path) -> str | None:
    """The URL of the service that wrote ``record``, if it is that one which answers there."""
    try:
        written = json.loads(record.read_text(encoding="utf-8"))
        with urlopen(f"{written['url']}/health", timeout=10) as reply:
            health = json.load(reply)
    except (OSError, ValueError, URLError):
        return None
    return str(written["url"]) if health.get("instance") == written["instance"] else None


def _start_process(folder: Path, hallucinate: bool) -> str:
    instance = secrets.token_hex(8)
    command = [sys.executable, "-m", "rag_service", "--port", "0", "--instance", instance]
    command += ["--while-locked", str(folder / "users.lock")] + ["--hallucinate"] * hallucinate
    # The child finds what this process finds, this package first, however either was put on the path.
    paths = [str(Path(__file__).resolve().parent.parent), *filter(None, sys.path)]
    log = folder / "service.log"
    with log.open("w") as stderr:  # not ours: who reads our output would wait for the service to end
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            start_new_session=True,  # Ctrl-C ends the users; the service follows when they are gone
        )
    assert process.stdout is not None
    with process.stdout:
        url = process.stdout.readline().strip()
    if not url:
        code, said = process.wait(), log.read_text(encoding="utf-8", errors="replace").strip()
        raise RuntimeError(f"the example service did not start, exit code {code}: {said or command}")
    threading.Thread(target=process.wait, daemon=True).start()  # leaves no zombie when it ends first
    # Written under another name first: a reader never sees half a file.
    partial = folder / "service.json.partial"
    partial.write_text(json.dumps({"url": url, "instance": instance, "pid": process.pid}), encoding="utf-8")
    partial.replace(folder / "service.json")
    return url


def stop_when_unused(
    server: uvicorn.Server, lock_file: Path, *, every: float = 0.5, grace: int = 4
) -> IO[str]:
    """Watch ``lock_file`` in a thread; end ``server`` once nobody held it ``grace`` times in a row.

    The exclusive lock is kept until this process is gone, so that a new user waits for that and then
    starts another service.
    """
    lock = lock_file.open("a")

    def watch() -> None:
        unused = 0
        pause = threading.Event()
        while unused < grace:
            pause.wait(every)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                unused = 0
                continue
            unused += 1
            if unused < grace:
                fcntl.flock(lock, fcntl.LOCK_UN)
        server.should_exit = True

    threading.Thread(target=watch, name="watch-users", daemon=True).start()
    return lock
