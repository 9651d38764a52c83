from __future__ import annotations

import pytest

from tests.plugin.conftest import Project

TESTS = """\
import pytest
from pytest_ragbench import RagSample, assert_metric

@pytest.mark.parametrize("answer", ["чек", "レシート"])
def test_answer(answer):
    sample = RagSample("返品には何が必要ですか? " * 5, answer, reference="чек", id=answer)
    assert_metric("exact_match", sample, 1)
"""


def test_a_narrow_terminal_and_evidence_of_passing_questions(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wcwidth import wcswidth

    monkeypatch.setenv("COLUMNS", "40")
    project.write(test_a_py=TESTS)
    result = project.run("-q", "--tb=no", "--no-header", "--ragbench-verbose")
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    shown = text[text.index("RAG quality: passing") :]
    assert "  exact_match 1.00, wanted" in shown
    quality = shown[shown.index("= RAG quality =") :].splitlines()[1:]
    head = quality[: quality.index("the worst questions:") + 3]
    assert all(wcswidth(line) <= 40 for line in head)
    assert head[-1].startswith("    [レシート] 返品には")
    assert "\x1b" not in text
