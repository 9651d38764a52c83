"""``ragbench store``: what is in the store, and what need not be."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pytest_ragbench import building
from pytest_ragbench.cli.shared import configured, emit, json_option, pytest_cache, settings_of, table
from pytest_ragbench.engine.inventory import DAY, StoreError, inventory_of
from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from pytest_ragbench.engine.coordinator import Reply
    from pytest_ragbench.engine.inventory import Inventory


_KINDS = click.Choice(["rag", "judge", "embedding"])


@click.group()
def command() -> None:
    """Show, prune and export the store: the replies that need not be paid for again.

    It is the file (or the Redis server) that tests run in this directory use, or the one given by --store.

    \b
      ragbench store show
      ragbench store prune --unused-days 30
      ragbench store export replies.jsonl --kind judge
    """


@command.command()
@configured("store")
@json_option
def show(store: str | None, as_json: bool) -> None:
    """How many replies there are, of whom, and how large they are."""
    with _opened(store) as opened:
        stats = opened.stats()
        # Kept with each reply, so that this needs no look into payloads.
        tokens = sum(reply.prompt_tokens + reply.completion_tokens for reply in opened.items())
    data = {"file": opened.name, **stats, "tokens": tokens}

    def text() -> str:
        rows = [[kind, f"{count:,}"] for kind, count in stats["by_kind"].items()]
        rows += [[f"  from {name}", f"{count:,}"] for name, count in stats["by_provider"].items()]
        told = f"{opened.name}: {stats['replies']:,} replies, {_size(stats['bytes'])}, {tokens:,} tokens paid once"
        return told + ("\n" + table(["kind", "replies"], rows) if rows else "")

    emit(data, text, as_json=as_json)


@command.command()
@configured("store")
@click.option(
    "--unused-days",
    type=click.FloatRange(0),
    default=90.0,
    show_default=True,
    metavar="N",
    help="Delete replies that no run has used for N days.",
)
@click.option(
    "--run-days",
    type=click.FloatRange(0),
    default=1.0,
    show_default=True,
    metavar="N",
    help="Delete answers kept for one run alone after N days.",
)
@click.option(
    "--max-mb",
    type=click.FloatRange(0),
    default=500.0,
    show_default=True,
    metavar="N",
    help="Above N megabytes, delete those unused for longest.",
)
@click.option(
    "--all", "everything", is_flag=True, help="Delete all replies: the next run pays for everything."
)
@json_option
def prune(
    store: str | None, unused_days: float, run_days: float, max_mb: float, everything: bool, as_json: bool
) -> None:  # fmt: skip
    """Delete what is no longer of use. Runs do the same by themselves, once a day."""
    with _opened(store) as opened:
        before = opened.stats()
        if everything:
            deleted = opened.delete()
        else:
            # As disks are sold and file managers count: 1 MB is 1,000,000 bytes.
            limit = int(max_mb * 1_000_000)
            deleted = opened.prune(unused=unused_days * DAY, run_age=run_days * DAY, max_bytes=limit)
        after = opened.stats()
    data = {"file": opened.name, "deleted": deleted, "replies": after["replies"], "bytes": after["bytes"]}
    freed = _size(before["bytes"] - after["bytes"])
    text = f"{opened.name}: {deleted:,} replies deleted ({freed}), {after['replies']:,} left"
    emit(data, text, as_json=as_json)


@command.command()
@configured("store")
@click.argument("file", metavar="FILE")
@click.option("--kind", type=_KINDS, help="Only replies of this kind.")
@json_option
def export(store: str | None, file: str, kind: str | None, as_json: bool) -> None:
    """Write the replies to FILE as lines of JSON ("-": to the terminal), the oldest first.

    The store knows what was asked only as a digest. For a file that runs can be replayed from, with what was
    asked beside each reply, run the tests with --ragbench-record.
    """
    with _opened(store) as opened:
        replies = [_exported(reply) for reply in opened.items() if kind in (None, reply.kind)]
    lines = [json.dumps(reply, ensure_ascii=False) for reply in replies]
    if file == "-":
        click.echo("\n".join(lines))
        return
    text = "".join(f"{line}\n" for line in lines)
    # A service may have sent halves of surrogate pairs, which UTF-8 can't hold.
    Path(file).write_text(text, encoding="utf-8", errors="backslashreplace")
    emit({"file": file, "replies": len(lines)}, f"{file}: {len(lines):,} replies", as_json=as_json)


def _exported(reply: Reply) -> dict[str, Any]:
    return {
        "digest": reply.digest,
        "kind": reply.kind,
        "provider": reply.provider,
        "run": reply.run,
        "created": _moment(reply.created),
        "used": _moment(reply.used),
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "reply": json.loads(reply.payload),
    }


@contextmanager
def _opened(store: str | None) -> Iterator[Inventory]:
    """The store that the configuration names; UsageError where there is none, or it can't be used."""
    place = building.store_place(settings_of({"store": store}), pytest_cache())
    opened = inventory_of(place)
    if opened is None:
        raise UsageError("the store is switched off; name a file with --store")
    # Opening it would make it, and show an empty store where a path is misspelt.
    if isinstance(place, Path) and not place.is_file():
        raise UsageError(
            f"{place}: there is no store yet; a run of tests makes it, or name another with --store"
        )
    try:
        yield opened
    except StoreError as error:
        raise UsageError(f"{opened.name}: {error}") from None


def _moment(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _size(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB" if count >= 100_000 else f"{count / 1000:.1f} kB"
