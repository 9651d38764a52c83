from __future__ import annotations

import pytest

from tests.plugin.conftest import Project
from tests.servers.openai_server import OpenAIServer, error

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


GRADES = """\
import pytest
import pytest_ragbench as rb

@pytest.fixture
def judge():
    def own(messages):
        return '{"answer_correctness": 0.9, "groundedness": 0.2, "error_message": "no such price"}'
    return own

@pytest.fixture
def embedder():
    return lambda texts: [[1.0, len(text)] for text in texts]

SAMPLE = rb.RagSample("What is it?", "It is 5 euros.", ["It is 7 euros."], id="q1", reference="7 euros.")

def test_grade():
    rb.assert_search_rag(SAMPLE, answer_correctness=">=0.7")

def test_near():
    rb.assert_metric("semantic_similarity", SAMPLE, ">=0.1")

def test_grades():
    rb.assert_search_rag(SAMPLE)
"""


def test_who_was_used_and_no_message_beside_what_passes(project: Project, both: list[str]) -> None:
    project.write(test_a_py=GRADES, ragbench_toml='judge = "local"\n')
    result = project.run(
        "--junitxml=j.xml",
        "--ragbench-json=out.json",
        "--ragbench-html=out.html",
        "--ragbench-verbose",
        *both,
    )
    result.assert_outcomes(passed=2, failed=1)
    text = result.stdout.str()
    # The header comes before any fixture; the closing block knows who gave the scores.
    assert "ragbench: judge local, embedder local, store in the pytest cache (as configured)" in text
    closing = text.partition("= RAG quality =")[2]
    [used] = [line for line in closing.splitlines() if line.startswith("judge own, embedder ")]
    assert "embedder local" not in used
    report = project.report()
    assert report["summary"]["judges"] == ["own"]
    page = (project.path / "out.html").read_text(encoding="utf-8")
    assert "used: judge own" in page
    scores = [score for record in report["results"] for score in record["scores"]]
    told = {
        (score["metric"], score["passed"]): score.get("reason", "") + score.get("error_message", "")
        for score in scores
    }
    assert told["search_rag_answer_correctness", True] == ""
    assert "no such price" in told["search_rag_groundedness", False]
    # Of the three grades one failed: its message is the only one in JUnit and on the terminal.
    junit = (project.path / "j.xml").read_text(encoding="utf-8")
    assert junit.count('message="groundedness 0.20, wanted &gt;=0.7: no such price"') == 1
    assert "answer_correctness 0.90, wanted >=0.7: no such price" not in text
    assert "no such price" not in text.partition("passing questions")[2].partition("= RAG quality =")[0]


CHOSEN = """\
import pytest
import pytest_ragbench as rb

SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], reference="30 days.")

def fair(messages):
    return '{"grade": 1.0, "reason": "so"}'

def strict(messages):
    return '{"grade": 0.9, "reason": "so"}'

def test_of_the_call():
    rb.assert_metric("answer_relevancy_holistic", SAMPLE, ">=0.5", judge=fair)

def test_as_configured():
    rb.assert_faithfulness(SAMPLE, ">=0.5")

@pytest.mark.parametrize("judge", [strict])
def test_of_a_fixture(judge):
    rb.assert_metric("answer_relevancy_holistic", SAMPLE, ">=0.5")

def test_without_any():
    rb.assert_metric("token_f1", SAMPLE, ">=0")
"""


@pytest.mark.parametrize(
    ("configured", "chosen", "header", "used"),
    [
        ('judge = "local"', "call or fixture", "judge local, embedder local", "judges fair, strict, "),
        ('judge = "local"', "configured or call", "judge local, embedder local", "judges fair, local, "),
        ('judge = "openai:m"', "any", "judge openai:m, embedder local", ""),
        # The other one refuses.
        (
            'judges = ["local", "openai:m"]',
            "configured",
            "judges local, openai:m, embedder local",
            "judge local, ",
        ),
        (
            'judge = "local"\njudge_cascade = "openai:m"',
            "configured",
            "judge local, cascade openai:m, embedder local",
            "judge local, ",
        ),
    ],
)
def test_the_header_says_what_is_configured_and_the_end_who_gave_the_scores(
    project: Project, monkeypatch: pytest.MonkeyPatch, configured: str, chosen: str, header: str, used: str
) -> None:
    project.write(test_a_py=CHOSEN, ragbench_toml=f'{configured}\nstore = "off"\n')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-FAKE-0001")
    with OpenAIServer(lambda messages, schema: error(401, "no")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = project.run("-k", chosen, "--ragbench-html=out.html")
    text = result.stdout.str()
    assert f"ragbench: {header}, store off (as configured)" in text
    assert f"\n{used}store off\n" in text.partition("= RAG quality =")[2]
    page = (project.path / "out.html").read_text(encoding="utf-8")
    assert f"configured: {header}, store off" in page
    assert ("used: " + used.rstrip(", ") in page) if used else "used: " not in page


WIDE = """\
from pytest_ragbench import RagSample, assert_faithfulness, assert_metric

def test_wide():
    answer = "保証期間は購入日から9年間で、世界中のすべての国で有効です。" * 3 + " It also covers floods in " + "x" * 90
    chunks = ["保証期間は2年間です。" * 9, "Batteries are covered. " * 9]
    sample = RagSample("How long?" * 12, answer, chunks, reference="r")
    assert_metric("faithfulness", sample, ">=0.8", judge="local")
"""


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_evidence_fits_the_terminal(
    project: Project, monkeypatch: pytest.MonkeyPatch, both: list[str], columns: int
) -> None:
    from wcwidth import wcswidth

    monkeypatch.setenv("COLUMNS", str(columns))
    project.write(test_a_py=WIDE)
    result = project.run("--junitxml=j.xml", *both)
    result.assert_outcomes(failed=1)
    evidence = [line for line in result.stdout.str().splitlines() if line.startswith("E ")]
    assert max(map(wcswidth, evidence)) <= columns
    assert max(map(wcswidth, evidence)) > columns - 25  # it is not cut short, either
    joined = "".join(line[1:].replace(" ", "") for line in evidence)
    assert "x" * 90 in joined
    assert joined.count("世界中のすべての国で有効です。") >= 3  # nothing is lost at the breaks
    closing = result.stdout.str().partition("= RAG quality =")[2].partition("short test summary")[0]
    assert all(
        wcswidth(line) <= columns
        for line in closing.splitlines()
        if "xml file" not in line and "==" not in line
    )


LONG = """\
import json
import pytest_ragbench as rb

SAMPLE = rb.RagSample(
    "How long may a customer who lives abroad keep a product before it is sent back?", "Thirty days.",
    ["It takes 30 days." * 5], id="long",
)

def judge(messages):
    text = json.dumps(messages)
    if "verdict" not in text:
        return json.dumps({"claims": ["A customer who lives abroad may keep a product for a very long time indeed."]})
    return json.dumps({"verdicts": [{"claim": 1, "verdict": "no", "reason": "The context says nothing of that."}]})

def test_far():
    rb.assert_faithfulness(SAMPLE, ">=0.8", judge=judge)

def test_judge():
    raise rb.JudgeError("what the test says itself of its judge is broken into lines too\\nand more of it")

def test_quality():
    raise rb.QualityFailure("much too bad\\nand more of it")
"""


def test_long_messages_are_broken_below_what_they_are_of(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    project.write(test_a_py=LONG)
    result = project.run("-p", "no:cacheprovider", "--junitxml=j.xml")
    result.assert_outcomes(failed=2, errors=1)
    lines = [line for line in result.stdout.lines if line.startswith(("E ", "test_a.py:"))]
    assert [line for line in lines if "judge      judge" not in line] == [
        "E       JudgeError: what the test says itself of its judge",
        "E         is broken into lines too",
        "E       and more of it",
        "test_a.py:19: JudgeError",
        "E       faithfulness 0.00, wanted >=0.8: The context says",
        "E         nothing of that.",
        "E         question   How long may a customer who lives",
        "E                    abroad keep a product before it is sent",
        "E                    back?",
        "E         id         long",
        "E         answer     Thirty days.",
        "E         claims     ✗ A customer who lives abroad may keep",
        "E                      a product for a very long time",
        "E                      indeed.   The context says nothing of",
        "E                      that.",
        "E         chunks     [1] It takes 30 days.It takes 30",
        "E                      days.It takes 30 days.It takes 30",
        "E                      days.It takes 30 days.",
        "test_a.py:16: QualityFailure",
        "E       much too bad",
        "E       and more of it",
        "test_a.py:22: QualityFailure",
    ]
    # Where no frame is shown, or all of them in Python's own way, the whole width but the margin is there.
    exact = LONG.replace("what the test says", "x" * 25 + " what the test says")
    project.write(test_a_py=exact)
    native = project.run("-p", "no:cacheprovider", "--tb=native", "-k", "test_judge")
    assert [line for line in native.stdout.lines if line.startswith("E ")] == [
        "E   JudgeError: xxxxxxxxxxxxxxxxxxxxxxxxx what the test says",
        "E     itself of its judge is broken into lines too",
        "E   and more of it",
    ]
    # Outages are said again where the run closes, failures are not.
    [again] = [line for line in result.stdout.lines if line.startswith(("1 test: ", "2 tests: "))]
    assert again.startswith("1 test: what the test says")
    junit = (project.path / "j.xml").read_text(encoding="utf-8")
    assert 'message="failed on setup with &quot;JudgeError: what the test says' in junit
    assert 'message="much too bad"' in junit
