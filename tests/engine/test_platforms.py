"""Nothing POSIX-only on the way of a run: with those modules out of reach, and without forks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.servers.openai_server import OpenAIServer
from tests.servers.rag_server import rag_server

ROOT = Path(__file__).parent.parent.parent
POSIX_FREE = ROOT / "tests/posix_free.py"

QUESTIONS = [{"id": f"q{number}", "question": f"Why {number}?"} for number in range(8)]
TESTS = f"""
import sys
import pytest
from pytest_ragbench import assert_faithfulness_holistic

@pytest.mark.rag_questions({QUESTIONS!r})
def test_answer(rag_sample):
    assert sys.modules["fcntl"] is None
    assert_faithfulness_holistic(rag_sample, ">=0.5")
"""


def full_marks(messages: list[dict[str, str]], schema: dict[str, Any] | None) -> Any:
    wanted = (schema or {})["properties"]
    return {name: "" if part.get("type") == "string" else 1.0 for name, part in wanted.items()}


@pytest.mark.timeout(150)
@pytest.mark.parametrize("mode", [[], ["-n", "2"], ["-p", "no:xdist"]], ids=["plain", "n2", "no-xdist"])
def test_a_run_without_posix(tmp_path: Path, mode: list[str]) -> None:
    """Each worker is a process that begins so, too."""
    start = tmp_path / "start"
    start.mkdir()
    (start / "sitecustomize.py").write_text(POSIX_FREE.read_text(encoding="utf-8"), encoding="utf-8")
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_rag.py").write_text(TESTS, encoding="utf-8")

    with rag_server() as rag, OpenAIServer(full_marks) as judge:
        (project / "ragbench.toml").write_text(
            f'judge = "lab:m"\n[rag]\nurl = "{rag.url}"\n[providers.lab]\nbase_url = "{judge.url}"\n'
            'api_key_env = "LAB_KEY"\n'
        )
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--ragbench-json=run.json", *mode],
            cwd=project,
            env=dict(os.environ)
            | {"PYTHONPATH": os.pathsep.join([str(start), str(ROOT)]), "LAB_KEY": "sk-lab-1"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(QUESTIONS)} passed" in done.stdout
    assert set(Counter(rag.questions).values()) == {1}
    assert len(judge.requests) == len(QUESTIONS)
