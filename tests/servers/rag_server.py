"""A RAG service on loopback that does what a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Answer = Callable[[str], dict[str, Any] | tuple[int, str, str]]
"""Question -> JSON body, or (status, content type, text)."""


@dataclass
class RagServer:
    url: str
    questions: list[str] = field(default_factory=list)


def default_answer(question: str) -> dict[str, Any]:
    return {
        "answer": "A receipt is needed to return a product.",
        "chunks": [
            {"id": "d1", "text": "Delivery takes two days.", "score": 0.83},
            {"id": "d2", "text": "A receipt is needed to return a product.", "score": 0.79},
        ],
    }


@contextmanager
def rag_server(answer: Answer = default_answer) -> Iterator[RagServer]:
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
            question = query.get("questions", [""])[0]
            with lock:
                server.questions.append(question)
            reply = answer(question)
            if isinstance(reply, tuple):
                status, kind, text = reply
            else:
                status, kind, text = 200, "application/json", json.dumps(reply, ensure_ascii=False)
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server = RagServer(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
