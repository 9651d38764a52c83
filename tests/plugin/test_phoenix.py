"""A run in a real Phoenix server: sent, read back by its API, and read again as questions.

``RAGBENCH_TEST_PHOENIX=DIRECTORY pytest -m phoenix tests/plugin`` says where its virtual environment is, or is to be
made: arize-phoenix takes three minutes and 850 MB, so a run without the variable skips these tests.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.cli import run as command
from pytest_ragbench.traces.reading import questions_from_traces
from tests.plugin.conftest import Project
from tests.servers.openai_server import OpenAIServer, error
from tests.servers.rag_server import RagServer

pytestmark = pytest.mark.phoenix
VERSION = "20.26.1"


class Phoenix:
    """A server in a process of its own, with an empty database."""

    def __init__(self, programs: Path, folder: Path) -> None:
        ports = []
        for _ in range(2):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                ports.append(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{ports[0]}"
        told = {
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(ports[0]),
            "PHOENIX_GRPC_PORT": str(ports[1]),
            "PHOENIX_TELEMETRY_ENABLED": "false",
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._log = (folder / "phoenix.log").open("wb")
        self.process = subprocess.Popen(
            [programs / "phoenix", "serve"], env={**inherited, **told}, stdout=self._log, stderr=self._log
        )
        for _ in range(600):
            assert self.process.poll() is None, (folder / "phoenix.log").read_text(errors="replace")
            try:
                urllib.request.urlopen(self.url + "/healthz", timeout=2).close()
                break
            except OSError:
                time.sleep(0.2)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.url + path, timeout=10) as reply:
            return json.load(reply)

    def until(self, path: str, count: int) -> list[dict[str, Any]]:
        """What is under ``path`` once so many are stored: the server answers before it has."""
        for _ in range(100):
            found: list[dict[str, Any]] = self.get(path)["data"]
            if len(found) >= count:
                return found
            time.sleep(0.2)
        raise AssertionError(f"{len(found)} of {count} under {path}")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        self._log.close()


@pytest.fixture(scope="module")
def programs() -> Path:
    given = os.environ.get("RAGBENCH_TEST_PHOENIX")
    if not given:
        pytest.skip("RAGBENCH_TEST_PHOENIX names no directory for Phoenix' environment")
    found = Path(given) / ("Scripts" if os.name == "nt" else "bin")
    if not (found / "phoenix").exists():
        subprocess.run([sys.executable, "-m", "venv", given], check=True)
        subprocess.run([found / "pip", "install", "-q", f"arize-phoenix=={VERSION}"], check=True)
    return found


@pytest.fixture(scope="module")
def phoenix(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Phoenix]:
    server = Phoenix(programs, tmp_path_factory.mktemp("phoenix"))
    yield server
    server.stop()


TESTS = """\
import os, pytest, signal
from pytest_ragbench import assert_metric

@pytest.mark.rag_questions([{"id": f"q{n}", "question": f"What do I need to return product {n}?"} for n in range(4)])
def test_answer(rag_sample):
    assert_metric("answer_relevancy_holistic", rag_sample, ">=0.5")
    if rag_sample.id == "q1" and "PHOENIX_PID" in os.environ:
        os.kill(int(os.environ["PHOENIX_PID"]), getattr(signal, os.environ["PHOENIX_SIGNAL"]))
"""
PRICES = (
    '[providers.openai.prices]\n"m" = { input = 1.0, output = 2.0 }\n[providers.openai.retry]\nattempts = 1\n'
)


def grade(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Any:
    text = json.dumps(messages)
    if "product 2?" in text:
        return error(400, "this question is not for me")
    return {"grade": 0.2 if "product 3?" in text else 0.9, "reason": "so it is", "error_message": ""}


@pytest.fixture
def bot(project: Project, rag: RagServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    project.write(test_bot_py=TESTS, ragbench_toml=PRICES)
    with OpenAIServer(grade) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test-FAKE-0000-abcd")
        monkeypatch.setenv("RAGBENCH_JUDGE", "openai:m")
        monkeypatch.setenv("RAGBENCH_RAG_URL", rag.url)
        yield project


def run(bot: Project, phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch, *args: str) -> pytest.RunResult:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", phoenix.url)
    return bot.run("--ragbench-otel", "--ragbench-phoenix", phoenix.url, "--ragbench-json=out.json", *args)


def test_what_was_sent_is_there(
    bot: Project, phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told = run(bot, phoenix, monkeypatch, "-n", "2")
    told.assert_outcomes(passed=2, failed=1, errors=1)
    told.stdout.fnmatch_lines(
        [
            f"otel: 1[67] spans delivered to {phoenix.url}/v1/traces",
            "phoenix: 4 of 4 questions and 4 of 4 evaluations (1 of them errors) and 4 of 4 annotations of spans "
            f"delivered to {phoenix.url}",
        ]
    )
    samples = {each["samples"][0]["id"]: each["samples"][0] for each in bot.report()["results"]}

    spans = phoenix.until("/v1/projects/ragbench/spans?limit=100", 16)
    assert {span["context"]["trace_id"] for span in spans if span["name"] == "ragbench question"} == {
        sample["trace_id"] for sample in samples.values()
    }
    asked = [span for span in spans if span["span_kind"] == "LLM"]
    # What a refusal said is kept where the call was made in the test's own process.
    calls = [span["attributes"] for span in asked if span["status_code"] == "OK"]
    assert len(calls) == 3
    for call in calls:
        assert (call["llm.model_name"], call["llm.provider"]) == ("m", "openai")
        assert (call["llm.token_count.prompt"], call["llm.token_count.completion"]) == (100, 20)
        assert call["llm.cost.total"] == pytest.approx(140e-6)
        messages = json.dumps({name: each for name, each in call.items() if "input_messages" in name})
        assert "What do I need to return product" in messages
        assert "so it is" in call["output.value"]
    [lost] = [
        span
        for span in spans
        if span["name"] == "answer_relevancy_holistic" and span["status_code"] == "ERROR"
    ]
    assert "gen_ai.evaluation.score.value" not in lost["attributes"]
    [found] = [
        span
        for span in spans
        if span["span_kind"] == "RETRIEVER" and span["context"]["trace_id"] == samples["q0"]["trace_id"]
    ]
    assert found["attributes"]["retrieval.documents.1.document.score"] == 0.79

    ids = "&".join(f"span_ids={span['context']['span_id']}" for span in spans)
    notes = phoenix.until(f"/v1/projects/ragbench/span_annotations?{ids}", 4)
    about = {span["context"]["span_id"]: span["attributes"].get("input.value") for span in spans}
    assert {about[note["span_id"]]: (note["result"]["score"], note["result"]["label"]) for note in notes} == {
        "What do I need to return product 0?": (0.9, "pass"),
        "What do I need to return product 1?": (0.9, "pass"),
        "What do I need to return product 2?": (None, "error"),
        "What do I need to return product 3?": (0.2, "fail"),
    }
    assert {note["annotator_kind"] for note in notes} == {"LLM"}

    # Sent again from the file, it is another experiment over the same dataset, and no annotation is doubled.
    assert command(["export", str(bot.path / "out.json"), "--to", "phoenix", "--url", phoenix.url]) == 0
    [dataset] = phoenix.get("/v1/datasets")["data"]
    experiments = phoenix.get(f"/v1/datasets/{dataset['id']}/experiments")["data"]
    assert len(experiments) == 2
    for experiment in experiments:
        runs = phoenix.get(f"/v1/experiments/{experiment['id']}/json")
        assert {each["input"]["question"]: each["trace_id"] for each in runs} == {
            sample["question"]: sample["trace_id"] for sample in samples.values()
        }
        for each in runs:
            assert each["output"]["answer"] == "A receipt is needed to return a product."
            [evaluation] = each["annotations"]
            if "product 2?" in each["input"]["question"]:
                assert evaluation["score"] is None
                assert "this question is not for me" in evaluation["error"]
            else:
                assert evaluation["error"] is None
                assert evaluation["score"] == (0.2 if "product 3?" in each["input"]["question"] else 0.9)
    assert len(phoenix.until(f"/v1/projects/ragbench/span_annotations?{ids}", 4)) == 4

    files = [tmp_path / name for name in ("spans.json", "otlp.json", "notes.json")]
    paths = ("spans?limit=100", "spans/otlpv1?limit=100", f"span_annotations?{ids}")
    for file, path in zip(files, paths, strict=True):
        file.write_text(json.dumps(phoenix.get(f"/v1/projects/ragbench/{path}")))
    for file in files[:2]:
        for given in ([file], [files[2], file]):
            [question] = questions_from_traces(*given)
            assert question.question == "What do I need to return product 3?"
            assert question.metadata["answer_then"] == "A receipt is needed to return a product."
            assert len(question.metadata["contexts_then"]) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signals")
def test_a_server_that_hangs_or_ends_midway_costs_no_test(
    bot: Project, phoenix: Phoenix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PHOENIX_PID", str(phoenix.process.pid))
    for sent in ("SIGSTOP", "SIGKILL"):
        monkeypatch.setenv("PHOENIX_SIGNAL", sent)
        told = run(bot, phoenix, monkeypatch)
        told.assert_outcomes(passed=2, failed=1, errors=1)
        assert told.ret == 1
        told.stdout.fnmatch_lines(
            [
                "otel: * spans delivered to *, * not delivered: *",
                "phoenix: 0 of 4 questions and 0 of 4 evaluations (0 of them errors) and 0 of 4 annotations of "
                "spans delivered to *; the rest was not: *",
            ]
        )
        phoenix.process.send_signal(signal.SIGCONT)
