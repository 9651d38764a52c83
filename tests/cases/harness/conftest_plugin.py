"""Fixtures for the test files of cases; loaded with ``-p conftest_plugin``."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class _Judge(BaseHTTPRequestHandler):
    """Approves of everything, in the form that it is asked for; connections are kept alive."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65536

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
        content = json.dumps(_approving(schema, schema.get("$defs", {})))
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        data = json.dumps({"object": "chat.completion", "model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def _approving(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> Any:
    """The best value that fits a JSON schema: true, the highest grade, one item."""
    if "$ref" in schema:
        return _approving(defs[schema["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in schema:
        return _approving(schema["anyOf"][0], defs)
    if "enum" in schema:
        return schema["enum"][-1]
    match schema.get("type"):
        case "object":
            return {name: _approving(item, defs) for name, item in schema.get("properties", {}).items()}
        case "array":
            return [_approving(schema.get("items", {}), defs)]
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("maximum", 1)
        case _:
            return "a"


@pytest.fixture(scope="session")
def keepalive_judge_server() -> Iterator[str]:
    """The URL of a judge that keeps connections open and approves of everything."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), _Judge)
    http.daemon_threads = True
    threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()
    http.server_close()
