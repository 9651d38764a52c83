"""A process that has imported what others wrote, and forks a run of pytest each time it is asked.

Four fifths of what a small run costs are imports, ours included, and tests make hundreds of such runs.
What depends on a start from nothing, on what is imported when, or on hashes that differ between processes, is tested
with one (``Project.run(fresh=True)``, tests/cli, tests/cases, the examples).
"""

from __future__ import annotations

import gc
import io
import json
import os
import runpy
import select
import socket
import sys
import time
from contextlib import suppress
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, NamedTuple

PRELOADED = """
    pytest _pytest.assertion.rewrite _pytest.cacheprovider _pytest.capture _pytest.debugging _pytest.doctest
    _pytest.faulthandler _pytest.fixtures _pytest.helpconfig _pytest.junitxml _pytest.legacypath _pytest.logging
    _pytest.monkeypatch _pytest.pastebin _pytest.python _pytest.python_api _pytest.recwarn _pytest.runner
    _pytest.setuponly _pytest.setupplan _pytest.skipping _pytest.stepwise _pytest.subtests _pytest.terminal
    _pytest.threadexception _pytest.tmpdir _pytest.unittest _pytest.unraisableexception _pytest.warnings
    coverage coverage.tracer pygments.formatters.terminal pygments.lexers.python
    execnet execnet.gateway_io xdist.dsession xdist.looponfail xdist.newhooks xdist.plugin
    xdist.scheduler xdist.workermanage
    pydantic pydantic.fields pydantic.json_schema pydantic.main pydantic.root_model pydantic.type_adapter
    aiohttp jmespath yaml
    asyncio csv difflib email.utils fractions html http.cookies inspect multiprocessing pdb sqlite3 ssl statistics
    tomllib unittest.mock uuid xml.etree.ElementTree zoneinfo
""".split()  # noqa: SIM905


class Asked(NamedTuple):
    """What a run is to be; ``files``: its standard output and error."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    files: tuple[int, int]


class Spare(NamedTuple):
    """A process that is ready to be a worker, and our ends of its pipes."""

    pid: int
    stdin: int
    stdout: int
    told: int


def preload() -> None:
    for name in PRELOADED:
        try:
            import_module(name)
        except ImportError:  # a part that this version of pytest has not
            continue
    from pydantic import create_model

    create_model("Warm", number=(int, 0))(number=1).model_dump_json()
    from coverage import Coverage

    measured = Coverage(data_file=None, config_file=False, source_pkgs=["pytest_ragbench"])
    measured.start()  # it looks up all paths of the installation when it starts for the first time
    measured.stop()
    package = import_module("pytest_ragbench")
    for module in walk_packages(package.__path__, "pytest_ragbench."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.freeze()


def next_run(listener: socket.socket) -> Asked:
    """Returns in a new process for each connection; ends this one when the process that started it ends."""
    while True:
        ready, _, _ = select.select([listener.fileno(), 0], [], [])
        if 0 in ready:
            os._exit(0)
        connection, _ = listener.accept()
        if os.fork() == 0:  # keeps the run company, and says how it ended
            listener.close()
            asked = received(connection)
            if pid := os.fork():
                with suppress(BrokenPipeError):  # who asked may be gone by then
                    connection.sendall(b"%d\n" % pid)
                    _, status = os.waitpid(pid, 0)
                    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
                os._exit(0)
            connection.close()
            return asked
        connection.close()
        reap()


def reap() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def received(connection: socket.socket) -> Asked:
    data, files, _, _ = socket.recv_fds(connection, 65536, 2)
    while more := connection.recv(65536):
        data += more
    told: dict[str, Any] = json.loads(data)
    return Asked(told["argv"], told["cwd"], told["env"], (files[0], files[1]))


def placed(*files: int) -> None:
    """The files as standard input, output and error."""
    for place, file in enumerate(files):
        if file != place:
            os.dup2(file, place)
            os.close(file)


def started(env: dict[str, str], cwd: str, first: str, installed: list[str]) -> None:
    """What an interpreter does before the first line of a program."""
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(cwd)
    sys.path[:] = [first, *filter(None, env.get("PYTHONPATH", "").split(os.pathsep)), *installed]
    sys.modules["xdist.plugin"]._sys_path[:] = sys.path  # the workers' path, which it took at its import
    encoding, _, errors = env.get("PYTHONIOENCODING", "utf-8").partition(":")
    sys.stdin = open(0, encoding=encoding, errors=errors or None, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, errors=errors or None, closefd=False)  # noqa: SIM115
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), encoding=encoding, errors="backslashreplace", line_buffering=True,
        write_through=True,
    )  # fmt: skip
    for name in ("stdin", "stdout", "stderr"):
        setattr(sys, f"__{name}__", getattr(sys, name))
    sys.modules["coverage"].process_startup()


def spares(number: int, installed: list[str]) -> list[Spare]:
    """Processes for workers, forked before anything of the run is in memory."""
    made: list[Spare] = []
    for _ in range(number):
        (told, tell), (stdin, put), (get, stdout) = os.pipe(), os.pipe(), os.pipe()
        if pid := os.fork():
            for file in (told, stdin, stdout):
                os.close(file)
            made.append(Spare(pid, put, get, tell))
            continue
        for file in (tell, put, get, *(file for spare in made for file in spare[1:])):
            os.close(file)
        worker(told, stdin, stdout, installed)
    return made


def worker(told: int, stdin: int, stdout: int, installed: list[str]) -> None:
    """``python -u -c BOOTSTRAP``, as execnet starts it, once it is told so."""
    with open(told, "rb") as file:
        said = file.read()
    if not said:
        os._exit(0)
    now = json.loads(said)
    placed(stdin, stdout)
    started(now["env"], now["cwd"], "", installed)
    sys.argv = ["-c"]
    main = sys.modules["__main__"] = ModuleType("__main__")
    from execnet.gateway_io import popen_bootstrapline

    exec(popen_bootstrapline, main.__dict__)
    sys.exit()


def use(ready: list[Spare]) -> None:
    """Has execnet take the spare processes; when there are none left, it starts its own."""
    from execnet import gateway_io
    from execnet.gateway_base import Popen2IO

    class SpareIO(Popen2IO):
        def __init__(self, spare: Spare, execmodel: Any) -> None:
            self.pid = spare.pid
            with open(spare.told, "w", encoding="utf-8") as file:
                json.dump({"env": dict(os.environ), "cwd": os.getcwd()}, file)
            super().__init__(open(spare.stdin, "wb"), open(spare.stdout, "rb"), execmodel)  # noqa: SIM115

        def wait(self) -> int | None:
            try:
                return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            except OSError:
                return None

        def kill(self) -> None:
            os.kill(self.pid, 9)

    own = gateway_io.create_io

    def create_io(spec: Any, execmodel: Any) -> Any:
        if spec.popen and not spec.python and ready:
            return SpareIO(ready.pop(0), execmodel)
        return own(spec, execmodel)

    gateway_io.create_io = create_io


def main() -> None:
    known = set(filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)))
    installed = [path for path in sys.path[1:] if path not in known]
    preload()  # ours from where PYTHONPATH says, as a run that starts from nothing would
    sys.path[:] = installed
    asked = next_run(socket.socket(fileno=int(sys.argv[1])))
    argv = asked.argv
    placed(os.open(os.devnull, os.O_RDONLY), *asked.files)
    workers = int(argv[argv.index("-n") + 1]) if "-n" in argv else 0
    use(spares(workers, installed))
    started(asked.env, asked.cwd, asked.cwd, installed)
    sys.argv = ["pytest", *argv]
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
