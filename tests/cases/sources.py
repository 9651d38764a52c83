"""Test files as a user would write them, for cases that tell theirs in words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Files = Mapping[str, str]

PRELUDE = """\
import json
import pytest
import pytest_ragbench as rb

SAMPLE = rb.RagSample("How long?", "It takes 30 days.", ["It takes 30 days."], id="long")


def says(grade):
    def fake_judge(messages):
        return json.dumps({"answer_correctness": grade, "groundedness": grade, "error_message": ""})

    return fake_judge

"""

PASSING: Files = {
    "test_case.py": PRELUDE
    + """
def test_passes():
    judge = says(1.0)
    judge.ragbench_key = {"model": "fake"}
    rb.assert_search_rag(SAMPLE, judge=judge)
"""
}

JUDGED: Files = {
    "test_case.py": PRELUDE
    + """
def test_answer(judge, request):
    known = {"judge": judge, "settings": request.config}
    rb.assert_search_rag(SAMPLE)


def test_faithful(judge):
    rb.assert_faithfulness(SAMPLE, ">=0.8")
"""
}

_ASYNC_CALLS_SYNC = """
import asyncio

REPLIES = ['{"claims": ["It takes 30 days."]}', '{"verdicts": {"1": {"verdict": true}}}']


class InTurn:
    def __init__(self):
        self.turn = 0

    def __call__(self, messages):
        self.turn += 1
        return REPLIES[min(self.turn, 2) - 1]


@pytest.mark.asyncio
async def test_async():
    loop = asyncio.get_running_loop()
    before = type(loop).run_until_complete
    rb.HELPER(SAMPLE, THRESHOLD, judge=InTurn())
    assert type(loop).run_until_complete is before
    await asyncio.sleep(0)
"""

EMPTY_PARAMETRISATION: Files = {
    "test_case.py": PRELUDE
    + """
@pytest.mark.rag_questions("questions.jsonl")
def test_none(rag_sample):
    rb.assert_search_rag(rag_sample, judge=says(1.0))
""",
    "questions.jsonl": "",
}

_NUMBERS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
_OUTCOMES = {
    "passing": "pass",
    "failing": "quality_failure",
    "misconfigured": "usage_error",
    "judge-error": "judge_error",
    "endpoint-error": "endpoint_error",
}
_COUNTED = re.compile(rf"({'|'.join(_NUMBERS)}|\d+) ({'|'.join(_OUTCOMES)})(?: tests?)?")
_ASYNC = re.compile(r"async test that calls the sync helper (assert_faithfulness)\(sample, '([<>=.\d]+)'\)")


def for_words(words: str) -> Files | None:
    """The project for a description in words, all of which are read; None where some are not understood."""
    text = words.strip().rstrip(".").casefold()
    if match := _ASYNC.fullmatch(text):
        code = _ASYNC_CALLS_SYNC.replace("HELPER", match[1]).replace("THRESHOLD", repr(match[2]))
        return {"test_case.py": PRELUDE + code}
    if re.fullmatch(r"(?:a|one) test (?:with|of) an empty parametri[sz]ation", text):
        return EMPTY_PARAMETRISATION
    parts = [_COUNTED.fullmatch(part) for part in re.split(r" and |, ", text)]
    if not all(parts):
        return None
    counted = [(_OUTCOMES[part[2]], _NUMBERS.get(part[1]) or int(part[1])) for part in parts if part]
    if counted == [("pass", 1)]:
        return PASSING  # whose judge may be kept in the store
    return of_outcomes([outcome for outcome, number in counted for _ in range(number)])


_TESTS = {
    "pass": "    rb.assert_search_rag(SAMPLE, judge=says(0.9))\n",
    "quality_failure": "    rb.assert_search_rag(SAMPLE, judge=says(0.2))\n",
    "judge_error": "    rb.assert_search_rag(SAMPLE, judge=down)\n",
    "usage_error": '    rb.assert_search_rag(SAMPLE, "<=0.7", judge=says(0.9))\n',
    "embedding_error": (
        '    rb.assert_semantic_similarity(SAMPLE.with_(reference="r"), ">=0.5", embedder=lambda texts: [[0.0]] * 2)\n'
    ),
    "not_applicable": "    rb.assert_faithfulness(SAMPLE, '>=0.8', judge=lambda messages: '{\"claims\": []}')\n",
    "endpoint_error": "    raise AssertionError('not reached: the fixture fails')\n",
}
_SERVICE = """
def down(messages):
    raise ConnectionError("the judge is down")


@pytest.fixture
def retriever():
    def broken_service(question):
        raise ConnectionError("the service is down")

    return broken_service

"""


def of_outcomes(outcomes: Sequence[str]) -> Files:
    """One test for each outcome."""
    text = PRELUDE + _SERVICE
    for number, outcome in enumerate(outcomes):
        fixture = ""
        if outcome == "endpoint_error":
            text += '\n@pytest.mark.parametrize("rag_question", ["How long?"])'
            fixture = "rag_sample"
        text += f"\ndef test_{number}_{outcome}({fixture}):\n{_TESTS[outcome]}\n"
    return {"test_case.py": text}


def many_questions(total: int, bad: int, broken: int) -> Files:
    """Questions of which some get a low grade, and some break the judge."""
    names = [f"bad {n}" for n in range(bad)] + [f"broken {n}" for n in range(broken)]
    names += [f"good {n}" for n in range(total - len(names))]
    rows = "".join(f"{name.replace(' ', '-')},{name}?\n" for name in names)
    return {
        "questions.csv": f"id,question\n{rows}",
        "conftest.py": PRELUDE
        + """
@pytest.fixture(scope="session")
def judge():
    def fake_judge(messages):
        text = str(messages)
        if "broken" in text:
            raise ConnectionError("the judge is down")
        return says(0.1 if "bad " in text else 0.9)(messages)

    return fake_judge
""",
        "test_case.py": """\
import pytest
import pytest_ragbench as rb


@pytest.mark.rag_questions("questions.csv")
def test_answer(rag_sample):
    rb.assert_search_rag(rag_sample)
""",
    }


def asking(questions: str) -> Files:
    """A test of the questions of a file, whose every answer is bad."""
    return {
        "test_case.py": PRELUDE
        + f"""
@pytest.fixture(scope="session")
def retriever():
    return lambda question: ("An answer.", ["A chunk."])


@pytest.mark.rag_questions({questions!r})
def test_q(rag_sample):
    rb.assert_search_rag(rag_sample, judge=says(0.1))
"""
    }


def named(name: str) -> Files:
    """A sample of this id that fails."""
    return {
        "test_case.py": PRELUDE
        + f"""
def test_named():
    rb.assert_search_rag(SAMPLE.with_(id={name!r}), judge=says(0.1))
"""
    }


def reported(rows: Sequence[Mapping[str, Any]]) -> Files:
    """One question a row: ``id``, ``question``, ``answer``, ``score``, ``reason`` and ``error_message``, as a judge
    of the user's own gives the last three; no score is a judge that failed.
    """
    told = [{**row, "id": str(row.get("id", n)), "question": row.get("question") or f"Why {n}?"}
            for n, row in enumerate(rows)]  # fmt: skip
    return {
        "test_case.py": PRELUDE
        + """
from pathlib import Path

ROW_OF = {row["question"]: row for row in json.loads(Path("rows.json").read_text(encoding="utf-8"))}


@pytest.fixture(scope="session")
def retriever():
    return lambda question: (ROW_OF[question].get("answer") or "An answer.", ["A chunk."])


@rb.metric("own", tier="judge", needs=(), low=-1e9, high=1e9)
async def own(sample, tools):
    row = ROW_OF[sample.question]
    if row.get("score") is None:
        raise rb.JudgeError("no score")
    told = {name: row.get(name) or "" for name in ("reason", "error_message")}
    return tools.score(sample, row["score"], **told)


@pytest.mark.rag_questions("questions.jsonl")
def test_row(rag_sample):
    rb.assert_metric("own", rag_sample, ">=1e8")
""",
        "rows.json": json.dumps(told),
        "questions.jsonl": "".join(
            json.dumps({name: row[name] for name in ("id", "question")}) + "\n" for row in told
        ),
    }
