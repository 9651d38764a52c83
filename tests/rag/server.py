"""A loopback HTTP service that replies as told: late, cut off, compressed, lying."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass
class Seen:
    """One request as it came over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True, strict_parsing=True)


def _titled(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.title(): value for name, value in headers.items()}


Act = Callable[["Handler", Seen], None]


def reply(
    body: bytes | str = b"",
    content_type: str | None = "application/json",
    status: int = 200,
    **headers: str,
) -> Act:
    data = body.encode() if isinstance(body, str) else body

    def act(handler: Handler, seen: Seen) -> None:
        handler.send_response(status)
        if content_type is not None:
            handler.send_header("Content-Type", content_type)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return act


def as_json(value: Any, status: int = 200, **headers: str) -> Act:
    return reply(json.dumps(value, ensure_ascii=False), status=status, **headers)


def drop(handler: Handler, seen: Seen) -> None:
    """Close the connection without a word."""
    handler.close_connection = True
    handler.connection.close()


def cut_off(handler: Handler, seen: Seen) -> None:
    """Promise more bytes than are sent."""
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"answer": "ha')
    handler.close_connection = True


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: Service

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        seen = Seen(self.command, self.path, _titled(dict(self.headers)), self.rfile.read(length))
        with self.service.lock:
            self.service.seen.append(seen)
            acts = self.service.acts
            act = acts.pop(0) if len(acts) > 1 else acts[0]
        act(self, seen)

    do_GET = do_POST = do_PUT = _serve

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (OSError, ValueError):  # the client left, or we hung up
            self.close_connection = True

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()

    def log_message(self, *arguments: Any) -> None:
        pass


@dataclass
class Service:
    """``acts`` are performed in turn, the last one for ever."""

    url: str = ""
    acts: list[Act] = field(default_factory=lambda: [as_json({"answer": "yes"})])
    seen: list[Seen] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    release: threading.Event = field(default_factory=threading.Event)

    def hang(self, handler: Handler, seen: Seen) -> None:
        """Say nothing until the test is over."""
        self.release.wait(20)
        handler.close_connection = True

    def drip(self, handler: Handler, seen: Seen) -> None:
        """A byte now and then, never a whole reply."""
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "100000")
        handler.end_headers()
        while not self.release.wait(0.02):
            handler.wfile.write(b" ")


@contextmanager
def serving() -> Iterator[Service]:
    service = Service()
    handler = type("Bound", (Handler,), {"service": service})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield service
    finally:
        service.release.set()
        server.shutdown()
        server.server_close()
        thread.join()
