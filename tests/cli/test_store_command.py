from __future__ import annotations

import json
import time

import pytest

from pytest_ragbench.engine.owners import Owner
from pytest_ragbench.engine.store import DAY, Reply, Store, put_op
from tests.cli.conftest import Cli


@pytest.fixture
def store(cli: Cli) -> Store:
    """Three replies: an old one, an answer of another run, and one of today."""
    store, now, owner = Store(cli.path / "s.sqlite"), time.time(), Owner.here()
    for name, kind, run, age in (
        ("old", "judge", None, 40.0),
        ("run", "rag", "r", 2.0),
        ("new", "judge", None, 0.0),
    ):
        moment = now - age * DAY
        text = json.dumps({"говорит": name})
        store.write([put_op(Reply(name, kind, "openai", run, moment, moment, text, 10, 2), owner)])
    cli.write("ragbench.toml", 'store = "s.sqlite"\n')
    return store


def test_show(cli: Cli, store: Store) -> None:
    told = cli("store", "show", "--json").data
    assert (told["replies"], told["tokens"], told["by_kind"]) == (3, 36, {"judge": 2, "rag": 1})
    assert "3 replies" in cli("store", "show").out


def test_prune(cli: Cli, store: Store) -> None:
    assert cli("store", "prune", "--json").data["deleted"] == 1  # that of the other run
    told = cli("store", "prune", "--unused-days", "30")
    assert "1 replies deleted" in told.out
    assert [reply.digest for reply in store.items()] == ["new"]
    assert cli("store", "prune", "--all", "--json").data == {
        "file": "s.sqlite",
        "deleted": 1,
        "replies": 0,
        "bytes": 0,
    }


def test_export(cli: Cli, store: Store) -> None:
    assert cli("store", "export", "out.jsonl", "--kind", "judge").code == 0
    lines = [json.loads(line) for line in (cli.path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["reply"] for line in lines] == [{"говорит": "old"}, {"говорит": "new"}]
    assert lines[0]["prompt_tokens"] == 10
    assert len(cli("store", "export", "-").out.splitlines()) == 3


def test_no_store_and_no_database(cli: Cli) -> None:
    ran = cli("store", "show", "--store", "nowhere.sqlite")
    assert ran.code == 4
    assert "there is no store yet" in ran.err
    cli.write("noise.sqlite", "noise " * 1000)
    ran = cli("store", "show", "--store", "noise.sqlite")
    assert ran.code == 4
    assert "noise.sqlite: " in ran.err
    assert cli("store", "show", "--store", "off").code == 4
