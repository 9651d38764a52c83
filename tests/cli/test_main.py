from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pytest_ragbench import cli as package
from pytest_ragbench.cli import ragbench
from pytest_ragbench.cli.shared import Exit, table
from pytest_ragbench.model.errors import JudgeError, QualityFailure
from tests.cli.conftest import Cli

COMMANDS = ragbench.list_commands(click.Context(ragbench))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_says_what_it_does(cli: Cli, name: str) -> None:
    ran = cli(name, "--help")
    assert ran.code == Exit.OK
    assert f"Usage: ragbench {name}" in ran.out
    assert f"  ragbench {name}" in ran.out, "an example"


def test_help_lists_every_command_and_the_exit_codes(cli: Cli) -> None:
    ran = cli("--help")
    assert all(f"  {name} " in ran.out for name in COMMANDS)
    assert "..." not in ran.out.partition("Commands:")[2], "summaries are shown whole"
    for code in Exit:
        assert f" {int(code)} " in " ".join(ran.out.split())


def test_no_command_shows_the_help(cli: Cli) -> None:
    ran = cli()
    assert (ran.code, "Commands:" in ran.out) == (Exit.USAGE, True)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["metrcis"], "did you mean 'metrics'?"),
        (["metrics", "--tir", "x"], "--tier"),
        (["completion", "tcsh"], "bash"),
    ],
)
def test_wrong_usage_is_said_in_one_message(cli: Cli, args: list[str], said: str) -> None:
    ran = cli(*args)
    assert ran.code == Exit.USAGE
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("error", "code", "kind"),
    [
        (QualityFailure("faithfulness 0.50, wanted >=0.8"), Exit.QUALITY, "quality"),
        (JudgeError("no reply within 30 s"), Exit.UNSCORED, "unscored"),
        (KeyboardInterrupt(), Exit.INTERRUPTED, "interrupted"),
        (ZeroDivisionError("division by zero"), Exit.INTERNAL, "internal"),
        (PermissionError(13, "Permission denied", "q.csv"), Exit.USAGE, "usage"),
    ],
)
def test_errors_have_codes_and_no_traceback(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: Exit, kind: str
) -> None:
    def fails(*args: object, **options: object) -> None:
        raise error

    monkeypatch.setattr(package.ragbench, "main", fails)
    ran = cli("metrics", "--json")
    assert ran.code == code
    assert ran.data["error"]["kind"] == kind
    assert "Traceback" not in ran.err
    if str(error):
        assert ran.data["error"]["message"] in ran.err


def test_a_traceback_on_demand(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGBENCH_TRACEBACK", "1")
    assert "Traceback" in cli("metrics", "nonsense").err


def test_the_script_completes_commands_and_metric_names(tmp_path: Path) -> None:
    env = {**os.environ, "_RAGBENCH_COMPLETE": "bash_complete"}
    words = {"ragbench met": "metrics", "ragbench metrics faithfulness_h": "faithfulness_holistic"}
    for line, wanted in words.items():
        given = {**env, "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
        done = subprocess.run(
            [sys.executable, "-m", "pytest_ragbench.cli"],
            env=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == [f"plain,{wanted}"], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(cli: Cli, shell: str) -> None:
    assert f"_RAGBENCH_COMPLETE={shell}_complete" in cli("completion", shell).out


def test_columns_of_wide_letters() -> None:
    assert table(["a", "b"], [["回答", "1"], ["x", "2"]]) == "a     b\n回答  1\nx     2"
