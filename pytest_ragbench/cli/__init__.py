"""The ``ragbench`` command.

Each command is a module of :mod:`pytest_ragbench.cli.commands` that defines ``command``; it is found by
its file name (``_`` becomes ``-``) and imported when it is used, or listed by ``--help``.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem

from pytest_ragbench.cli import commands
from pytest_ragbench.cli.shared import Exit, failure
from pytest_ragbench.extensions import did_you_mean
from pytest_ragbench.model.errors import QualityFailure, RagbenchError, Unscored
from pytest_ragbench.version import VERSION

_EPILOG = (
    "Exit codes: 0 done; 1 quality below what was asked; 2 interrupted; 3 an error of ragbench itself; "
    "4 wrong usage, file or configuration; 8 judge, service or embedder failed, so that something has no score; "
    "of compare and merge also 9 a gate could not do its work; 10 a gate can't tell, and was told to fail then."
)


# The first class that fits: an Unscored is a RagbenchError, too.
_FAILED = {
    QualityFailure: ("quality", Exit.QUALITY),
    Unscored: ("unscored", Exit.UNSCORED),
    RagbenchError: ("usage", Exit.USAGE),
}


class _Commands(click.Group):
    """The modules beside this one; only the one that is run is imported, with all that it needs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(name.replace("_", "-") for name in _modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        module = import_module(f"{__name__}.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each with its first sentence, whole: a newcomer has nothing else to choose by."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _first_sentence(name)) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        # Click would import every command for its help, at each press of Tab.
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        return [
            CompletionItem(name, help=_first_sentence(name)) for name in names
        ] + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            hint = did_you_mean(args[0], self.list_commands(ctx), "commands")
            raise click.UsageError(f"{error.message.rstrip('.')}; {hint}", ctx) from None


def _modules() -> list[str]:
    return [module.name for module in iter_modules(commands.__path__) if not module.name.startswith("_")]


def _first_sentence(name: str) -> str:
    """What a command does, read from its source: importing them all would make ``--help`` slow."""
    [folder] = commands.__path__
    source = Path(folder, f"{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == "command":
            paragraph = (ast.get_docstring(node) or "").partition("\n\n")[0]
            return " ".join(paragraph.split()).partition(". ")[0].rstrip(".") + "."
    return ""


@click.group(
    cls=_Commands,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(VERSION, prog_name="ragbench")
def ragbench() -> None:
    """Check RAG systems: ask them, score their answers, compare runs.

    Tests are run by pytest; these commands are for what surrounds them. `ragbench COMMAND --help` shows a
    command's options and an example. Set RAGBENCH_TRACEBACK=1 to see the traceback of an error.
    """


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code (:class:`~pytest_ragbench.cli.shared.Exit`).

    An error is one message on stderr; with ``--json`` also ``{"error": {"kind", "message"}}`` on stdout.
    """
    given = list(sys.argv[1:] if args is None else args)
    # Looked for here, since the error may be that the options can't be read.
    as_json = "--json" in given
    try:
        # In standalone mode click prints errors and exits in its own ways.
        code: Any = ragbench.main(given, prog_name="ragbench", standalone_mode=False)
        return code if isinstance(code, int) else Exit.OK
    except click.exceptions.Exit as done:  # --help in the middle of things
        return done.exit_code
    except (click.Abort, KeyboardInterrupt):
        return failure("interrupted", "interrupted", Exit.INTERRUPTED, as_json=as_json)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return Exit.USAGE
    except click.ClickException as error:
        usage = error.ctx.get_usage() + "\n" if isinstance(error, click.UsageError) and error.ctx else ""
        return failure("usage", error.format_message(), Exit.USAGE, as_json=as_json, before=usage)
    except (QualityFailure, RagbenchError) as error:
        kind, failed = next(found for cls, found in _FAILED.items() if isinstance(error, cls))
        return failure(kind, str(error), failed, as_json=as_json)
    except BrokenPipeError:  # `ragbench metrics | head`: nobody reads on
        # Python flushes stdout at its end, and would complain of the broken pipe once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return failure("usage", f"{where}{error.strerror or error}", Exit.USAGE, as_json=as_json)
    except Exception as error:
        text = (
            f"an error of ragbench itself: {type(error).__name__}: {error}\nRAGBENCH_TRACEBACK=1 shows where"
        )
        return failure("internal", text, Exit.INTERNAL, as_json=as_json)


def main() -> NoReturn:
    """Entry point of the ``ragbench`` script."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(
                errors="backslashreplace"
            )  # a terminal that has no Cyrillic still gets its text
    sys.exit(run())
