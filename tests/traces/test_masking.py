"""Keys that stand in a question or an answer do not leave the machine with a run that is sent."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from pytest_ragbench.traces.masking import masked
from pytest_ragbench.traces.phoenix import send_experiment
from tests.report_html.pages import a_report, a_result, a_score

KEY = "planted-secret-0001"


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", KEY)


def test_all_texts_of_a_report_are_masked_and_nothing_else_changes() -> None:
    score = a_score(
        0.5, reason=f"saw {KEY}", evidence=[{"text": KEY, "ok": False}], details={"seen": {KEY: [KEY]}}
    )
    texts = {"answer": f"It is {KEY}.", "contexts": [KEY, "It is 13."], "tags": [KEY]}
    report = a_report([a_result("a", 0.5, scores=[score], **texts), a_result("b", 0.9)], warnings=[KEY])
    found = masked(report)
    assert KEY in repr(report)
    assert repr(found) == repr(report).replace(KEY, "***")
    assert found.results[1] is report.results[1]


def test_phoenix_gets_no_key() -> None:
    bodies: list[str] = []

    class Refusing(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self.send_response(400)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Refusing) as http:
        threading.Thread(target=http.handle_request, daemon=True).start()
        report = a_report([a_result("a", 0.5, question=f"Is {KEY} right?", reference=KEY)])
        told = send_experiment(report, f"http://127.0.0.1:{http.server_port}")
    assert "replied 400" in told.problem
    assert "Is *** right?" in bodies[0]
    assert KEY not in bodies[0]
