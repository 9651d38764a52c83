"""Against a loopback service that speaks the embeddings API, and lies."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest

from pytest_ragbench import OpenAIEmbedder
from pytest_ragbench.embeddings import embedder_from, openai_embedder
from pytest_ragbench.embeddings.openai import ApiEmbedder
from pytest_ragbench.engine.core import Engine
from pytest_ragbench.model.errors import EmbeddingError, UsageError
from pytest_ragbench.settings import ProviderSettings, RetrySettings, Settings
from tests.rag.server import Act, Handler, Seen, Service, as_json, drop, reply, serving

SECRET = "sk-test-FAKE-0000-abcd"


@pytest.fixture
def service() -> Iterator[Service]:
    with serving() as running:
        running.acts = [embedding()]
        yield running


def vector(text: str) -> list[float]:
    return [float(len(text)), float(sum(map(ord, text)) % 97), 0.5]


def entries(texts: list[str], packed: bool) -> list[dict[str, Any]]:
    rows = [np.asarray(vector(text), dtype="<f4") for text in texts]
    pack: Callable[[Any], Any] = (lambda row: base64.b64encode(row.tobytes()).decode()) if packed else list
    return [
        {
            "object": "embedding",
            "index": place,
            "embedding": row if isinstance(row, str) else list(map(float, row)),
        }
        for place, row in enumerate(map(pack, rows))
    ]


def embedding(packed: bool = True, change: Callable[[list[dict[str, Any]]], Any] = lambda data: data) -> Act:
    def act(handler: Handler, seen: Seen) -> None:
        texts = json.loads(seen.body)["input"]
        data = change(entries(texts, packed))
        as_json({"data": data, "model": "m", "usage": {"prompt_tokens": len(texts)}})(handler, seen)

    return act


def made(engine: Engine, service: Service, **settings: Any) -> ApiEmbedder:
    provider = ProviderSettings(base_url=service.url + "/v1", api_key_env="KEY", **settings)
    return openai_embedder(provider, "m", engine, environ={"KEY": SECRET})


def embed(engine: Engine, service: Service, texts: list[str], **settings: Any) -> Any:
    return engine.wait(made(engine, service, **settings).embed(texts), timeout=15)


@pytest.mark.parametrize("packed", [True, False])
def test_vectors_in_the_order_of_the_texts(engine: Engine, service: Service, packed: bool) -> None:
    service.acts = [embedding(packed, lambda data: data[::-1])]
    texts = ["a", "返金は?", "a", "Возврат"]
    assert embed(engine, service, texts).tolist() == [vector(text) for text in texts]
    (seen,) = service.seen
    assert (seen.method, seen.target) == ("POST", "/v1/embeddings")
    assert seen.headers["Authorization"] == f"Bearer {SECRET}"
    assert json.loads(seen.body) == {
        "input": ["a", "返金は?", "Возврат"],
        "model": "m",
        "encoding_format": "base64",
    }


def test_concurrent_callers_share_calls(engine: Engine, service: Service) -> None:
    embedder = made(engine, service)

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(embedder.embed([f"t{n}", f"t{n + 1}"]) for n in range(150)))

    found = engine.wait(all_at_once(), timeout=15)
    assert [pair.tolist() for pair in found] == [[vector(f"t{n}"), vector(f"t{n + 1}")] for n in range(150)]
    sizes = [len(json.loads(seen.body)["input"]) for seen in service.seen]
    assert sum(sizes) == 151
    assert len(sizes) <= 4
    books = engine.usage()["embedding"]
    assert (books["calls"], books["prompt_tokens"]) == (len(sizes), 151)


def test_vectors_are_kept_text_by_text(service: Service, tmp_path: Path) -> None:
    for run, texts in (("1", ["a", "b"]), ("2", ["b", "c"]), ("3", ["c", "a"])):
        engine = Engine(store=tmp_path / "store.db", run_id=run)
        try:
            assert embed(engine, service, texts).tolist() == [vector(text) for text in texts]
        finally:
            engine.close()
    assert [json.loads(seen.body)["input"] for seen in service.seen] == [["a", "b"], ["c"]]
    assert not [file for file in tmp_path.iterdir() if SECRET.encode() in file.read_bytes()]


def test_dimensions_and_headers(engine: Engine, service: Service) -> None:
    provider = ProviderSettings(base_url=service.url + "/v1", headers={"X-Team": "qa"})
    embedder = openai_embedder(provider, "m", engine, dimensions=3, environ={"OPENAI_API_KEY": SECRET})
    engine.wait(embedder.embed(["a"]))
    (seen,) = service.seen
    assert json.loads(seen.body)["dimensions"] == 3
    assert seen.headers["X-Team"] == "qa"
    assert SECRET not in str(seen.headers)  # OpenAI's key is not for other services


def test_base_url_from_the_environment(engine: Engine, service: Service) -> None:
    environ = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": service.url + "/v1"}
    engine.wait(openai_embedder(ProviderSettings(), "m", engine, environ=environ).embed(["a"]))
    assert service.seen[0].headers["Authorization"] == f"Bearer {SECRET}"


@pytest.mark.parametrize(
    "act", [drop, reply("busy", status=429), reply("broken", status=500), reply("down", status=503)]
)
def test_transient_failures_are_retried(
    engine: Engine, service: Service, waits: list[float], act: Act
) -> None:
    service.acts = [act, embedding()]
    assert embed(engine, service, ["a"]).tolist() == [vector("a")]
    assert (len(service.seen), len(waits)) == (2, 1)


def test_retry_after(engine: Engine, service: Service, waits: list[float]) -> None:
    service.acts = [reply("busy", status=429, Retry_After="7"), embedding()]
    embed(engine, service, ["a"])
    assert waits == [7.0]


def test_used_up(engine: Engine, service: Service) -> None:
    service.acts = [reply("down", "text/plain", status=503)]
    with pytest.raises(EmbeddingError, match=r"503 from http.*/v1: down.*3 attempts"):
        embed(engine, service, ["a", "b"])
    assert len(service.seen) == 3


def test_a_used_up_quota_is_not_waited_for(engine: Engine, service: Service) -> None:
    service.acts = [as_json({"error": {"code": "insufficient_quota", "message": "You exceeded"}}, 429)]
    with pytest.raises(EmbeddingError, match=r"429.*You exceeded"):
        embed(engine, service, ["a"])
    assert len(service.seen) == 1


def test_too_slow(engine: Engine, service: Service) -> None:
    service.acts = [service.hang]
    with pytest.raises(EmbeddingError, match=r"no reply.*within 0.15 s.*3 attempts"):
        embed(engine, service, ["a"], timeout=0.15)


def test_one_text_that_the_service_refuses_does_not_fail_the_others(engine: Engine, service: Service) -> None:
    def picky(handler: Handler, seen: Seen) -> None:
        texts = json.loads(seen.body)["input"]
        act = as_json({"error": {"message": "too long"}}, 400) if "bad" in texts else embedding()
        act(handler, seen)

    service.acts = [picky]
    embedder = made(engine, service)

    async def each() -> list[Any]:
        texts = ["a", "b", "bad", "c", "d"]
        return await asyncio.gather(*(embedder.embed([text]) for text in texts), return_exceptions=True)

    found = engine.wait(each(), timeout=15)
    assert [isinstance(item, EmbeddingError) for item in found] == [False, False, True, False, False]
    assert "400" in str(found[2])
    assert "'bad'" in str(found[2])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:1], "1 vectors for 2 texts"),
        (lambda data: data * 2, "4 vectors for 2 texts"),
        (lambda data: [{**entry, "index": 0} for entry in data], r"indexes \[0\]"),
        (lambda data: [{**entry, "embedding": [0.0, 0.0]} for entry in data], "'first'.*zero"),
        (lambda data: [{**entry, "embedding": [float("nan"), 1.0]} for entry in data], "'first'.*NaN"),
        (lambda data: [{**entry, "embedding": "###"} for entry in data], "'first'.*base64"),
        (lambda data: [{**entry, "embedding": "AAAA"} for entry in data], "'first'.*base64"),
        (lambda data: [{**entry, "embedding": None} for entry in data], "'first'.*not a list of numbers"),
        (
            lambda data: [data[0], {**data[1], "embedding": [1.0]}],
            "different lengths, 3 for 'first' and 1 for 'second'",
        ),
        (lambda data: None, "no embeddings"),
        (lambda data: [{"index": 0}], "no embeddings"),
        (lambda data: ["x"], "no embeddings"),
    ],
)
def test_lies(engine: Engine, service: Service, change: Any, says: str) -> None:
    service.acts = [embedding(False, change)]
    with pytest.raises(EmbeddingError, match=says):
        embed(engine, service, ["first", "second"])
    assert len(service.seen) == 1


def test_an_entry_without_index_stands_at_its_place(engine: Engine, service: Service) -> None:
    service.acts = [embedding(False, lambda data: [{"embedding": entry["embedding"]} for entry in data])]
    assert embed(engine, service, ["a", "bb"]).tolist() == [vector("a"), vector("bb")]


def test_a_page_instead_of_a_reply(engine: Engine, service: Service) -> None:
    service.acts = [reply("<html>login</html>", "text/html")]
    with pytest.raises(EmbeddingError, match=r"no embeddings: <html>login"):
        embed(engine, service, ["a"])


@pytest.mark.parametrize("status", [401, 500])
def test_an_echoed_key_is_masked(
    engine: Engine, service: Service, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    said = {"error": {"message": f"Incorrect API key provided: {SECRET}."}}
    service.acts = [as_json(said, status)]
    embedder = made(engine, service)
    with caplog.at_level(logging.DEBUG), pytest.raises(EmbeddingError, match="Incorrect API key") as caught:
        engine.wait(embedder.embed(["a"]))
    shown = [str(caught.value), str(caught.value.raw), repr(embedder), caplog.text]
    for frame, _ in traceback.walk_tb(caught.tb):  # what pytest -l would print
        shown += [repr(value) for name, value in frame.f_locals.items() if name not in ("said", "service")]
    assert not [text for text in shown if SECRET in text]


# Client objects of the openai library


CLIENTS: list[Callable[[str], Any]] = [
    lambda url: openai.OpenAI(base_url=url + "/v1", api_key=SECRET),
    lambda url: openai.AsyncOpenAI(base_url=url + "/v1", api_key=SECRET),
    lambda url: openai.AzureOpenAI(azure_endpoint=url, api_version="2024-10-21", api_key=SECRET),
    lambda url: openai.AsyncAzureOpenAI(azure_endpoint=url, api_version="2024-10-21", api_key=SECRET),
]
CLIENT_IDS = ["sync", "async", "azure", "async azure"]


def through(client: Any, engine: Engine, settings: Settings | None = None, **more: Any) -> Any:
    return embedder_from(OpenAIEmbedder(client, **{"model": "m", **more}), engine, settings)


@pytest.mark.parametrize("client", CLIENTS, ids=CLIENT_IDS)
def test_a_client_is_asked_as_the_service_is(
    client: Callable[[str], Any], service: Service, tmp_path: Path
) -> None:
    for run, texts in (("1", ["a", "返金は?", "a"]), ("2", ["返金は?", "c"])):
        engine = Engine(store=tmp_path / "store.db", run_id=run)
        try:
            embedder = through(client(service.url), engine, dimensions=3, provider="lab")
            assert engine.wait(embedder.embed(texts)).tolist() == [vector(text) for text in texts]
            assert embedder.name == "lab:m"
            assert engine.usage()["embedding"]["calls"] == 1
        finally:
            engine.close()
    first, second = (json.loads(seen.body) for seen in service.seen)
    assert first == {
        "input": ["a", "返金は?"],
        "model": "m",
        "encoding_format": "base64",
        "dimensions": 3,
    }
    assert second["input"] == ["c"]


@pytest.mark.parametrize("client", CLIENTS[:2], ids=CLIENT_IDS[:2])
def test_a_clients_errors_are_sorted(client: Callable[[str], Any], engine: Engine, service: Service) -> None:
    settings = Settings(
        providers={"lab": ProviderSettings(retry=RetrySettings(attempts=2, wait=0, max_wait=1))}
    )
    service.acts = [reply("busy", status=503), embedding()]
    embedder = through(client(service.url), engine, settings, provider="lab")
    assert engine.wait(embedder.embed(["a"])).tolist() == [vector("a")]
    service.acts = [reply(f"no such key {SECRET}", status=401)]
    with pytest.raises(EmbeddingError) as caught:
        engine.wait(embedder.embed(["b"]))
    assert caught.value.code == "http_401"
    assert SECRET not in str(caught.value)
    assert len(service.seen) == 3


def test_a_bare_client_needs_a_model_that_is_named_somewhere(engine: Engine, service: Service) -> None:
    client = CLIENTS[0](service.url)
    with pytest.raises(UsageError, match="OpenAIEmbedder"):
        embedder_from(client, engine, Settings())
    lab = ProviderSettings(base_url=service.url + "/v1", embedding_model="e1")
    assert embedder_from(client, engine, Settings(providers={"lab": lab})).name == "lab:e1"
