"""Several systems in one run: each test asks each of them, and nothing of theirs is mixed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Project
from tests.servers.rag_server import RagServer, default_answer, rag_server

QUESTIONS = """\
id,question,reference
receipt,What do I need to return a product?,A receipt.
pay,How do I get my money back?,With the receipt.
"""

TESTS = """\
from pytest_ragbench import assert_faithfulness, assert_over

def test_answer(rag_sample):
    assert_faithfulness(rag_sample, ">=0.8")

def test_all(rag_samples):
    assert_over(rag_samples, "faithfulness", ">=0.9")

def test_judge_alone():
    from pytest_ragbench import RagSample

    assert_faithfulness(RagSample(question="Why?", answer="It rains.", contexts=["It rains."]), ">=0.8")
"""

IDS = [
    f"test_bot.py::test_answer[{system}-{id}]" for system in ("small", "large") for id in ("receipt", "pay")
]


def lying(question: str) -> dict[str, Any]:
    return {
        **default_answer(question),
        "answer": "A receipt is needed to return a product. It costs 45 dollars.",
    }


@pytest.fixture
def small() -> Iterator[RagServer]:
    with rag_server() as server:
        yield server


@pytest.fixture
def large() -> Iterator[RagServer]:
    with rag_server(lying) as server:
        yield server


@pytest.fixture
def bot(project: Project, small: RagServer, large: RagServer) -> Project:
    project.write(
        questions_csv=QUESTIONS,
        test_bot_py=TESTS,
        ragbench_toml=f"""\
judge = "local"
questions = "questions.csv"

[retrievers]
small = "{small.url}"
large = {{ url = "{large.url}", timeout = 20 }}
""",
    )
    return project


def test_each_system_is_asked_each_question_and_judged_apart(
    bot: Project, small: RagServer, large: RagServer, mode: list[str]
) -> None:
    result = bot.run(
        "--ragbench-retrievers", "small,large", "--ragbench-json=out.json", "--ragbench-report=matrix=m.html",
        "--ragbench-gate", "faithfulness mean >= 0.8", *mode,
    )  # fmt: skip
    result.assert_outcomes(passed=4, failed=3)
    assert result.ret == 1
    asked = ["How do I get my money back?", "What do I need to return a product?"]
    assert sorted(small.questions) == sorted(large.questions) == asked
    report = bot.report()
    assert report["run"]["systems"] == ["small", "large"]
    systems = {each["test"]: (each.get("system"), each["outcome"]) for each in report["results"]}
    assert systems == {
        IDS[0]: ("small", "passed"),
        IDS[1]: ("small", "passed"),
        IDS[2]: ("large", "failed"),
        IDS[3]: ("large", "failed"),
        "test_bot.py::test_all[small]": ("small", "passed"),
        "test_bot.py::test_all[large]": ("large", "failed"),
        "test_bot.py::test_judge_alone": (None, "passed"),
    }
    assert {each["question_id"] for each in report["results"] if each["question_id"]} == {"receipt", "pay"}
    means = {each.get("system"): each["mean"] for each in report["summary"]["metrics"]}
    assert means == {"small": 1.0, "large": 0.5, None: 1.0}
    assert [(each["gate"], each.get("system"), each["verdict"]) for each in report["gates"]] == [
        ("small: faithfulness mean >= 0.8", "small", "PASS"),
        ("large: faithfulness mean >= 0.8", "large", "FAIL"),
        ("faithfulness mean >= 0.8", None, "PASS"),
    ]
    result.stdout.fnmatch_lines(
        [
            "*systems side by side*",
            "*questions*small*large",
            "faithfulness*2*1.000[*]*0.500",
            "passed*2/2*0/2",
            "*alone best at: small 2, large 0",
        ]
    )
    assert "It costs" in (bot.path / "m.html").read_text(encoding="utf-8")


def test_the_matrix_of_one_report(
    bot: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_ragbench.cli import run as command

    bot.run("--ragbench-retrievers", "large,small", "--ragbench-json=out.json")
    monkeypatch.chdir(bot.path)
    capsys.readouterr()
    assert command(["matrix", "out.json", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [system["name"] for system in told["systems"]] == ["large", "small"]
    assert told["metrics"][0]["means"] == {"large": 0.5, "small": 1.0}
    assert command(["matrix", "a=out.json", "b=out.json"]) == 0
    assert "a: large" in capsys.readouterr().out


def test_a_system_is_held_against_itself(bot: Project, large: RagServer) -> None:
    """The baseline has both the other way round: whoever mixed them would find both changed."""
    bot.run(
        "--ragbench-retrievers", "small,large", "--ragbench-json=before.json", "--ragbench-history=h.sqlite"
    )
    both = "small,large"
    for baseline in (["before.json"], ["before.json", "-n", "2"]):
        again = bot.run(
            "--ragbench-retrievers", both, "--ragbench-json=out.json", "--ragbench-baseline", *baseline
        )
        again.assert_outcomes(passed=4, failed=3)
        compared = {each.get("system"): each for each in bot.report()["baseline"]["metrics"]}
        assert {system: (each["n_pairs"], each["n_changed"]) for system, each in compared.items()} == {
            "small": (2, 0), "large": (2, 0), None: (1, 0),
        }  # fmt: skip
    rule = "faithfulness no worse than baseline"
    other = bot.run(
        "--ragbench-retrievers", f"new={large.url}", "--ragbench-json=out.json", "--ragbench-baseline=before.json",
        "--ragbench-gate", rule, "-k", "answer",
    )  # fmt: skip
    assert other.ret == 1
    [gate, _] = bot.report()["gates"]
    assert gate["verdict"] == "UNDECIDED"
    assert gate["reason"].endswith("before.json is of small, large, and not of new")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "smal",
            "--ragbench-retrievers: rag.retrievers: there is no retriever 'smal'; did you mean 'small'?",
        ),
        ("small,small", "two retrievers are called 'small'"),
        ("x=ftp://y", "x=ftp://y: must be an http:// or https:// URL"),
        ("x=http://a b@c:1", "must not carry a password"),
    ],
)
def test_a_wrong_name_ends_the_run_before_any_call(
    bot: Project, small: RagServer, given: str, said: str
) -> None:
    result = bot.run("--ragbench-retrievers", given)
    assert result.ret == 4
    assert said in result.stderr.str()
    assert small.questions == []


def test_what_failed_of_one_system_is_run_again(bot: Project, small: RagServer, large: RagServer) -> None:
    options = ("--ragbench-retrievers", "small,large", "-p", "cacheprovider")
    bot.run(*options)
    del small.questions[:], large.questions[:]
    again = bot.run(*options, "--lf", "-v")
    again.assert_outcomes(failed=3)
    assert small.questions == []


def test_a_dry_run_counts_each_system(bot: Project, small: RagServer) -> None:
    result = bot.run("--ragbench-retrievers", "small,large", "--ragbench-dry-run")
    result.stdout.fnmatch_lines(["rag: 4 calls"])
    assert small.questions == []
    one = bot.run("--ragbench-retrievers", "small", "--ragbench-dry-run", "--ragbench-tier", "generation")
    one.stdout.fnmatch_lines(["rag: 2 calls"])


def test_a_system_that_is_down_is_not_the_others_outage(bot: Project) -> None:
    with rag_server(lambda question: (500, "text/plain", "out of order")) as broken:
        rows = [f"q{n},What about {n}?,Yes." for n in range(6)]
        bot.write(questions_csv="\n".join(["id,question,reference", *rows, ""]))
        result = bot.run(
            "--ragbench-retrievers",
            f"broken={broken.url},small",
            "-k",
            "answer",
            "--ragbench-json=out.json",
            "--ragbench-lookahead=0",
        )
    outcomes = [(each.get("system"), each["outcome"]) for each in bot.report()["results"]]
    assert sorted(set(outcomes)) == [("broken", "error"), ("small", "passed")]
    assert result.ret == 8


def test_tests_that_bring_a_retriever_of_their_own(bot: Project, small: RagServer) -> None:
    own = """\
import pytest

@pytest.fixture(scope="session")
def retriever():
    return lambda question: ("A receipt is needed.", ["A receipt is needed."])

def test_own(rag_sample):
    assert rag_sample.answer
"""
    bot.write(test_own_py=own)
    alone = bot.run("--ragbench-retrievers", "small", "test_own.py")
    assert alone.ret == 4
    assert (
        "none of small would be asked: 2 tests such as test_own.py::test_own[receipt]" in alone.stderr.str()
    )
    together = bot.run("--ragbench-retrievers", "small")
    together.assert_outcomes(passed=6, warnings=1)
    together.stdout.fnmatch_lines(["*2 tests such as test_own.py::test_own*ask a retriever of their own*"])


def test_a_test_finds_the_system_by_its_fixture_and_yaml_by_its_name(bot: Project) -> None:
    bot.write(
        test_bot_py="""\
def test_name(retriever, request):
    assert retriever.name.startswith("GET http://127.0.0.1")

def test_conversation(rag_conversation):
    assert len(rag_conversation) == 2
""",
        dialogue_csv="id,question,session\na,What is needed?,s\nb,And then?,s\n",
    )
    bot.write(
        **{"one.rag_yaml": "retriever: large\nquestions: [What is needed?]\nexpect: {contains: 45 dollars}\n"}
    )
    bot.write(**{"all.rag_yaml": "questions: [What is needed?]\nexpect: {contains: A receipt}\n"})
    result = bot.run(
        "--ragbench-retrievers",
        "small,large",
        "--ragbench-questions=dialogue.csv",
        "-v",
        "--ragbench-json=out.json",
    )
    result.assert_outcomes(passed=7)
    out = result.stdout.str()
    for name in ("small", "large"):
        assert f"all.rag.yaml::all[{name}-What-is-needed] PASSED" in out
        assert f"test_bot.py::test_conversation[{name}-s] PASSED" in out
    systems = {each["test"]: each.get("system") for each in bot.report()["results"]}
    assert systems["one.rag.yaml::one[What-is-needed-retriever]"] == "large"


def test_names_and_services_given_elsewhere(bot: Project, small: RagServer, large: RagServer) -> None:
    """The configuration chooses, a variable chooses otherwise, and a URL that is typed takes the place of all."""
    file = bot.path / "ragbench.toml"
    file.write_text(file.read_text(encoding="utf-8") + '\n[rag]\nretrievers = ["large"]\n', encoding="utf-8")
    bot.run("-k", "answer").assert_outcomes(failed=2, deselected=2)
    bot.monkeypatch.setenv("RAGBENCH_RAG__RETRIEVERS", "small")
    bot.run("-k", "answer").assert_outcomes(passed=2, deselected=2)
    typed = bot.run("-k", "answer", "--rag-url", large.url, "-v")
    typed.assert_outcomes(failed=2, deselected=2)
    assert "test_answer[receipt]" in typed.stdout.str()
