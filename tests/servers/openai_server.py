"""A real HTTP server on the loopback that speaks the chat completions API from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Handler = Callable[[list[dict[str, str]], dict[str, Any] | None], "Reply | str | dict[str, Any]"]


@dataclass(frozen=True)
class Reply:
    """One reply of the server; a text or an object in a script is its ``content``.

    ``content`` a text, or an object that is sent as JSON text; ``body`` replaces the whole completion
    (object or raw text); ``hang``: never replies; ``cut``: sends half of the reply and closes.
    """

    content: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    finish_reason: str | None = "stop"
    message: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    usage: Mapping[str, int] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20}
    )
    delay: threading.Event | None = None
    hang: bool = False
    cut: bool = False

    def text(self, model: str) -> str:
        if isinstance(self.body, str):
            return self.body
        if self.body is not None:
            return json.dumps(self.body, ensure_ascii=False)
        content = self.content
        if isinstance(content, dict):
            content = json.dumps(content, ensure_ascii=False)
        choice = {
            "index": 0,
            "message": {"role": "assistant", "content": content, **self.message},
            "finish_reason": self.finish_reason,
        }
        completion = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": model,
            "choices": [choice],
            "usage": self.usage,
        }
        return json.dumps(completion, ensure_ascii=False)


def error(status: int, message: str, **more: Any) -> Reply:
    """An error in OpenAI's form; ``headers`` goes to the reply, the rest into the error."""
    headers = more.pop("headers", {})
    return Reply(status=status, headers=headers, body={"error": {"message": message, **more}})


class OpenAIServer:
    """``with OpenAIServer([Reply(...), ...]) as server:``; the last reply is repeated.

    ``requests`` holds the JSON bodies received, ``headers`` their headers (names in lower case),
    ``paths`` their paths.
    """

    def __init__(self, script: Handler | Iterable[Any]) -> None:
        self._handler = script if callable(script) else None
        self._queue = [] if callable(script) else list(script)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        server = self

        class Requests(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = 65536  # head and body in one packet: else the client waits for a delayed ACK

            def do_POST(self) -> None:
                server._serve(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def calls(self) -> int:
        return len(self.requests)

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        with self._lock:
            self.requests.append(body)
            self.headers.append({name.casefold(): value for name, value in request.headers.items()})
            self.paths.append(request.path)
            reply: Any = None if self._handler else self._queue[0]
            if len(self._queue) > 1:
                self._queue.pop(0)
        if self._handler is not None:
            schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
            reply = self._handler(body["messages"], schema)
        if not isinstance(reply, Reply):
            reply = Reply(reply)
        if reply.delay is not None:
            reply.delay.wait(30)
        if reply.hang:
            self._closing.wait(60)
            request.close_connection = True
            return
        data = reply.text(str(body.get("model"))).encode()
        request.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(data)))
        request.end_headers()
        request.wfile.write(data[: len(data) // 2] if reply.cut else data)
        if reply.cut:
            request.close_connection = True
