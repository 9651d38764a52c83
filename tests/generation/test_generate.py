"""Questions from documents, with a scripted LLM behind a real HTTP server."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import QuestionFileError, load_questions
from pytest_ragbench.cli.shared import Exit
from pytest_ragbench.generation.documents import passages
from tests.cli.conftest import Cli, cli
from tests.servers.openai_server import OpenAIServer, Reply, error

__all__ = ["cli"]  # the fixture

FACTS = {
    "returns": "Products can be returned within 30 days of the purchase. To return one, bring the receipt to any shop.",
    "delivery": "Delivery takes two days in the city and five days elsewhere. It is free for orders above 50 euros.",
    "warranty": "Every product has a warranty of two years, and batteries have a warranty of six months from purchase.",
}


def topic(text: str) -> str:
    """The first of the topics that the chunks in a prompt are about."""
    return min(FACTS, key=lambda name: text.find(FACTS[name]) % 10**9)


def writer(messages: list[dict[str, str]], schema: Any) -> Any:
    system, user = messages[0]["content"], messages[1]["content"]
    if "other ways to ask" in system:
        question = re.findall(r"<question-\w+>\n(.*?)\n<", user, re.S)[0]
        return Reply(
            json.dumps({"questions": [f"Tell me: {question}", question.upper(), f"Say: {question}"]})
        )
    if '"answerable"' in system:
        unanswerable = "colour" in user
        told = {"reason": "because", "answerable": not unanswerable, "right": "wrong" not in user}
        return Reply(json.dumps(told))
    about = topic(user)
    if "at least two" in system:
        case = {"question": f"How do {about} and the rest go together?", "answer": "So.", "chunks": [1, 2]}
    elif "do not answer it" in system:
        case = {"question": f"What is the colour of {about}?", "answer": "", "chunks": []}
    elif "other words" in system:
        case = {"question": f"In plain words, what about {about}?", "answer": FACTS[about], "chunks": [1]}
    else:
        case = {"question": f"What holds for {about}?", "answer": FACTS[about], "chunks": [1]}
    return Reply(
        json.dumps(
            {"cases": [case, {"question": f"Is this wrong, {about}?", "answer": "wrong", "chunks": [1]}]}
        )
    )


@pytest.fixture
def project(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Cli, OpenAIServer]]:
    for name, text in FACTS.items():
        cli.write(f"docs/{name}.md", f"# {name}\n\n{text}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    monkeypatch.setenv("RAGBENCH_JUDGE", "openai:tiny")
    with OpenAIServer(writer) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield cli, server


def test_a_question_set_from_documents(project: tuple[Cli, OpenAIServer]) -> None:
    cli, server = project
    ran = cli("generate", "docs", "-o", "q.jsonl", "-n", "8", "--store", "s.sqlite", "--json")
    assert ran.code == Exit.OK, ran.err
    questions = load_questions(cli.path / "q.jsonl")
    assert len(questions) == ran.data["questions"] == 8
    by_kind = {
        kind: [each for each in questions if kind in each.tags]
        for kind in ("single", "multi", "paraphrased", "unanswerable")
    }
    assert all(by_kind.values())
    single = by_kind["single"][0]
    about = topic(single.reference or "")
    assert single.reference == FACTS[about]
    assert list(single.relevant_ids or ()) == [f"{about}.md#1"]
    assert single.reference_contexts is not None
    assert FACTS[about] in single.reference_contexts[0]
    assert len(by_kind["multi"][0].relevant_ids or ()) == 2
    unanswerable = by_kind["unanswerable"][0]
    assert (unanswerable.should_abstain, unanswerable.reference, unanswerable.relevant_ids) == (
        True,
        None,
        None,
    )
    assert all(question.metadata["reviewed"] is False for question in questions)
    wrong = [each["why"] for each in ran.data["rejected"] if each["question"].startswith("Is this wrong")]
    assert "the answer is not right: because" in wrong
    assert "one passage is enough" in wrong
    assert not any("wrong" in question.question for question in questions)

    calls = server.calls
    again = cli("generate", "docs", "-o", "again.jsonl", "-n", "8", "--store", "s.sqlite")
    assert (again.code, server.calls) == (Exit.OK, calls), "everything was in the store"
    assert (cli.path / "again.jsonl").read_text() == (cli.path / "q.jsonl").read_text()


def test_near_duplicates_are_left_out(project: tuple[Cli, OpenAIServer]) -> None:
    cli, _ = project
    cli.write("docs/returns2.md", f"# Again\n\n{FACTS['returns']} Please.\n")
    ran = cli("generate", "docs", "-o", "q.jsonl", "--kind", "single", "-n", "9", "--store", "off", "--json")
    assert ran.data["questions"] == 3
    assert any(each["why"] == "asked already" for each in ran.data["rejected"])


def test_variants_of_questions(project: tuple[Cli, OpenAIServer]) -> None:
    cli, _ = project
    cli.write("q.csv", "id,question,reference,relevant_ids\na,How long is it?,30 days,d1\n")
    ran = cli("generate", "q.csv", "-o", "v.jsonl", "--variants", "2", "--store", "off")
    assert ran.code == Exit.OK
    first, second = load_questions(cli.path / "v.jsonl")
    assert [first.id, second.id] == ["a~1", "a~2"]
    assert (first.question, second.question) == ("Tell me: How long is it?", "Say: How long is it?")
    assert (first.reference, list(first.relevant_ids or ())) == ("30 days", ["d1"])
    assert first.metadata["variant_of"] == "a"


def test_the_local_judge_writes_nothing(cli: Cli) -> None:
    cli.write("docs/a.md", FACTS["returns"])
    ran = cli("generate", "docs", "-o", "q.jsonl", "--judge", "local")
    assert (ran.code, "needs an LLM" in ran.err) == (Exit.USAGE, True)
    assert not (cli.path / "q.jsonl").exists()


def test_an_llm_that_fails_is_no_question_set(
    project: tuple[Cli, OpenAIServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    cli, _ = project
    with OpenAIServer([error(401, "Incorrect API key provided")]) as broken:
        monkeypatch.setenv("OPENAI_BASE_URL", broken.url)
        ran = cli("generate", "docs", "-o", "q.jsonl", "-n", "2", "--store", "off")
    assert (ran.code, "401" in ran.err) == (Exit.UNSCORED, True)
    assert not (cli.path / "q.jsonl").exists()


def test_what_is_there_is_not_replaced(project: tuple[Cli, OpenAIServer]) -> None:
    cli, server = project
    cli.write("q.jsonl", "mine\n")
    assert cli("generate", "docs", "-o", "q.jsonl").code == Exit.USAGE
    assert server.calls == 0


def test_passages(cli: Cli) -> None:
    long = "Это предложение повторяется много раз. " * 100
    cli.write("d/a.md", f"# Heading\n\n{FACTS['returns']}\n\n{FACTS['delivery']}\n\n{long}\n\nshort\n")
    cli.write("d/sub/b.txt", "商品は30日以内であれば返品できます。" * 8)
    cli.write("d/c.pdf", "no text")
    found = passages(cli.path / "d")
    assert {passage.document for passage in found} == {"a.md", "sub/b.txt"}
    assert found[0].id == "a.md#1"
    assert FACTS["returns"] in found[0].text
    assert FACTS["delivery"] in found[0].text
    assert all(80 <= len(passage.text) <= 1510 for passage in found)
    text = "".join(passage.text for passage in found if passage.document == "a.md")
    assert text.count("повторяется") == 100, "nothing is lost"
    with pytest.raises(QuestionFileError, match="no documents"):
        passages(cli.path / "nowhere")
    cli.write("empty/a.md", "tiny")
    with pytest.raises(QuestionFileError, match="no passage"):
        passages(cli.path / "empty")


def test_a_japanese_document_is_shorter_by_nature(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(
        "すべての商品の保証期間は2年間です。電池の保証期間は6か月です。修理は無料で、10日以内に完了します。",
        encoding="utf-8",
    )
    assert [passage.id for passage in passages(tmp_path)] == ["a.txt#1"]
