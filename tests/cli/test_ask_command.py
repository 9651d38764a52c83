from __future__ import annotations

from pytest_ragbench.cli.shared import Exit
from tests.cli.conftest import Cli
from tests.servers.rag_server import rag_server

QUESTION = "What do I need to return a product?"


def test_answer_chunks_and_all_scores(cli: Cli) -> None:
    with rag_server() as server:
        ran = cli("ask", QUESTION, "--rag-url", server.url, "--judge", "local")
        told = cli("ask", QUESTION, "--rag-url", server.url, "--json", "--relevant-id", "d1").data
    assert ran.code == Exit.OK
    assert "answer    A receipt is needed to return a product." in ran.out
    assert "[2] 0.79 d2 A receipt is needed" in ran.out
    assert "faithfulness" in ran.out
    assert told["scores"]["faithfulness"]["value"] == 1.0
    assert told["scores"]["mrr"]["value"] == 1.0
    assert "answer_correctness" not in told["scores"], "there is no reference"
    assert server.questions[0] == QUESTION


def test_an_answer_of_ones_own(cli: Cli) -> None:
    args = [
        "ask",
        QUESTION,
        "--answer",
        "You need a passport.",
        "--context",
        "Bring the receipt.",
        "-m",
        "faithfulness",
    ]
    told = cli(*args, "--json").data
    assert list(told["scores"]) == ["faithfulness"]
    assert told["scores"]["faithfulness"]["value"] < 0.1
    assert told["latency"] is None


def test_what_can_be_wrong(cli: Cli) -> None:
    assert "--rag-url" in cli("ask", QUESTION).err
    assert cli("ask", QUESTION, "--context", "x").code == Exit.USAGE
    lacks = cli("ask", QUESTION, "--answer", "x", "-m", "answer_correctness")
    assert (lacks.code, "reference" in lacks.err) == (Exit.USAGE, True)
    with rag_server(lambda question: (200, "text/html", "<html>")) as server:
        assert cli("ask", QUESTION, "--rag-url", server.url).code == Exit.UNSCORED
