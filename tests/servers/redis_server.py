"""A real Redis server of the test's own: Debian's ``redis-server`` on a free loopback port."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BINARY = shutil.which("redis-server")
MISSING = "the program redis-server is not there (Debian: apt-get install redis-server)"


@dataclass
class RedisServer:
    process: subprocess.Popen[bytes]
    host: str
    port: int
    command: Sequence[str]

    @property
    def url(self) -> str:
        return f"redis://{self.host}:{self.port}/0"

    def stop(self) -> None:
        """It still takes connections, and answers nothing."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def start_again(self) -> None:
        """With nothing in it; not waited for."""
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)


@contextmanager
def redis_server(folder: Path, options: Sequence[str] = (), host: str = "127.0.0.1") -> Iterator[RedisServer]:
    assert BINARY is not None, MISSING
    with socket.create_server((host, 0)) as free:
        port = free.getsockname()[1]
    command = [BINARY, "--bind", host, "--port", str(port), "--dir", str(folder), "--save", "", *options]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    server = RedisServer(process, host, port, command)
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection((host, port), 1).close()
                break
            except OSError:
                assert process.poll() is None, "redis-server does not start"
                assert time.monotonic() < deadline
                time.sleep(0.02)
        yield server
    finally:
        server.kill()
