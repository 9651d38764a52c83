"""Runs of pytest from the process of ``fork_server``, which has all of pytest in memory."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

_READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")
_AS_WELL = ("PYTHONPATH", "PYTHONIOENCODING")
"""Read at start too, but the server sees to them."""


class ForkedRun:
    """As much of :class:`subprocess.Popen` as a caller needs."""

    stdin = None

    def __init__(self, argv: Sequence[str], connection: socket.socket) -> None:
        self.args = argv
        self._connection = connection
        self._said = connection.makefile("rb", buffering=0)
        try:
            self.pid = int(self._said.readline())
        except BaseException:
            self._said.close()
            connection.close()
            raise

    def wait(self, timeout: float | None = None) -> int:
        if not select.select([self._said], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        code = int(self._said.readline())
        self._said.close()
        self._connection.close()
        return code

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


class ForkServer:
    """The server's process; it ends with this one."""

    def __init__(self) -> None:
        self.env = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.bind("")  # a name that the system gives
            listener.listen(64)
            self._name = listener.getsockname()
            # The socket is the server's alone from here: who asks a server that has ended is refused at once.
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("fork_server.py")), str(listener.fileno())],
                env=self.env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors,
                pass_fds=[listener.fileno()],
            )  # fmt: skip
        atexit.register(self.close)

    def serves(self, env: Mapping[str, str]) -> bool:
        """Whether a new interpreter would start in ``env`` as the server did."""
        return _at_start(env) == _at_start(self.env)

    def start(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: int, stderr: int
    ) -> ForkedRun:
        """``python -m pytest ARGV``; the outputs are open files' numbers.

        Raises:
            RuntimeError: the server has ended, with what it said.
        """
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect(self._name)
            told = json.dumps({"argv": list(argv), "cwd": str(cwd), "env": dict(env)}).encode()
            sent = socket.send_fds(connection, [told], [stdout, stderr])
            connection.sendall(told[sent:])
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(240)
            return ForkedRun(argv, connection)
        except (OSError, ValueError) as error:
            connection.close()
            raise RuntimeError(f"the server of forked runs has ended:\n{self._last_words()}") from error

    def _last_words(self) -> str:
        self._process.wait(60)
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()
        self._errors.close()


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in env.items() if name.startswith(_READ_AT_START) and name not in _AS_WELL
    }


@cache
def fork_server() -> ForkServer | None:
    """None where the system has no abstract socket names: there each run starts from nothing."""
    return ForkServer() if sys.platform == "linux" else None
