"""``ragbench completion``: the script that makes a shell complete commands and metric names."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pytest_ragbench.cli import ragbench

_HOW = {
    "bash": "ragbench completion bash > ~/.ragbench-complete.bash, and source that file in ~/.bashrc",
    "zsh": "ragbench completion zsh > ~/.ragbench-complete.zsh, and source that file in ~/.zshrc",
    "fish": "ragbench completion fish > ~/.config/fish/completions/ragbench.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(_HOW)))
def command(shell: str) -> None:
    """Print the completion script for bash, zsh or fish.

    \b
      ragbench completion bash > ~/.ragbench-complete.bash
      echo '. ~/.ragbench-complete.bash' >> ~/.bashrc
    """
    complete = get_completion_class(shell)
    if complete is None:  # pragma: no cover - Choice lets only known ones through
        raise click.UsageError(f"click knows no shell {shell!r}")
    # As a comment of the script: stdout goes into a file.
    click.echo(f"# {_HOW[shell]}")
    # The variable's name follows from the program's: click looks for it when Tab is pressed.
    click.echo(complete(ragbench, {}, "ragbench", "_RAGBENCH_COMPLETE").source())
