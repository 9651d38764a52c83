"""A run from memory starts as one from nothing does, but for what is imported, and LINES, which readline sets."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.plugin.conftest import Project, project
from tests.servers.forking import ForkServer, fork_server

__all__ = ["project"]

TESTS = """
import json, os, sys, time
import pytest

@pytest.mark.parametrize("n", range(2))
def test_told(n, worker_id, capfd):
    import beside
    told = {
        "cwd": os.getcwd(), "path": sys.path, "flags": tuple(sys.flags)[:8], "zone": time.tzname,
        "files": [(file.encoding, file.errors) for file in (sys.__stdout__, sys.__stderr__)],
        "stdin": os.read(0, 1).decode(), "executable": sys.executable, "main": sys.modules["__main__"].__name__,
        "env": {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "LINES"))},
        "open": len(os.listdir("/proc/self/fd")), "signals": open("/proc/self/status").read().split("SigIgn:")[1][:17],
    }
    with open(f"told-{worker_id}.json", "w") as file:
        json.dump(told, file)
    os.write(2, b"said")
    assert capfd.readouterr().err == "said"
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each run starts from nothing")
@pytest.mark.parametrize("how", [["-n", "2"], []], ids=["n2", "none"])
def test_it_starts_as_any_other(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    how: list[str],
) -> None:
    fork_server()  # has the environment of now, not that of the run
    monkeypatch.delenv("PATH")
    (project.path / "more").mkdir()
    project.write(test_a_py=TESTS)
    (project.path / "more" / "beside.py").touch()
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(project.path / "more"), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    found = []
    for fresh in (True, False):
        project.run("--basetemp=tmp", *how, fresh=fresh).assert_outcomes(passed=2)
        files = sorted(Path.cwd().glob("told-*.json"))
        found.append({file.name: json.loads(file.read_text()) for file in files})
        for file in files:
            file.unlink()
    assert found[0] == found[1]
    assert len(found[1]) == (2 if how else 1)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere each run starts from nothing")
def test_a_package_that_cannot_be_imported_fails_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, start = tmp_path / "broken" / "pytest_ragbench", tmp_path / "start"
    package.mkdir(parents=True)
    start.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('half written')")
    (start / "sitecustomize.py").write_text(f"import sys\nsys.path.insert(1, {str(package.parent)!r})")
    monkeypatch.setenv("PYTHONPATH", str(start))
    server = ForkServer()
    try:
        for _ in range(2):  # a run that is asked for while the server starts, and one when it has ended
            with pytest.raises(RuntimeError, match="RuntimeError: half written"):
                server.start(["--version"], cwd=tmp_path, env=dict(os.environ), stdout=1, stderr=2)
    finally:
        server.close()
