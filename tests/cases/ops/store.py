"""The store of replies: many processes at once, what counts as the same question, damage."""

from __future__ import annotations

import base64
import json
import multiprocessing
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from pytest_ragbench import JudgeError, RagSample
from pytest_ragbench.engine import Call, Engine, Sender, Sent, Store
from pytest_ragbench.engine.keys import digest_of
from pytest_ragbench.judge import rendering
from tests.cases import product
from tests.cases.ops.runs import pytest_run
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op
from tests.cases.servers import Served, serving

_GOOD = '{"answer_correctness": 0.9, "groundedness": 0.8, "error_message": ""}'
_COMPLETION = {"choices": [{"message": {"content": _GOOD}, "finish_reason": "stop"}]}
_SAMPLING = ("temperature", "seed", "max_tokens", "extra_body")
_NOT_ASKED = {"threshold", "test", "test_name", "test_id", "id", "api_key", "timeout", "max_concurrency"}
"""What shapes no reply: a change of it must not ask the judge again."""


# Many processes


def _value(key: int) -> str:
    return f"value of {key} " * 20


def _call(key: int) -> Call:
    return Call("judge", "stress", "none", None, None, {"key": key})


async def _asked(engine: Engine, key: int, send: Callable[[Sender], Any]) -> str:
    return (await engine.fetch(_call(key), lambda payload: str(payload["text"]), send=send)).value


def _write(path: str, keys: Sequence[int], errors: Any) -> None:
    engine = Engine(store=Path(path), run_id="stress", on_warning=errors.put)
    try:
        for key in keys:

            async def fetch(send: Sender, key: int = key) -> Any:
                async def attempt() -> Sent:
                    return Sent({"text": _value(key)})

                return (await send(attempt)).payload

            found = engine.wait(_asked(engine, key, fetch))
            if found != _value(key):
                errors.put(f"key {key} gave {found[:40]!r}")
    except BaseException as error:
        errors.put(f"writer: {type(error).__name__}: {error}")
    finally:
        engine.close()


def _read(path: str, keys: int, stop: Any, errors: Any) -> None:
    store = Store(Path(path))
    digests = {digest_of(_call(key), "stress"): key for key in range(keys)}
    names = list(digests)
    try:
        while not stop.is_set():
            digest = random.choice(names)
            text = store.get(digest)
            if text is not None and json.loads(text)["text"] != _value(digests[digest]):
                errors.put(f"a reader saw {text[:60]!r} under key {digests[digest]}")
    except BaseException as error:
        errors.put(f"reader: {type(error).__name__}: {error}")
    finally:
        store.close()


async def _no_call(send: Sender) -> Any:
    raise JudgeError("it was stored, and is asked for again", code="asked_again")


@op("cache_stress")
def stress(given: Input) -> Outcome:
    """Writers and readers in processes of their own, on one file; then every key is read back."""
    writers, each = int(given["processes"]), int(given["writes_per_process"])
    keys = int(given.get("distinct_keys", writers * each))
    path = str(Path("stress") / "store.sqlite")
    Path(path).parent.mkdir()
    spawn = multiprocessing.get_context("spawn")
    errors, stop = spawn.Queue(), spawn.Event()
    made = Engine(store=Path(path), run_id="stress", on_warning=errors.put)  # so that readers find a file
    made.wait(_opened(made))
    shares = [[(number * each + i) % keys for i in range(each)] for number in range(writers)]
    readers = [
        spawn.Process(target=_read, args=(path, keys, stop, errors))
        for _ in range(int(given.get("readers", 0)))
    ]
    processes = [spawn.Process(target=_write, args=(path, share, errors)) for share in shares]
    for process in [*readers, *processes]:
        process.start()
    for process in processes:
        process.join(120)
    stop.set()
    for process in readers:
        process.join(30)
    problems = [f"a process ended with {one.exitcode}" for one in [*processes, *readers] if one.exitcode != 0]
    while not errors.empty():
        problems.append(str(errors.get()))
    written = sorted({key for share in shares for key in share})
    for key in written:
        found = observe(lambda key=key: made.wait(_asked(made, key, _no_call)))  # type: ignore[misc]
        if found.value != _value(key):
            problems.append(f"key {key}: {found.told()}")
    made.close()
    numbers = [len(written), writers, each]
    return Outcome("property", value=len(written), problems=problems[:5], facts={"numbers": numbers})


async def _opened(engine: Engine) -> None:
    async def fetch(send: Sender) -> Any:
        return {"text": "first"}

    await _asked(engine, -1, fetch)


# What counts as the same question


class _Asker:
    """``ragbench ask`` of an answer that is given, with one store: each call is a new run."""

    def __init__(self, servers: Mapping[str, Served], store: Path) -> None:
        self._servers = servers
        self._store = store

    def ask(self, base: Mapping[str, Any]) -> dict[str, Any]:
        """The grades and the message; raises :class:`JudgeError` with what the command says of an outage."""
        server = self._servers[str(base.get("base_url", ""))]
        provider = {
            "base_url": f"{server.url}/v1",
            "api_key_env": "CASE_KEY",
            "retry": {"attempts": 1},
            **{name: base[name] for name in _SAMPLING if base.get(name) is not None},
        }
        Path("ragbench.toml").write_text(f"[providers.openai]\n{_toml(provider)}\n", encoding="utf-8")
        words = ["ask", str(base["question"]), "--answer", str(base["answer"]), "-m", "search_rag", "--json"]
        words += [word for chunk in base["contexts"] for word in ("--context", str(chunk))]
        words += ["--judge", f"openai:{base.get('model', 'm')}", "--store", str(self._store)]
        key = {"CASE_KEY": str(base.get("api_key", "sk-case-0000"))}
        with mock.patch.dict("os.environ", key), _prompt(str(base.get("prompt", ""))):
            found = product.command(*words)
        if error := found.get("error") or found["errors"].get("search_rag"):
            raise JudgeError(error["message"])
        score = found["scores"]["search_rag"]
        return {**score["details"], "error_message": score["error_message"], "value": score["value"]}

    def calls(self) -> int:
        return sum(server.calls for server in self._servers.values())


def _toml(values: Mapping[str, Any]) -> str:
    return "\n".join(f"{json.dumps(name)} = {_toml_value(value)}" for name, value in values.items())


def _toml_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {_toml_value(v)}" for k, v in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _prompt(text: str) -> Any:
    """The package's prompts, with a sentence more: what another release of the package may bring."""
    original = rendering._prompt_file.__wrapped__

    def edited(name: str) -> dict[str, Any]:
        file = dict(original(name))
        if text and name == "common":
            file["en"] = {**file["en"], "role": f"{file['en']['role']}\n{text}"}
        return file

    return mock.patch.object(rendering, "_prompt_file", edited)


@op("cache_key")
def cache_key(given: Input) -> Outcome:
    """Which changes ask the judge anew, which don't; errors are never kept."""
    base = dict(given["base"])
    variants = [{**base, **change} for change in given["variants"]]
    urls = {str(one.get("base_url", "")) for one in [base, *variants]}
    problems: list[str] = []
    with _servers(urls, {"status": 200, "json": _COMPLETION}) as servers:
        asker = _Asker(servers, Path("keys.sqlite"))
        first, missed = asker.ask(base), []
        for change, variant in zip([{}, *given["variants"]], [base, *variants], strict=True):
            before = asker.calls()
            found = asker.ask(variant)
            asked, same = asker.calls() > before, not set(change) - _NOT_ASKED
            missed.append(asked)
            if asked == same:
                problems.append(f"{change or 'the same again'} {'asks again' if asked else 'is a hit'}")
            if same and found != first:
                problems.append(f"{change or 'the same again'} gives {found}, the first run gave {first}")
    with serving([{"status": 500, "text": "down"}, {"status": 200, "json": _COMPLETION}]) as server:
        asker = _Asker({str(base.get("base_url", "")): server}, Path("errors.sqlite"))
        outcomes = [observe(lambda: asker.ask(base)).kind for _ in range(2)]
        if outcomes != ["judge_error", "value"]:
            problems.append(f"an outage and the run after it: {outcomes}")
    numbers = [number for number, asked in enumerate(missed) if asked]  # the base itself has the number 0
    return Outcome("property", problems=problems, facts={"numbers": numbers})


class _servers:
    """One server for each base URL of a case."""

    def __init__(self, urls: set[str], reply: Mapping[str, Any]) -> None:
        self._contexts = {url: serving([reply]) for url in urls}

    def __enter__(self) -> dict[str, Served]:
        return {url: context.__enter__() for url, context in self._contexts.items()}

    def __exit__(self, *error: object) -> None:
        for context in self._contexts.values():
            context.__exit__(None, None, None)


# Damage


@op("cache_read", "cache_damaged", "cache_entry", items="entries", single="entry")
def cache_read(given: Input) -> Outcome:
    """An entry whose stored text was replaced: the judge is asked again, and the reply is right.

    ``entry`` is the text (or ``bytes_b64``); ``file_b64`` replaces the whole file.
    """
    entry = given.get("entry", given.get("payload", given.get("content", given.get("text", ""))))
    path = Path("damaged.sqlite")
    sample = RagSample("q", "a", ["c"])
    with serving([{"status": 200, "json": _COMPLETION}]) as server:
        asker = _Asker({"": server}, path)
        base = {"question": sample.question, "answer": sample.answer, "contexts": sample.contexts}
        first = asker.ask(base)
        if "file_b64" in given:
            path.write_bytes(base64.b64decode(given["file_b64"]))
        else:
            raw = base64.b64decode(given["bytes_b64"]) if "bytes_b64" in given else entry
            _replace(path, raw if isinstance(raw, (str, bytes)) else str(raw))
        before = server.calls
        outcome = observe(lambda: asker.ask(base))
        again = server.calls - before
    if outcome.kind == "value":
        outcome.facts["http_calls"] = again
        if outcome.value != first:
            outcome.problems.append(f"the damaged entry gave {outcome.value}")
        if again != 1:
            outcome.problems.append(f"{again} calls after the damage, one expected")
    for extra in Path().glob("damaged.sqlite*"):
        extra.unlink()
    return outcome


def _replace(path: Path, payload: str | bytes) -> None:
    """Write over the stored texts, once as a bad disk would, without their checksums."""
    with sqlite3.connect(path) as db:
        db.execute("UPDATE replies SET payload = ?", (payload,))
    db.close()


@op("fork", "fork_safety")
def fork(given: Input) -> Outcome:
    """A test that forks: the ``steps`` of the case, or parent and child both ask."""
    steps = given.get(
        "steps", ["the parent asks", "fork", "the child asks", "the parent waits", "the parent asks"]
    )
    if not any("fork" in str(step).casefold() for step in steps):
        return Outcome("crash", message=f"no step forks: {steps}")
    return pytest_run(given.over({"steps": steps}))
