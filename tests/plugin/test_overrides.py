"""Every fixture can be overridden, and the helpers use the override that the running test sees."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Project
from tests.servers.rag_server import RagServer

SAMPLE = 'SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."])\n'

GRADE = """
def grade(value):
    return lambda messages: '{"answer_correctness": %s, "groundedness": %s}' % (value, value)
"""


def test_conftest_module_and_class(project: Project, both: list[str]) -> None:
    project.write(
        conftest_py="import pytest\n" + GRADE + "\n@pytest.fixture\ndef judge():\n    return grade(0.1)\n",
        test_a_py="import pytest_ragbench as rb\n"
        + SAMPLE
        + "\ndef test_conftest():\n    assert rb.score('search_rag', SAMPLE).value == 0.1\n",
        test_b_py="import pytest, pytest_ragbench as rb\n"
        + SAMPLE
        + GRADE
        + """
@pytest.fixture(scope="module")
def judge():
    return grade(0.2)

def test_module():
    assert rb.score("search_rag", SAMPLE).value == 0.2

class TestClass:
    @pytest.fixture(scope="class")
    def judge(self):
        return grade(0.3)

    def test_class(self):
        assert rb.score("search_rag", SAMPLE).value == 0.3

def test_argument_wins():
    assert rb.score("search_rag", SAMPLE, judge=grade(0.4)).value == 0.4
""",
    )
    project.run(*both).assert_outcomes(passed=4)


def test_threads_and_async_tests_see_it_too(project: Project, mode: list[str]) -> None:
    project.write(
        test_a_py="import asyncio, threading, pytest, pytest_ragbench as rb\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        + SAMPLE
        + GRADE
        + """
@pytest.fixture
def judge():
    return grade(0.25)

def test_threads():
    with ThreadPoolExecutor(4) as pool:
        scores = list(pool.map(lambda _: rb.score("search_rag", SAMPLE).value, range(8)))
    assert scores == [0.25] * 8

@pytest.mark.asyncio
async def test_sync_helper_in_async_test():
    before = type(asyncio.get_running_loop()).run_until_complete
    assert rb.assert_search_rag(SAMPLE, 0.2).value == 0.25
    assert type(asyncio.get_running_loop()).run_until_complete is before

@pytest.mark.asyncio
@pytest.mark.parametrize("i", [1, 2, 3])
async def test_async_helper(i):
    found = await asyncio.gather(*(rb.ascore("search_rag", SAMPLE) for _ in range(3)))
    assert [score.value for score in found] == [0.25] * 3

@pytest.mark.asyncio
async def test_from_a_thread_of_an_async_test():
    assert (await asyncio.to_thread(rb.score, "search_rag", SAMPLE)).value == 0.25
""",
    )
    project.run(*mode).assert_outcomes(passed=6)


def test_a_test_without_a_judge_builds_none(project: Project, rag: RagServer, both: list[str]) -> None:
    project.write(
        q_csv="question\nHow long?\n",
        test_a_py="import pytest, pytest_ragbench as rb\n"
        + """
@pytest.fixture
def judge():
    raise RuntimeError("built")

@pytest.fixture
def embedder():
    raise RuntimeError("built")

@pytest.mark.rag_questions("q.csv")
def test_no_judge(rag_sample):
    assert rag_sample.answer
    with pytest.raises(rb.UsageError):
        rb.assert_faithfulness(rag_sample, "<=0.5")
    assert rb.score("faithfulness", rag_sample.with_(answer=" ")).value == 0

@pytest.mark.rag_questions("q.csv")
def test_judge(rag_sample):
    with pytest.raises(RuntimeError, match="built"):
        rb.assert_faithfulness(rag_sample, ">=0.5")
""",
    )
    project.run("--rag-url", rag.url, *both).assert_outcomes(passed=2)


def test_callables_stand_in_for_the_service(project: Project, both: list[str]) -> None:
    project.write(
        q_csv="id,question,reference\nq1,How long?,30 days\nq2,And then?,x\n",
        test_a_py="import pytest, pytest_ragbench as rb\n"
        + """
@pytest.fixture(scope="session")
def retriever():
    async def ask(question):
        return {"answer": question.upper(), "contexts": [question, "more"]}
    return ask

@pytest.mark.rag_questions("q.csv")
def test_async(rag_sample):
    assert rag_sample.answer == rag_sample.question.upper()
    assert rag_sample.contexts == (rag_sample.question, "more")
    assert rag_sample.reference

class TestSync:
    @pytest.fixture
    def retriever(self):
        return lambda question: ("text only: " + question, None)

    @pytest.mark.rag_questions("q.csv")
    def test_sync(self, rag_sample):
        assert rag_sample.answer.startswith("text only")
        with pytest.raises(rb.UsageError, match="contexts"):
            rb.assert_faithfulness(rag_sample, ">=0.5")

class TestBroken:
    @pytest.fixture
    def retriever(self):
        def ask(question):
            raise KeyError("index")
        return ask

    @pytest.mark.rag_questions("q.csv")
    def test_broken(self, rag_sample):
        pass
""",
    )
    result = project.run(*both)
    result.assert_outcomes(passed=4, errors=2)
    result.stdout.fnmatch_lines(["*EndpointError: *KeyError*index*"])


def test_embedder_override_and_quality(project: Project, both: list[str]) -> None:
    project.write(
        test_a_py="import pytest, pytest_ragbench as rb\n"
        + """
SAMPLE = rb.RagSample("q", "north", ["c"], reference="east")

@pytest.fixture
def embedder():
    return lambda texts: [{"north": [1.0, 0.0], "east": [0.6, 0.8]}[text] for text in texts]

def test_similarity():
    assert rb.assert_semantic_similarity(SAMPLE, ">=0.6").value == pytest.approx(0.6)

def test_every_miss_is_reported():
    judge = lambda messages: '{"grade": 0.3, "reason": "off topic"}'
    with pytest.raises(rb.QualityFailure) as caught:
        rb.assert_quality(SAMPLE, judge=judge, answer_relevancy_holistic=0.5, semantic_similarity=">=0.9")
    first = str(caught.value).splitlines()[0]
    assert "answer_relevancy_holistic 0.30, wanted >=0.5: off topic" in first
    assert "semantic_similarity 0.60, wanted >=0.9" in first
    assert [score.metric for score in caught.value.scores] == ["answer_relevancy_holistic", "semantic_similarity"]
""",
    )
    project.run(*both).assert_outcomes(passed=2)


def test_helpers_work_without_pytest(project: Project) -> None:
    project.write(
        script_py="""
from pytest_ragbench import RagSample, score

sample = RagSample("How long?", "It takes 30 days.", ["It takes 30 days."])
print(score("faithfulness", sample).value)
"""
    )
    result = project.pytester.runpython(project.path / "script.py")
    assert result.ret == 0
    assert result.stdout.str().strip() == "1.0"


def test_a_run_without_a_judge_needs_none_in_ci(
    project: Project, rag: RagServer, both: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(
        q_jsonl='{"id": "q1", "question": "What is needed?", "relevant_ids": ["nowhere"]}',
        test_bot_py="""
import pytest
from pytest_ragbench import assert_faithfulness, score

@pytest.mark.rag_questions("q.jsonl")
def test_retrieval(rag_sample):
    score("hit_rate@3", rag_sample)

@pytest.mark.rag_questions("q.jsonl")
def test_judged(rag_sample):
    assert_faithfulness(rag_sample, ">=0.5")
""",
    )
    monkeypatch.setenv("CI", "true")
    ways = ["--rag-url", rag.url, "-p", "no:asyncio", *both]
    result = project.run("-k", "retrieval", *ways)
    result.assert_outcomes(passed=1, deselected=0 if "2" in both else 1)
    result.stdout.fnmatch_lines(["ragbench: judge none chosen, *", "service http*"])
    result = project.run("-k", "judged", *ways)
    assert result.ret == 4
    result.stdout.fnmatch_lines(['*no judge is configured*judge = "local"*'])
