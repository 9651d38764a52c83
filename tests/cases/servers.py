"""A real HTTP server on the loopback that gives the replies of a case, and keeps what it was sent."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Sequence[Mapping[str, Any]]

_OK = {"status": 200, "json": {"answer": "ok", "chunks": ["ok"]}}


@dataclass
class Served:
    """Where the server is, and the requests that came: ``(method, target, body)``."""

    url: str
    requests: list[tuple[str, str, bytes]] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return len(self.requests)

    @property
    def targets(self) -> list[str]:
        return [target for _, target, _ in self.requests]


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no trouble of the case."""


@contextmanager
def serving(script: Script) -> Iterator[Served]:
    """Replies in turn, the last one for ever.

    A reply has ``status``, ``headers`` and a body (``body_b64``, ``json``, ``text`` or ``body``);
    ``delay_s`` waits before it, ``drip_s`` waits between its bytes, ``hang`` never replies, ``cut``
    closes after half of it, ``repeat_body`` sends the body so many times.
    """
    lock, closing = threading.Lock(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 65536

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with lock:
                number = len(served.requests)
                served.requests.append((self.command, self.path, body))
            reply = script[min(number, len(script) - 1)] if script else _OK
            with suppress(OSError):  # who asked may have given up
                _send(self, reply, closing)

        do_POST = do_PUT = do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = _Quiet(("127.0.0.1", 0), Handler)
    served = Served(f"http://127.0.0.1:{http.server_port}")
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield served
    finally:
        closing.set()
        http.shutdown()
        http.server_close()


def _send(handler: BaseHTTPRequestHandler, reply: Mapping[str, Any], closing: threading.Event) -> None:
    if reply.get("hang") or closing.wait(_seconds(reply, "delay_s", "delay", "delay_seconds")):
        closing.wait(300)
        handler.close_connection = True
        return
    body = body_of(reply)
    handler.send_response(int(reply.get("status", 200)))
    headers = {str(name).casefold(): str(value) for name, value in dict(reply.get("headers") or {}).items()}
    headers.setdefault("content-type", "application/json")
    headers.setdefault("content-length", str(len(body)))
    if headers.get("transfer-encoding", "").casefold() == "chunked":
        headers.pop("transfer-encoding")
    for name, value in headers.items():
        handler.send_header(name, value.encode("utf-8").decode("latin-1"))
    handler.end_headers()
    drip = _seconds(reply, "drip_s", "drip", "drip_seconds", "seconds_per_byte")
    for piece in [body] if not drip else (body[i : i + 1] for i in range(len(body))):
        handler.wfile.write(piece[: len(piece) // 2] if reply.get("cut") else piece)
        handler.wfile.flush()
        if closing.wait(drip):
            break
    handler.close_connection = bool(reply.get("cut") or drip)


def body_of(reply: Mapping[str, Any]) -> bytes:
    """The bytes of a reply's body."""
    if "body_b64" in reply:
        body = base64.b64decode(reply["body_b64"])
    elif "json" in reply:
        body = json.dumps(reply["json"], ensure_ascii=False).encode()
    else:
        body = str(reply.get("text", reply.get("body", ""))).encode()
    return body * int(reply.get("repeat_body", 1))


def _seconds(reply: Mapping[str, Any], *names: str) -> float:
    return float(next((reply[name] for name in names if reply.get(name)), 0.0))
