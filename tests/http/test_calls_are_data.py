"""A call can be sent by another process than the one that made it."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.embeddings import openai_embedder
from pytest_ragbench.engine.calls import Call
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.tasks import GradeSearchRag
from pytest_ragbench.model.samples import Question
from pytest_ragbench.rag import http_retriever
from pytest_ragbench.settings import ProviderSettings, RagSettings
from tests.rag.server import as_json, serving

SECRET = "sk-test-FAKE-0000-abcd"
GOOD = '{"answer_correctness": 1, "groundedness": 1, "error_message": ""}'
SENDING = """
import asyncio, pickle, sys
from pytest_ragbench.engine.calls import Adapters

class Engine:
    def __init__(self):
        self.closing = []
    def on_close(self, close):
        self.closing.append(close)

async def send(call):
    engine = Engine()
    async def sender(attempt):
        return await attempt()
    payload = await Adapters(engine).send(call, sender)
    for close in engine.closing:
        await close()
    return payload

payload = asyncio.run(send(pickle.loads(sys.stdin.buffer.read())))
sys.stdout.write(payload if isinstance(payload, str) else payload.get("content") or payload["text"])
"""


class Taking:
    """An engine that hands over the call instead of making it."""

    run_id = "run"
    call: Call

    def replays(self, kind: str) -> bool:
        return False

    def set_limits(self, provider: str, limits: object) -> None:
        pass

    async def fetch(self, call: Call, read: Any, **more: Any) -> Any:
        self.call = call
        raise InterruptedError


def call_of(kind: str, url: str) -> Call:
    engine: Any = Taking()
    provider = ProviderSettings(base_url=url, api_key_env="KEY")
    environ = {"KEY": SECRET}
    asked: Any
    if kind == "judge":
        asked = openai_judge("lab", provider, "m", engine, environ=environ).ask(
            GradeSearchRag("q", "a", ("c",))
        )
    elif kind == "embedding":
        asked = openai_embedder(provider, "m", engine, provider="lab", environ=environ).embed(["a"])
    else:
        asked = http_retriever(RagSettings(url=url, auth_env="KEY"), engine, environ).ask(
            Question(id="1", question="q")
        )
    with pytest.raises(InterruptedError):
        asyncio.run(asked)
    call: Call = engine.call
    return call


@pytest.mark.parametrize(
    ("kind", "reply", "says"),
    [
        ("judge", {"choices": [{"message": {"content": GOOD}}]}, GOOD),
        ("embedding", {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}, "AACAPwAAAEA="),
        ("rag", {"answer": "yes"}, '{"answer": "yes"}'),
    ],
)
def test_another_process_sends_it(kind: str, reply: Any, says: str, tmp_path: Path) -> None:
    with serving() as service:
        service.acts = [as_json(reply)]
        call = call_of(kind, service.url)
        assert SECRET not in repr(call)
        done = subprocess.run(
            [sys.executable, "-c", SENDING],
            input=pickle.dumps(call),
            capture_output=True,
            check=True,
            cwd=tmp_path,
        )
        assert done.stdout.decode() == says
        assert service.seen[0].headers["Authorization"] == f"Bearer {SECRET}"
