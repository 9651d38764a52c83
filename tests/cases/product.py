"""The product as the cases use it: its public functions, with scripted judges and embedders."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from pytest_ragbench import RagSample, runtime
from pytest_ragbench.engine import Engine, Limits
from pytest_ragbench.judge.base import Answered, R, Task
from pytest_ragbench.settings import Settings

_OURS = ("RAGBENCH_", "OPENAI_", "PYTEST_ADDOPTS", "PYTEST_XDIST")


@contextmanager
def isolated() -> Iterator[Path]:
    """An empty working directory, no configuration and no key of the caller."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS) and name != "CI"}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, kept, clear=True):
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


class Sleeps:
    """A sleep that only writes down how long it would have been."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)
        await asyncio.sleep(0)


_RUNS = itertools.count(1)


@contextmanager
def engine(*, store: Path | None = None, sleep: Sleeps | None = None, **limits: Limits) -> Iterator[Engine]:
    """An engine of its own; nothing is kept unless ``store`` is given."""
    made = Engine(store=store, run_id=f"case-{next(_RUNS)}", limits=limits, sleep=sleep or Sleeps())
    try:
        yield made
    finally:
        made.close()


@contextmanager
def using(
    *,
    judge: Any = None,
    embedder: Any = None,
    settings: Settings | None = None,
    sleep: Sleeps | None = None,
) -> Iterator[runtime.Runtime]:
    """The helpers of the package with this judge and embedder, as a test's fixtures would give them."""
    from pytest_ragbench import building

    chosen = settings or Settings(judge="local")
    with engine(sleep=sleep) as made:
        here = runtime.Runtime(
            settings=lambda: chosen,
            engine=lambda: made,
            judge=lambda: building.judge(judge, made, chosen),
            embedder=lambda: building.embedder(embedder, made, chosen),
        )
        with runtime.using(here):
            yield here


def command(*words: str) -> dict[str, Any]:
    """What ``ragbench WORDS`` prints (``--json``); it is run in this process, as it would run in its own."""
    from pytest_ragbench.cli import run

    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        run(words)
    told: dict[str, Any] = json.loads(printed.getvalue())
    return told


class Scripted:
    """A judge function that gives the replies of a script in turn, the last one for ever.

    A reply is what any judge function may return, or an exception to raise. ``asked`` holds what it
    was sent.
    """

    def __init__(self, replies: Sequence[Any]) -> None:
        self._replies = list(replies)
        self.asked: list[list[dict[str, str]]] = []

    def __call__(self, messages: list[dict[str, str]]) -> Any:
        self.asked.append(messages)
        reply = self._replies[min(len(self.asked), len(self._replies)) - 1]
        if isinstance(reply, BaseException):
            raise reply
        return reply


class ByTask:
    """A judge that has a script of its own for each task: ``{"split_claims": replies or a function}``."""

    name = "by task"
    tasks = None

    def __init__(self, scripts: Mapping[str, Any]) -> None:
        from pytest_ragbench.judge.callable import callable_judge

        self.scripts = {
            name: script if callable(script) else Scripted(script) for name, script in scripts.items()
        }
        self._judges = {name: callable_judge(script) for name, script in self.scripts.items()}

    async def ask(self, task: Task[R]) -> Answered[R]:
        return await self._judges[task.name].ask(task)


def completion(reply: Any) -> Any:
    """A case's reply ``{"content": ..., "finish_reason": ...}`` as a chat completion; others as they are."""
    if not isinstance(reply, Mapping) or not {"content", "finish_reason", "refusal", "tool_calls"} & set(
        reply
    ):
        return reply
    message = {key: value for key, value in reply.items() if key != "finish_reason"}
    return {"choices": [{"message": message, "finish_reason": reply.get("finish_reason", "stop")}]}


def sample_of(given: Mapping[str, Any], **defaults: Any) -> RagSample:
    """A sample from a case's columns, which may use the names of any tool."""
    names = {
        "user_input": "question",
        "response": "answer",
        "retrieved_contexts": "contexts",
        "chunks": "contexts",
        "ground_truth": "reference",
    }
    columns = {names.get(key, key): value for key, value in given.items()}
    known = {key: value for key, value in columns.items() if key in RagSample.__dataclass_fields__}
    return RagSample(**{**defaults, **known})


def embedder_of(vectors: Sequence[Sequence[float]]) -> Any:
    """An embedder function that gives these vectors, whatever the texts are."""
    return lambda texts: [list(vector) for vector in vectors[: len(texts)]]
