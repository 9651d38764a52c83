"""The start page and the README, followed step by step in an empty folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.test_code_blocks import ROOT, blocks
from tests.servers.rag_server import RagServer, rag_server

PAGE = ROOT / "docs" / "index.md"
PROGRAMS = {"pytest": ["-m", "pytest"], "ragbench": ["-m", "pytest_ragbench.cli"]}


@pytest.fixture
def service() -> Iterator[RagServer]:
    def answer(question: str) -> dict[str, object]:
        return {"answer": "Every product has a warranty of two years.",
                "chunks": [{"id": "warranty", "text": "Every product has a warranty of two years."}]}  # fmt: skip

    with rag_server(answer) as server:
        yield server


def follow(block: str, folder: Path) -> list[tuple[int, str]]:
    """Each line of a block: exit code and output."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("RAGBENCH_", "OPENAI_", "PYTEST_"))
    }
    found = []
    for line in block.splitlines():
        program, *options = shlex.split(line)
        command = [sys.executable, *PROGRAMS[program], *options]
        done = subprocess.run(
            command, cwd=folder, env=environ | {"CI": ""}, capture_output=True, text=True, check=False
        )
        found.append((done.returncode, done.stdout + done.stderr))
    return found


@pytest.mark.parametrize("with_pyproject", [False, True])
def test_each_step_does_what_the_page_says(tmp_path: Path, service: RagServer, with_pyproject: bool) -> None:
    if with_pyproject:
        (tmp_path / "pyproject.toml").write_text('[project]\nname = "bot"\nversion = "1"\n')
    install, begin, check, judge = (text for _, text in blocks(PAGE, "bash"))
    [(_, url)], [(_, tests)] = blocks(PAGE, "toml"), blocks(PAGE, "python")
    assert "pip install" in install
    assert "OPENAI_API_KEY" in judge

    assert [code for code, _ in follow(begin, tmp_path)] == [0, 0]
    (healthy, doctor), (answered, said) = follow(check, tmp_path)  # the stand-in's, too
    assert (healthy, answered) == (0, 0), doctor + said
    assert "✓ service" in doctor
    assert "two years" in said
    [(code, output)] = follow("pytest", tmp_path)
    assert (code, service.questions) == (0, []), output

    folder = tmp_path / "tests" / "rag"
    settings = (folder / "ragbench.toml").read_text(encoding="utf-8")
    lines = url.replace("http://localhost:8080", service.url).splitlines()
    [replaced] = re.findall(r'^retriever = "stand_in:answer".*$', settings, re.MULTILINE)
    (folder / "ragbench.toml").write_text(settings.replace(replaced, lines[-1]), encoding="utf-8")
    (folder / "stand_in.py").unlink()
    (folder / "test_rag.py").write_text(tests, encoding="utf-8")
    (healthy, doctor), (answered, said) = follow(check, tmp_path)
    assert (healthy, answered) == (0, 0), doctor + said
    assert "two years" in said

    # Two of the three questions are about something else than what this service always says.
    service.questions.clear()
    [(code, output)] = follow("pytest", tmp_path)
    assert code == 1, output
    assert "RAG quality" in output
    assert len(set(service.questions)) == 3


def test_the_readme_leads_from_the_clone_to_a_failing_answer_of_your_own_service(
    tmp_path: Path, service: RagServer
) -> None:
    page = ROOT / "README.md"
    [steps] = [text for _, text in blocks(page, "console") if "ragbench init" in text]
    [questions] = [text for _, text in blocks(page, "text") if text.startswith("question,")]
    [tests] = [
        text for _, text in blocks(page, "python") if "test_retrieval" in text and "should_abstain" in text
    ]
    enter, *begin = [line.removeprefix("$ ").partition(" #")[0] for line in steps.splitlines()]
    # The clone has tests of its own, in tests/rag, too.
    assert " cd ../" in enter
    begin = [line.replace("http://localhost:8080", service.url) for line in begin]
    written, healthy, _ = follow("\n".join(begin), tmp_path)
    assert (written[0], healthy[0]) == (0, 0), written[1] + healthy[1]
    folder = tmp_path / "tests" / "rag"
    (folder / "questions.csv").write_text(questions, encoding="utf-8")
    (folder / "test_rag.py").write_text(tests, encoding="utf-8")
    [(_, settings)] = blocks(page, "toml")
    with (folder / "ragbench.toml").open("a", encoding="utf-8") as file:
        file.write(settings)
    [(code, output)] = follow(begin[-1], tmp_path)
    assert code == 1, output
    failed = re.findall(r"^FAILED .*::(\w+(?:\[\w+)?)", output, re.MULTILINE)
    # It always says how long the warranty is, which is right for the first question only.
    assert failed == ["test_answer[Within", "test_answer[Who", "test_retrieval"]
