from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_ragbench.cli.shared import Exit
from tests.cli.conftest import Cli
from tests.servers.openai_server import OpenAIServer, Reply, error
from tests.servers.rag_server import rag_server

_PLUGINS = [part for name in ("hypothesispytest", "anyio", "cov", "asyncio") for part in ("-p", f"no:{name}")]


@pytest.mark.parametrize("lang", ["en", "ru", "ja"])
def test_what_init_writes_runs_at_once(cli: Cli, lang: str) -> None:
    ran = cli("init", "rag", "--lang", lang, "--json")
    assert [Path(name).name for name in ran.data["written"]] == [
        "ragbench.toml",
        "questions.jsonl",
        "test_rag.py",
        "stand_in.py",
    ]
    command = [sys.executable, "-m", "pytest", *_PLUGINS, "rag"]
    done = subprocess.run(command, cwd=cli.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_init_leaves_what_is_there(cli: Cli) -> None:
    cli.write("ragbench.toml", "# mine\n")
    ran = cli("init", "--rag-url", "http://localhost:8080")
    assert "left     ragbench.toml" in ran.out
    assert (cli.path / "ragbench.toml").read_text() == "# mine\n"
    assert not (cli.path / "stand_in.py").exists()
    cli("init", "--rag-url", "http://localhost:8080", "--force")
    assert 'url = "http://localhost:8080"' in (cli.path / "ragbench.toml").read_text()


def test_init_refuses_a_wrong_address_before_it_writes(cli: Cli) -> None:
    ran = cli("init", "--rag-url", "localhost:8080")
    assert (ran.code, "rag.url" in ran.err) == (Exit.USAGE, True)
    assert not list(cli.path.iterdir())


def states(ran_data: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check["name"]: check["state"] for check in ran_data["checks"]}


def test_doctor_of_a_project_that_is_well(cli: Cli) -> None:
    cli("init")
    with rag_server() as server:
        ran = cli("doctor", "--rag-url", server.url, "--json")
    assert ran.code == Exit.OK
    assert set(states(ran.data).values()) == {"ok"}
    assert server.questions == ["What can you help me with?"]


def test_doctor_asks_what_stands_in_place_of_a_service(cli: Cli) -> None:
    cli.write("ragbench.toml", '[rag]\nretriever = "command:echo Two years."\n')
    ran = cli("doctor", "--json")
    [service] = [check for check in ran.data["checks"] if check["name"] == "service"]
    assert service["state"] == "warning"
    assert service["said"].endswith("answer of 10 letters, no chunks, without ids")
    ran = cli("doctor", "--offline", "--json")
    [service] = [check for check in ran.data["checks"] if check["name"] == "service"]
    assert service["said"] == "command:echo Two years.: not called (--offline)"


def test_doctor_says_what_to_do(cli: Cli) -> None:
    ran = cli("doctor", "--offline")
    assert ran.code == Exit.OK
    assert "ragbench init" in ran.out
    cli.write("ragbench.toml", 'jduge = "local"\n')
    ran = cli("doctor", "--json")
    assert ran.code == Exit.USAGE
    assert "did you mean 'judge'" in ran.data["checks"][0]["said"]
    cli.write("ragbench.toml", '[thresholds]\nfaithfulness = "<=0.8"\n')
    ran = cli("doctor", "--offline", "--json")
    assert (ran.code, states(ran.data)["thresholds"]) == (Exit.USAGE, "failed")


def test_doctor_finds_a_damaged_store(cli: Cli) -> None:
    cli.write("store.sqlite", "no database, whatever its name says; " * 100)
    ran = cli("doctor", "--offline", "--store", "store.sqlite", "--json")
    assert (ran.code, states(ran.data)["store"]) == (Exit.USAGE, "failed")


@pytest.fixture
def provider(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("RAGBENCH_JUDGE", "openai:tiny")
    return cli


def test_doctor_asks_the_judge(provider: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def reply(messages: object, schema: object) -> Reply:
        if schema:
            return error(400, "response_format json_schema is not supported")
        return Reply('{"abstains": true, "reason": "it says so"}')

    with OpenAIServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = provider("doctor", "--json")
    assert ran.code == Exit.OK
    assert states(ran.data)["judge"] == "ok"
    assert states(ran.data)["JSON schema"] == "warning"
    assert "sk-test" not in ran.out


def test_doctor_names_a_refused_key(provider: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIServer([error(401, "Incorrect API key provided")]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ran = provider("doctor")
    assert ran.code == Exit.UNSCORED
    assert "✗ judge" in ran.out
    assert "→ the key is refused" in ran.out


def test_doctor_misses_a_key_without_a_call(provider: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    ran = provider("doctor", "--json")
    assert (ran.code, states(ran.data)["judge"]) == (Exit.USAGE, "failed")
