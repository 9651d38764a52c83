"""The workflow files of docs/ci.md: options that exist, and a pull request's job that does what it says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_ragbench.options import OPTIONS
from pytest_ragbench.plugin.options import add_options
from tests.docs.test_code_blocks import ROOT, blocks
from tests.servers.rag_server import rag_server

PAGE = ROOT / "docs/ci.md"
[RECORD, *_] = [text for _, text in blocks(PAGE, "console") if "--ragbench-record" in text]
RECORD = RECORD.removeprefix("$ ").partition("\n")[0]
OF_OTHERS = {"-n", "--junitxml"}


def workflows() -> tuple[dict[Any, Any], dict[Any, Any]]:
    github, gitlab = (yaml.safe_load(text) for _, text in blocks(PAGE, "yaml"))
    return github, gitlab


def commands() -> dict[str, str]:
    """Job -> its shell lines."""
    github, gitlab = workflows()
    found = {
        f"github {name}": "\n".join(step["run"] for step in job["steps"] if "run" in step)
        for name, job in github["jobs"].items()
    }
    found |= {f"gitlab {name}": "\n".join(job["script"]) for name, job in gitlab.items() if "script" in job}
    [(_, groovy)] = blocks(PAGE, "groovy")
    found |= {
        f"jenkins {place}": match[2] for place, match in enumerate(re.finditer(r"sh (['\"])(.*?)\1 ", groovy))
    }
    return found


def options_of(parser_call: Any) -> set[str]:
    parser = pytest.Parser(_ispytest=True)
    parser_call(parser)
    return {name for group in parser._groups for option in group.options for name in option.names()}


def test_there_are_jobs_for_the_pull_request_and_for_the_night() -> None:
    github, gitlab = workflows()
    triggers = github[True]  # what YAML 1.1 makes of "on"
    assert {"pull_request", "schedule"} == set(triggers)
    assert {job["if"].partition("'")[2] for job in github["jobs"].values()} == {"pull_request'", "schedule'"}
    assert {job.get("extends") for name, job in gitlab.items() if name != ".rag"} == {".rag"}
    recorded = [text for name, text in commands().items() if "--ragbench-replay" in text]
    live = [text for name, text in commands().items() if "--ragbench-judge" in text]
    assert (len(recorded), len(live)) == (3, 3)
    assert all("KEY" not in text and "--rag-url" not in text for text in recorded)


def test_each_command_has_options_that_exist() -> None:
    known = options_of(add_options) | OF_OTHERS
    assert len(known) > len(OPTIONS)
    seen = 0
    for name, text in commands().items():
        for line in text.replace("${{ vars.RAG_URL }}", "http://x").splitlines():
            words = shlex.split(line)
            assert Path(words[0]).name in ("pip", "pytest", "python"), (name, line)
            if Path(words[0]).name != "pytest":
                continue
            given = {word.partition("=")[0] for word in words if word.startswith("-")}
            assert given <= known, (name, given - known)
            seen += 1
    assert seen == 6
    for line in re.findall(r"`(ragbench [^`]+)`", PAGE.read_text(encoding="utf-8")):
        assert line.split()[1] in main_commands(), line


def main_commands() -> set[str]:
    return {path.stem for path in (ROOT / "pytest_ragbench/cli/commands").glob("*.py")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A project whose recording is committed; the service that was recorded is gone."""
    tests = tmp_path / "origin/tests/rag"
    tests.mkdir(parents=True)
    (tests / "questions.csv").write_text("id,question\nreturn,What do I need to return a product?\n")
    (tests / "test_bot.py").write_text(
        "import pytest\nfrom pytest_ragbench import assert_faithfulness\n\n"
        "@pytest.mark.rag_questions('questions.csv')\n"
        "def test_answer(rag_sample):\n    assert_faithfulness(rag_sample, '>=0.8')\n"
    )
    with rag_server() as server:
        settings = f'judge = "local"\n\n[rag]\nurl = "{server.url}"\n'
        (tmp_path / "origin/ragbench.toml").write_text(settings)
        shell(["sh", "-c", RECORD], tmp_path / "origin")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "tests", "ragbench.toml"], ["commit", "-qm", "one"]):
        shell([*git, *words], tmp_path / "origin")
    shell(["git", "clone", "-q", str(tmp_path / "origin"), "clone"], tmp_path)
    return tmp_path / "clone"


def shell(words: list[str], directory: Path, **more: str) -> str:
    secret = re.compile("KEY|TOKEN|SECRET")
    environ = {name: value for name, value in os.environ.items() if not secret.search(name)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ |= {"PATH": path, "PYTEST_ADDOPTS": "-p no:langsmith_plugin", **more}
    ran = subprocess.run(
        words, cwd=directory, env=environ, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="a clone needs git")
def test_the_pull_requests_job_runs_in_a_clone_without_service_or_key(repository: Path) -> None:
    _, gitlab = workflows()
    [line] = gitlab["rag-recorded"]["script"]
    said = shell(["sh", "-c", line.replace(" -n 4", "")], repository, CI="true", GITLAB_CI="true")
    assert "1 passed" in said
    wanted = gitlab[".rag"]["artifacts"]
    for name in (*wanted["paths"], wanted["reports"]["junit"]):
        assert (repository / name).stat().st_size > 0
    # The other two say the same, but for what they write.
    core = line.partition(" --ragbench-html")[0]
    assert all(core in text for text in commands().values() if "--ragbench-replay" in text)
