"""A judge from a file in a run with workers: the controller runs the model, once."""

from __future__ import annotations

import os

import pytest

from tests.judge.test_gguf import gguf
from tests.plugin.conftest import Project

# In the place of llama.cpp's bindings: a server in Python, that says in which process it was started.
LLAMA = """
import json, os, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

GRADE = {"reason": "so", "grade": 0.9}

class Requests(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": json.dumps(GRADE)}
        data = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        pass

def CommonParams():
    return SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())

class Server:
    def __init__(self, params):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Requests)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{server.server_address[1]}"
        with open("started.txt", "a") as file:
            file.write(os.environ.get("PYTEST_XDIST_WORKER", "controller") + "\\n")
"""

TEST = """
import pytest
from pytest_ragbench import RagSample, assert_metric

@pytest.mark.parametrize("n", range(6))
def test_it(n):
    assert_metric("answer_relevancy_holistic", RagSample(f"Question {n}?", f"Answer {n}."), ">=0.8")
"""


@pytest.mark.parametrize("workers", [["-n", "2"], ["-p", "no:xdist"]], ids=["n2", "no-xdist"])
def test_the_controller_runs_the_model_once(project: Project, workers: list[str]) -> None:
    bindings = project.path / "bindings"
    bindings.mkdir()
    (bindings / "xllamacpp.py").write_text(LLAMA, encoding="utf-8")
    known = os.environ.get("PYTHONPATH", "")
    project.monkeypatch.setenv("PYTHONPATH", f"{bindings}{os.pathsep}{known}" if known else str(bindings))
    gguf(project.path / "judge.gguf")
    project.write(ragbench_toml='judge = "gguf:judge.gguf"', test_a_py=TEST)
    result = project.run("--ragbench-json=out.json", *workers)
    result.assert_outcomes(passed=6)
    assert (project.path / "started.txt").read_text() == "controller\n"
    scores = [score for each in project.report()["results"] for score in each["scores"]]
    assert {score["judge"] for score in scores} == {"gguf:judge"}
    assert str(project.path / "judge.gguf") not in (project.path / "out.json").read_text(encoding="utf-8")
