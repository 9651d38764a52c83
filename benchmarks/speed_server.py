"""A RAG service and an OpenAI-compatible judge on loopback, with scripted latency and faults.

``python benchmarks/speed_server.py --port 0`` prints its address. ``GET /stats`` gives and resets the
counters, ``GET /peek`` only gives them; ``GET /marks`` tells of each call when it came and when it was
answered whole (seconds of the machine's monotonic clock). ``POST /config`` sets latency (seconds), jitter
(share of it), fault ("429", "500", "hang", "cut", "garbage", "empty", "schema", "mixed" or ""), every (each
n-th judge call meets the fault), share (or so many of them, drawn by what is asked) and for_seconds (0: always).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from typing import Any

from aiohttp import web

DEFAULTS = {
    "latency": 1.0,
    "jitter": 0.0,
    "fault": "",
    "every": 1,
    "share": 1.0,
    "for_seconds": 0.0,
    "retry_after": 1,
}


class Script:
    """What to do with the next call, and what came so far."""

    def __init__(self) -> None:
        self.config: dict[str, Any] = dict(DEFAULTS)
        self.reset()

    def reset(self) -> None:
        self.calls: Counter[str] = Counter()
        self.bodies: Counter[str] = Counter()
        self.under_way: Counter[str] = Counter()
        self.peak: Counter[str] = Counter()
        self.unread = 0
        self.met: Counter[str] = Counter()
        self.first = 0.0
        self.marks: list[dict[str, Any]] = []

    async def __call__(self, request: web.Request, kind: str, body: str, reply: Any) -> web.StreamResponse:
        mark: dict[str, Any] = {"kind": kind, "body": body, "came": time.monotonic(), "answered": None}
        self.marks.append(mark)
        self.calls[kind] += 1
        self.bodies[body] += 1
        self.under_way[kind] += 1
        self.peak[kind] = max(self.peak[kind], self.under_way[kind])
        self.first = self.first or time.monotonic()
        try:
            if kind == "judge" and (fault := await self._fault(body)) is not None:
                return fault
            spread = self.config["latency"] * self.config["jitter"]
            await asyncio.sleep(self.config["latency"] + random.uniform(-spread, spread))
            response = web.json_response(reply)
            await response.prepare(request)
            await response.write_eof()
            mark["answered"] = time.monotonic()
            return response
        except asyncio.CancelledError:  # whoever asked is gone
            self.unread += 1
            raise
        finally:
            self.under_way[kind] -= 1

    async def _fault(self, body: str) -> web.StreamResponse | None:
        name, limit = self.config["fault"], self.config["for_seconds"]
        over = limit and time.monotonic() - self.first > limit
        # The same whenever the same is asked in the same repetition, whatever came in between.
        draw = random.Random(f"{self.bodies[body]} {body}")
        if (
            not name
            or over
            or self.calls["judge"] % self.config["every"]
            or draw.random() >= self.config["share"]
        ):
            return None
        if name == "mixed":
            name = draw.choice(["429", "500", "cut", "garbage", "hang", "schema"])
        self.met[name] += 1
        if name == "hang":
            await asyncio.sleep(600)
        if name == "cut":
            raise Cut
        if name in SAID:
            return web.json_response(completion(SAID[name]))
        headers = {"Retry-After": str(self.config["retry_after"])} if name == "429" else {}
        return web.json_response({"error": {"message": "scripted"}}, status=int(name), headers=headers)


class Cut(Exception):
    """Half of the reply, and then nothing: the connection is closed."""


SAID = {
    "garbage": "I would say it is 0.9 or so, but {",
    "empty": "",
    "schema": '{"opinion": "good", "stars": 4}',
}


def completion(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
    }


def graded(schema: dict[str, Any]) -> dict[str, Any]:
    """A reply that fits what was asked."""
    wanted = schema["properties"]
    if "claims" in wanted:
        return {"claims": ["A receipt is needed to return a product."]}
    if "verdicts" in wanted:
        numbers = wanted["verdicts"]["properties"]
        return {"verdicts": {number: {"reason": "", "chunk": 1, "verdict": True} for number in numbers}}
    if "questions" in wanted:
        texts = ("What is needed to return it?", "What do I bring?", "Is a receipt needed?")
        return {"questions": [{"question": text, "noncommittal": False} for text in texts]}
    return {name: "" if part.get("type") == "string" else 1.0 for name, part in wanted.items()}


def app() -> web.Application:
    script = Script()

    async def ask(request: web.Request) -> web.StreamResponse:
        question = request.query["questions"]
        answer = f"A receipt is needed to return a product ({question})."
        chunks = [{"id": "d1", "text": "A receipt is needed to return a product.", "score": 0.8}]
        return await script(request, "rag", f"rag {question}", {"answer": answer, "chunks": chunks})

    async def judge(request: web.Request) -> web.StreamResponse:
        body = await request.json()
        reply = completion(json.dumps(graded(body["response_format"]["json_schema"]["schema"])))
        try:
            return await script(request, "judge", json.dumps(body["messages"]), reply)
        except Cut:
            half = web.StreamResponse(headers={"Content-Length": "1000"})
            await half.prepare(request)
            await half.write(b'{"choices": [')
            assert request.transport is not None
            request.transport.close()
            return half

    async def stats(_: web.Request) -> web.Response:
        repeated = sum(count - 1 for count in script.bodies.values())
        found = {
            "calls": dict(script.calls),
            "peak": dict(script.peak),
            "repeated": repeated,
            "met": dict(script.met),
        }
        script.reset()
        return web.json_response(found)

    async def peek(_: web.Request) -> web.Response:
        return web.json_response({"calls": dict(script.calls), "out": script.unread})

    async def marks(_: web.Request) -> web.Response:
        return web.json_response(script.marks)

    async def config(request: web.Request) -> web.Response:
        script.config = {**DEFAULTS, **await request.json()}
        return web.json_response(script.config)

    found = web.Application()
    found.router.add_get("/llm/search-rag", ask)
    found.router.add_post("/v1/chat/completions", judge)
    found.router.add_get("/stats", stats)
    found.router.add_get("/peek", peek)
    found.router.add_get("/marks", marks)
    found.router.add_post("/config", config)
    return found


async def serve(host: str, port: int) -> None:
    runner = web.AppRunner(app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, host, port, backlog=1024).start()
    name, bound = runner.addresses[0][:2]
    print(f"http://{name}:{bound}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--host", default="127.0.0.1")
    given = parser.parse_args()
    asyncio.run(serve(given.host, given.port))
