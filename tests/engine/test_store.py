"""The store under everything that happens to files."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine import Engine, Store
from pytest_ragbench.engine.coordinator import Kept, Reply
from pytest_ragbench.engine.inventory import DAY, StoreError
from tests.engine.helpers import Service, fetched

MakeEngine = Callable[..., Engine]
spawn = multiprocessing.get_context("spawn")


def reply(
    digest: str, payload: str = '"да"', *, run: str | None = None, used: float = 0.0, created: float = 0.0
) -> Reply:
    return Reply(digest, "judge", "p", run, created, used, payload)


def put(store: Store, *replies: Reply) -> None:
    store.put(replies)


def fetch_twice(engine: Engine) -> Service:
    """The engine works, whatever the file does."""
    service = Service()
    for _ in range(2):
        assert engine.wait(fetched(engine, service.ask("вопрос"))).value == "вопрос"
    return service


# CO-08: many writers and readers at once, as several runs on one store


def _write(path: Path, process: int, gate: Any) -> None:
    store = Store(path)
    gate.wait()
    for number in range(50):
        key = f"{process}-{number}"
        put(store, reply(key, f'"{key * 20}"'))
    store.close()


def _read(path: Path, gate: Any, over: Any) -> None:
    store = Store(path)
    gate.wait()
    while not over.is_set():
        for process in range(4):
            for number in range(0, 50, 7):
                key = f"{process}-{number}"
                assert store.get(key) in (None, f'"{key * 20}"')


@pytest.mark.timeout(120)
def test_four_writers_and_two_readers(store_path: Path) -> None:
    gate, over = spawn.Barrier(6), spawn.Event()
    writers = [spawn.Process(target=_write, args=(store_path, number, gate)) for number in range(4)]
    readers = [spawn.Process(target=_read, args=(store_path, gate, over)) for _ in range(2)]
    for each in writers + readers:
        each.start()
    for each in writers:
        each.join(100)
    over.set()
    for each in readers:
        each.join(20)
    assert [each.exitcode for each in writers + readers] == [0] * 6
    found = {item.digest: item.payload for item in Store(store_path).items()}
    assert found == {f"{p}-{n}": f'"{f"{p}-{n}" * 20}"' for p in range(4) for n in range(50)}


def test_a_reply_is_on_file_at_once(engine: Engine, store_path: Path) -> None:
    """Read by another connection while the run goes on: a kill would lose nothing."""
    service = Service()

    async def all_at_once() -> list[int]:
        on_file = []
        for number in range(5):
            await fetched(engine, service.ask(number))
            await asyncio.sleep(0)
            on_file.append(await asyncio.to_thread(lambda: Store(store_path).stats()["replies"]))
        return on_file

    assert engine.wait(all_at_once()) == [1, 2, 3, 4, 5]


def test_a_file_that_another_run_writes_to_is_written_later(
    engine: Engine, store_path: Path, warned: list[str]
) -> None:
    service = Service()
    engine.wait(fetched(engine, service.ask("before")))
    blocker = sqlite3.connect(store_path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    assert engine.wait(fetched(engine, service.ask("meanwhile"))).value == "meanwhile"
    assert Store(store_path).stats()["replies"] == 1
    blocker.execute("ROLLBACK")
    blocker.close()
    deadline = time.monotonic() + 20
    while Store(store_path).stats()["replies"] < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert warned == []


# Files that can't be used


def test_only_the_owner_may_read_it(engine: Engine, store_path: Path) -> None:
    fetch_twice(engine)
    for path in store_path.parent.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_noise_is_moved_aside_and_a_new_store_begun(
    make_engine: MakeEngine, store_path: Path, warned: list[str]
) -> None:
    store_path.parent.mkdir()
    store_path.write_bytes(os.urandom(20_000))
    engine = make_engine()
    assert fetch_twice(engine).calls == 1
    assert len(warned) == 1
    assert str(store_path) in warned[0]
    assert f"{store_path.name}.corrupt-1" in warned[0]
    assert store_path.with_name(f"{store_path.name}.corrupt-1").stat().st_size == 20_000
    engine.close()
    assert Store(store_path).stats()["replies"] == 1


def test_noise_while_in_use(make_engine: MakeEngine, store_path: Path, warned: list[str]) -> None:
    engine = make_engine()
    service = Service()
    for number in range(50):
        engine.wait(fetched(engine, service.ask(f"{number}" * 500)))
    with sqlite3.connect(store_path) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with store_path.open("r+b") as file:
        file.seek(100)
        file.write(os.urandom(store_path.stat().st_size - 100))
    second = make_engine()
    for each in (second, engine):
        for number in range(50):
            assert each.wait(fetched(each, service.ask(f"{number}" * 500))).value == f"{number}" * 500
    assert 1 <= len(warned) <= 2  # each engine at most once
    calls = service.calls
    third = make_engine()
    for number in range(50):
        third.wait(fetched(third, service.ask(f"{number}" * 500)))
    assert service.calls == calls
    assert len(list(store_path.parent.glob("*.corrupt-*"))) >= 1


@pytest.mark.parametrize("position", ["below a file", "a directory", "a device"])
def test_a_path_that_cannot_be_a_store(
    make_engine: MakeEngine, tmp_path: Path, warned: list[str], position: str
) -> None:
    if position == "below a file":
        (tmp_path / "file").write_text("")
        path = tmp_path / "file" / "cache" / "store.sqlite"
    elif position == "a directory":
        path = tmp_path
    else:
        path = Path("/dev/full")
    engine = make_engine(store=path)
    assert fetch_twice(engine).calls == 1  # kept in memory
    engine.close()
    assert len(warned) == 1
    assert str(path) in warned[0]
    assert "kept for this process only" in warned[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_write_permission(
    make_engine: MakeEngine, store_path: Path, warned: list[str]
) -> None:
    store_path.parent.mkdir(mode=0o500)
    assert fetch_twice(make_engine()).calls == 1
    assert [str(store_path) in each for each in warned] == [True]


@pytest.mark.parametrize(("version", "complaint"), [(99, "newer version"), (0, "some other database")])
def test_a_database_that_is_not_ours_is_left_alone(
    make_engine: MakeEngine, store_path: Path, warned: list[str], version: int, complaint: str
) -> None:
    store_path.parent.mkdir()
    with sqlite3.connect(store_path) as db:
        db.execute("CREATE TABLE customers(name)")
        db.execute(f"PRAGMA user_version={version}")
    assert fetch_twice(make_engine()).calls == 1
    assert [complaint in each for each in warned] == [True]
    with sqlite3.connect(store_path) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("customers",)]


def test_what_can_only_be_read_is_read(
    make_engine: MakeEngine, store_path: Path, warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache from another job, mounted read-only."""
    service, first = Service(), make_engine()
    first.wait(fetched(first, service.ask("kept")))
    first.close()

    def refuses(store: Store) -> sqlite3.Connection:
        error = sqlite3.OperationalError("unable to open database file")
        error.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
        raise error

    monkeypatch.setattr(Store, "_open_to_write", refuses)
    engine = make_engine()
    assert engine.wait(fetched(engine, service.ask("kept"))).cached
    for _ in range(2):
        assert engine.wait(fetched(engine, service.ask("new"))).value == "new"
    assert service.calls == 2
    assert ["unable to open" in each and "for this process only" in each for each in warned] == [True]


def test_locked_by_somebody_else(
    make_engine: MakeEngine, store_path: Path, warned: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, first = Service(), make_engine()
    first.wait(fetched(first, service.ask("kept")))
    first.close()
    monkeypatch.setattr("pytest_ragbench.engine.store.OPENING_S", 0.05)
    monkeypatch.setattr("pytest_ragbench.engine.replies._LOCKED_S", 0.0)
    blocker = sqlite3.connect(store_path, isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    engine = make_engine()
    assert engine.wait(fetched(engine, service.ask("kept"))).cached
    for _ in range(2):
        assert engine.wait(fetched(engine, service.ask("new"))).value == "new"
    assert service.calls == 2
    blocker.close()
    engine.close()
    assert ["locked" in each and str(store_path) in each for each in warned] == [True]
    assert Store(store_path).stats()["replies"] == 2  # as soon as it could be written


def test_a_file_that_is_deleted_meanwhile_is_made_anew(
    make_engine: MakeEngine, store_path: Path, warned: list[str]
) -> None:
    engine, service = make_engine(), Service()
    engine.wait(fetched(engine, service.ask("before")))
    store_path.unlink()
    engine.wait(fetched(engine, service.ask("after")))
    engine.close()
    assert {item.payload for item in Store(store_path).items()} == {'{"echo":"after"}'}
    assert warned == []


FULL_DISK = """
import asyncio, resource, sys
from pathlib import Path
from pytest_ragbench.engine import Engine, Store
from tests.engine.helpers import Service, fetched

resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))  # write() then fails as on a full disk
warned = []
engine = Engine(store=Path(sys.argv[1]), run_id="r", on_warning=warned.append)
service = Service()
keys = [str(number) * 3000 for number in range(60)]
for key in keys[:5]:
    engine.wait(fetched(engine, service.ask(key)))

async def all_at_once():
    return [each.value for each in await asyncio.gather(*(fetched(engine, service.ask(key)) for key in keys))]

for _ in range(2):
    assert engine.wait(all_at_once()) == keys
kept = len(list(Store(Path(sys.argv[1])).items()))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
engine.close()
print(service.calls, 0 < kept < 60, len(warned), sys.argv[1] in warned[0], "kept for this process" in warned[0])
"""


def test_full_disk(store_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(store_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stderr == ""
    assert done.stdout.split() == ["60", "True", "1", "True", "True"]
    assert Store(store_path).stats()["replies"] == 60  # as soon as there was room


def test_a_damaged_row_counts_as_absent(make_engine: MakeEngine, store_path: Path, warned: list[str]) -> None:
    service = Service()
    engine = make_engine()
    engine.wait(fetched(engine, service.ask("вопрос")))
    with sqlite3.connect(store_path) as db:
        db.execute("UPDATE replies SET payload=replace(payload, 'вопрос', 'ответ')")
    assert engine.wait(fetched(engine, service.ask("вопрос"))).value == "вопрос"
    assert service.calls == 2
    assert engine.wait(fetched(engine, service.ask("вопрос"))).cached
    assert warned == [
        f"{store_path}: a reply in the store is damaged and is asked for again; so are others like it"
    ]


# For people


def test_items_stats_and_delete(store_path: Path) -> None:
    store = Store(store_path)
    put(store, reply("b", created=2.0), reply("a", '{"x": "質"}', run="r", created=1.0))
    assert [item.digest for item in store.items()] == ["a", "b"]
    assert next(store.items()) == Reply("a", "judge", "p", "r", 1.0, 0.0, '{"x": "質"}')
    assert store.stats() == {
        "replies": 2,
        "bytes": len('{"x": "質"}'.encode()) + len('"да"'.encode()),
        "by_kind": {"judge": 2},
        "by_provider": {"p": 2},
    }
    assert store.delete(["a", "unknown"]) == 1
    assert store.delete() == 1
    assert list(store.items()) == []


def pruned(path: Path) -> float:
    with sqlite3.connect(path) as db:
        found: float = db.execute("SELECT value FROM meta WHERE name='pruned'").fetchone()[0]
    return found


def test_pruning(store_path: Path) -> None:
    store, now = Store(store_path), 1000 * DAY
    put(
        store,
        reply("this run, old", run="me", created=now - 5 * DAY),
        reply("other run, old", run="you", created=now - 2 * DAY),
        reply("other run, new", run="you", created=now - DAY / 2, used=now),
        reply("unused", created=0, used=now - 91 * DAY),
        reply("used", created=0, used=now - 89 * DAY),
    )
    assert store.prune(run="me", now=now) == 2
    assert {item.digest for item in store.items()} == {"this run, old", "other run, new", "used"}
    assert pruned(store_path) == now


def test_pruning_by_size_drops_what_was_unused_for_longest(store_path: Path) -> None:
    store = Store(store_path)
    put(store, *(reply(f"{n}", f'"{"x" * 998}"', used=float(n)) for n in range(10)))
    assert store.prune(now=10.0, max_bytes=3000) == 7
    assert {item.digest for item in store.items()} == {"7", "8", "9"}


def test_closing_prunes_once_a_day_and_notes_what_was_used(make_engine: MakeEngine, store_path: Path) -> None:
    store = Store(store_path)
    put(store, reply("stale", used=time.time() - 100 * DAY))
    engine = make_engine()
    digest_holder = Service()
    engine.wait(fetched(engine, digest_holder.ask()))
    engine.close()
    assert [item.payload for item in store.items()] == ['{"echo":"q"}']
    before = pruned(store_path)
    with sqlite3.connect(store_path) as db:
        db.execute("UPDATE replies SET used=?", (time.time() - 80 * DAY,))
    again = make_engine()
    again.wait(fetched(again, digest_holder.ask()))
    again.close()
    assert pruned(store_path) == before
    assert next(store.items()).used > time.time() - DAY


def test_a_failing_operation_changes_nothing(store_path: Path) -> None:
    store = Store(store_path)
    with pytest.raises(StoreError, match="NOT NULL"):
        store.put([reply("a"), reply("b")._replace(kind=None)])  # type: ignore[arg-type]
    assert list(store.items()) == []


OLD = """
CREATE TABLE replies(
    digest TEXT PRIMARY KEY, kind TEXT NOT NULL, provider TEXT NOT NULL, scope_run TEXT,
    created REAL NOT NULL, used REAL NOT NULL, size INTEGER NOT NULL, checksum TEXT NOT NULL,
    payload TEXT NOT NULL);
CREATE TABLE claims(
    digest TEXT PRIMARY KEY, token TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL,
    started TEXT NOT NULL, expires REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE meta(name TEXT PRIMARY KEY, value REAL NOT NULL) WITHOUT ROWID;
PRAGMA user_version=1;
"""


def test_a_store_of_an_older_version_is_brought_up_to_date(store_path: Path, warned: list[str]) -> None:
    store_path.parent.mkdir()
    with sqlite3.connect(store_path) as db:
        db.executescript(OLD)
        kept = '{"echo": "q"}'
        checksum = hashlib.blake2b(f"d\n{kept}".encode(), digest_size=8).hexdigest()
        row = ("d", "judge", "p", None, 1e9, 1e9, len(kept), checksum, kept)
        db.execute("INSERT INTO replies VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    db.close()
    store = Store(store_path)
    assert store.find("d") == Kept(kept)
    put(store, Reply("e", "judge", "p", None, 1e9, 1e9, kept, 10, 2, 0.5, "r"))
    assert store.find("e") == Kept(kept, 10, 2, 0.5, "r")
    assert store.mean_tokens("judge", "p") == (10, 2)
    assert store.mean_tokens("judge", "q") is None
