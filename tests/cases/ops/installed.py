"""The built wheel in an environment that holds it and what it asks for, and nothing else."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.cases import sources
from tests.cases.ops.runs import noise_in, outcome_of, pytest_args
from tests.cases.outcomes import Outcome
from tests.cases.projects import HARNESS, LIMIT, ROOT, Project, project
from tests.cases.registry import Input, op

_INSTALLING = 540.0
"""Seconds for all that pip has to fetch."""
# What case_adapter imports of the tests, which no wheel brings.
_WITH_HARNESS = (Path("tests/__init__.py"), Path("tests/cases/__init__.py"), Path("tests/cases/servers.py"))


@op("wheel_install", "install_wheel")
def wheel_install(given: Input) -> Outcome:
    """The wheel in an empty environment, with ``extras``; there the ``commands``, and the case's ``files`` by pytest.

    A command is a text or a list of arguments, and has to exit with 0.
    """
    extras = ",".join(given.get("extras", []))
    with project(given.get("files") or sources.PASSING) as made:
        (made.path / "pytest.ini").write_text(
            "[pytest]\nnorecursedirs = env dist harness\n", encoding="utf-8"
        )
        environment = _environment(made, given.get("env", {}))
        wheels, bin_folder = made.path / "dist", made.path / "env" / "bin"
        for step in (
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), str(ROOT)],
            [sys.executable, "-m", "venv", str(bin_folder.parent)],
        ):
            if (code_and_text := _done(step, made, environment))[0]:
                return Outcome("crash", message=f"{shlex.join(step)}: {code_and_text[1]}")
        [wheel] = wheels.glob("*.whl")
        python = str(bin_folder / "python")
        code, told = _done(
            [python, "-m", "pip", "install", "-q", f"{wheel}[{extras}]" if extras else str(wheel)],
            made,
            environment,
        )
        if code:
            return Outcome("crash", message=f"pip install: {told}")
        problems = _not_from(bin_folder.parent, made, environment)
        for command in given.get("commands", []):
            words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
            code, told = _done([_found(bin_folder, words[0]), *words[1:]], made, environment)
            problems += [f"{shlex.join(words)}: exit code {code}: {told}"] if code else []
        ran = subprocess.run(
            [python, "-m", "pytest", *pytest_args(given), "--junitxml=j.xml"],
            cwd=made.path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            timeout=LIMIT, check=False,
        )  # fmt: skip
        run = made.left(ran.returncode, ran.stdout)
        return outcome_of(run, [*problems, *noise_in(run)])


def _environment(made: Project, given: Mapping[str, Any]) -> dict[str, str]:
    """That of the caller without a way to the checkout; the harness where the case's files import it."""
    variables = {**os.environ, "PYTHONPATH": "", "PYTHONIOENCODING": "utf-8", "COLUMNS": "220"}
    sources_of_case = [path.read_text(encoding="utf-8") for path in made.path.rglob("*.py")]
    if any("case_adapter" in text or "conftest_plugin" in text for text in sources_of_case):
        copied = {f"harness/{path.name}": path.read_bytes() for path in HARNESS.glob("*.py")}
        copied |= {f"harness/{path.as_posix()}": (ROOT / path).read_bytes() for path in _WITH_HARNESS}
        made.write(copied)
        variables["PYTHONPATH"] = str(made.path / "harness")
    return variables | {name: str(value) for name, value in given.items()}


def _done(command: Sequence[str], made: Project, environment: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and the end of what was said."""
    ran = subprocess.run(
        command, cwd=made.path, env=dict(environment), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=_INSTALLING, check=False,
    )  # fmt: skip
    return ran.returncode, ran.stdout.decode("utf-8", "replace")[-500:].strip()


def _found(bin_folder: Path, name: str) -> str:
    installed = bin_folder / name
    return str(installed) if installed.exists() else name


def _not_from(folder: Path, made: Project, environment: Mapping[str, str]) -> list[str]:
    """Where the package is imported from, if that is not the environment."""
    told = "import pytest_ragbench; print(pytest_ragbench.__file__)"
    code, place = _done([str(folder / "bin" / "python"), "-c", told], made, environment)
    inside = not code and Path(place).is_relative_to(folder)
    return [] if inside else [f"the package is imported from {place}"]
