"""Which replies are asked for again, and what a sample says of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.engine.calls import Call
from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.errors import EndpointError
from pytest_ragbench.model.samples import Location, Question, RagSample
from pytest_ragbench.rag import http_retriever
from pytest_ragbench.settings import RagSettings, ReplyMapping
from tests.rag.server import Service, as_json

QUESTION = Question(
    id="q7",
    question="Срок?",
    reference="7 дней",
    tags=("a",),
    location=Location("q.csv", 3),
    metadata={"n": 1},
)


def asked(
    store: Path | None, run: str, url: str, environ: dict[str, str] | None = None, **more: object
) -> RagSample:
    engine = Engine(store=store, run_id=run)
    try:
        made = http_retriever(RagSettings.model_validate({"url": url, **more}), engine, environ or {})
        return engine.wait(made.ask(QUESTION))
    finally:
        engine.close()


def test_sample_keeps_the_questions_columns(service: Service) -> None:
    service.acts = [as_json({"answer": "7", "chunks": ["c"], "metadata": {"model": "m"}})]
    sample = asked(None, "1", service.url)
    assert (sample.id, sample.reference, sample.tags, str(sample.location)) == (
        "q7",
        "7 дней",
        ("a",),
        "q.csv:3",
    )
    assert sample.metadata == {"n": 1, "model": "m"}
    assert sample.latency is not None
    assert 0 < sample.latency < 10
    assert not sample.cached


def test_answers_are_kept_for_the_run(service: Service, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    first = asked(store, "run", service.url)
    second = asked(store, "run", service.url)
    assert len(service.seen) == 1
    assert second.cached
    assert second.latency == first.latency
    asked(store, "another run", service.url)
    assert len(service.seen) == 2


def test_answers_are_kept_longer_on_request(service: Service, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    for run in "12":
        asked(store, run, service.url, reuse_answers=True)
    assert len(service.seen) == 1


def test_a_changed_mapping_reads_the_kept_reply_anew(service: Service, tmp_path: Path) -> None:
    service.acts = [as_json({"answer": "a", "other": "b"})]
    store = tmp_path / "store.db"
    assert asked(store, "run", service.url).answer == "a"
    assert asked(store, "run", service.url, reply=ReplyMapping(answer="other")).answer == "b"
    assert len(service.seen) == 1


def test_all_that_shapes_the_reply_is_in_the_key(service: Service, tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    environ = {"K": "first-secret", "L": "other-secret"}
    kinds: list[dict[str, object]] = [
        {},
        {"headers": {"X-Tenant": "a"}},
        {"headers": {"X-Tenant": "b"}},
        {"headers": {"Cookie": "session=one-value"}},
        {"headers": {"Cookie": "session=other-value"}},
        {"auth_env": "K"},
        {"auth_env": "L"},
        {"auth_env": "K", "auth_scheme": ""},
        {"path": "/llm/search-rag?k=1"},
        {"path": "/llm/search-rag?api_key=zqzq"},
        {"path": "/llm/search-rag?api_key=wxwx"},
        {"method": "POST", "body": {"q": "{question}"}},
        {"method": "POST", "body": {"q": "{question}", "k": 2}},
        {"method": "PUT", "body": {"q": "{question}"}},
    ]
    for _ in range(2):
        for kind in kinds:
            asked(store, "run", service.url, environ, **kind)
    assert len(service.seen) == len(kinds)
    assert asked(store, "run", service.url, {"K": "rotated-secret"}, auth_env="K").cached
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        for secret in (b"-secret", b"one-value", b"zqzq"):
            assert secret not in content


def test_no_secret_is_in_the_key() -> None:
    """Though the engine stores only a digest of it: a recording may keep keys as they are."""
    keys: list[str] = []

    class Watching(Engine):
        async def fetch(self, call: Call, *how: Any, **more: Any) -> Any:
            keys.append(json.dumps(call.key))
            raise EndpointError("seen")

    settings = RagSettings(
        url="http://h/ask?api_key=query-secret&k=1",
        headers={"X-Api-Key": "header-secret", "X-Tenant": "shop"},
        auth_env="K",
    )
    made = http_retriever(settings, Watching(store=None, run_id="1"), {"K": "variable-secret"})
    with pytest.raises(EndpointError, match="seen"):
        asyncio.run(made.ask(QUESTION))
    assert "-secret" not in keys[0]
    for part in ('"K"', "shop", "k=1", "X-Api-Key", "api_key"):
        assert part in keys[0]
