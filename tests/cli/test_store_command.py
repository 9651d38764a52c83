from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from pytest_ragbench.cli.checks import _store
from pytest_ragbench.engine.coordinator import Reply
from pytest_ragbench.engine.inventory import DAY
from pytest_ragbench.engine.store import Store
from pytest_ragbench.settings import load_settings
from tests.cli.conftest import Cli
from tests.servers.redis_server import BINARY, MISSING, redis_server


@pytest.fixture
def store(cli: Cli) -> Store:
    """Three replies: an old one, an answer of another run, and one of today."""
    store, now = Store(cli.path / "s.sqlite"), time.time()
    for name, kind, run, age in (
        ("old", "judge", None, 40.0),
        ("run", "rag", "r", 2.0),
        ("new", "judge", None, 0.0),
    ):
        moment = now - age * DAY
        text = json.dumps({"говорит": name})
        store.put([Reply(name, kind, "openai", run, moment, moment, text, 10, 2)])
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


def test_a_store_in_redis(cli: Cli, tmp_path: Path) -> None:
    pytest.importorskip("redis")
    if BINARY is None:
        pytest.skip(MISSING)
    from pytest_ragbench.engine.on_redis.keys import Keys
    from pytest_ragbench.engine.on_redis.link import Link
    from pytest_ragbench.engine.on_redis.store import ReplyScripts
    from pytest_ragbench.model.redis_url import Address

    now = time.time()
    with redis_server(tmp_path, ["--requirepass", "geheim"]) as server:
        url = server.url.replace("//", "//:geheim@")
        link = Link(Address.parse(url))
        scripts = ReplyScripts(Keys("ragbench"), "token")
        for name, age in (("old", 40.0), ("new", 0.0)):
            moment = now - age * DAY
            reply = Reply(name, "judge", "openai", None, moment, moment, json.dumps({"говорит": name}), 10, 2)
            link.write([scripts.put(reply)])
        link.close()
        cli.write("ragbench.toml", f'store = "{url}"\n')
        told = cli("store", "show", "--json").data
        assert told["file"] == f"redis://:***@127.0.0.1:{server.port}/0"
        assert (told["replies"], told["tokens"]) == (2, 24)
        assert cli("store", "prune", "--unused-days", "30", "--json").data["deleted"] == 1
        assert json.loads(cli("store", "export", "-").out)["reply"] == {"говорит": "new"}
        assert [check.state for check in _store(load_settings(tmp_path))] == ["ok"]
    ran = cli("store", "show")
    assert ran.code == 4
    assert f"redis://:***@127.0.0.1:{server.port}/0: " in ran.err
    [check] = _store(load_settings(tmp_path))
    assert check.state == "failed"
    assert "geheim" not in ran.err + repr(check)


def test_no_store_and_no_database(cli: Cli) -> None:
    ran = cli("store", "show", "--store", "nowhere.sqlite")
    assert ran.code == 4
    assert "there is no store yet" in ran.err
    cli.write("noise.sqlite", "noise " * 1000)
    ran = cli("store", "show", "--store", "noise.sqlite")
    assert ran.code == 4
    assert "noise.sqlite: " in ran.err
    assert cli("store", "show", "--store", "off").code == 4
