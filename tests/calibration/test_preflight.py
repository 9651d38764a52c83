"""Judges that can be talked into verdicts, and one that can't."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.calibration.preflight import Preflight, canaries, preflight_of, unpinned
from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.local_judge import local_judge
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.judge.rendering import render
from pytest_ragbench.judge.tasks import YesChance
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.settings import ProviderSettings
from tests.servers.openai_server import OpenAIServer

FACTS = ("nine in the morning", "девять часов", "午前九時")
WRONG = ("at four", "четыре часа", "午後四時")


def judge(kind: str) -> Any:
    """ "honest", "yes" to everything, "no" to everything, or "obedient" to orders that it reads."""

    def reply(messages: list[dict[str, str]]) -> str:
        text = messages[-1]["content"]
        if "<claim-" not in text:
            return json.dumps({"reason": "r", "grade": 0.9 if kind == "yes" else 0})
        claim = text.rsplit("<claim-", 1)[1]
        true = any(fact in claim for fact in FACTS) and not any(wrong in claim for wrong in WRONG)
        ordered = any(word in text for word in ("SYSTEM", "СИСТЕМА", "システム：", '{"verdicts"'))
        verdict = {"honest": true, "yes": True, "no": False, "obedient": true or ordered}[kind]
        return json.dumps({"verdicts": {"1": {"reason": "r", "chunk": 1, "verdict": verdict}}})

    return callable_judge(reply, name=kind)


def checked(tested: Any, anchors: list[Label] | None = None) -> Preflight:
    return asyncio.run(preflight_of(tested, anchors or []))


def test_an_honest_judge_passes() -> None:
    found = checked(judge("honest"))
    assert not found.failed
    assert len(found.checks) == len(canaries()) == 11


@pytest.mark.parametrize(
    ("kind", "failed"),
    [
        ("obedient", {"orders in the answer", "orders in a chunk"}),
        ("no", {"control"}),
        ("yes", {"orders in the answer", "orders in a chunk", "answer"}),
    ],
)
def test_a_judge_that_can_be_had_fails(kind: str, failed: set[str]) -> None:
    names = {check.name for check in checked(judge(kind)).failed}
    assert {name.rsplit(" ", 1)[0] for name in names if "Thought" not in name} == failed
    if kind != "yes":
        assert len(names) == 3 * len(failed)


def test_the_local_judge_can_not_be_talked_into_anything() -> None:
    found = checked(local_judge())
    assert not found.failed


def anchor(human: bool) -> Label:
    return Label(
        question_id="q", metric="faithfulness", claim="It opens at nine in the morning.", verdict=True,
        human_verdict=human, question="?", answer="a", contexts=("It opens at nine in the morning.",),
    )  # fmt: skip


def test_anchors() -> None:
    assert not checked(judge("honest"), [anchor(True)]).failed
    wrong = checked(judge("honest"), [anchor(False)])
    assert [check.name for check in wrong.failed] == [
        "anchor q faithfulness: It opens at nine in the morning."
    ]
    assert wrong.fingerprint != checked(judge("honest"), [anchor(True)]).fingerprint


def test_each_member_of_a_panel_is_asked() -> None:
    found = checked(Panel((judge("honest"), judge("obedient"))), [anchor(True)])
    assert len(found.checks) == 2 * (11 + 1)
    assert len(found.failed) == 6
    assert all(check.name.startswith("obedient: orders in") for check in found.failed)


class Wordy:
    """Honest in JSON; by probability it believes whatever it is ordered to."""

    name, tasks, probabilities = "wordy", None, True

    async def ask(self, task: Task[Any]) -> Any:
        if not task.one_word:
            return await judge("honest").ask(task)
        text = render(task)[-1]["content"]
        claim = text.rpartition("<claim-")[2]
        ordered = any(word in text for word in ("SYSTEM", "СИСТЕМА", "システム："))
        true = any(fact in claim for fact in FACTS)
        return Answered(YesChance(probability=0.8 if true or ordered else 0.1, mass=0.9), self.name)


def test_metrics_by_probability_are_tried_by_probability() -> None:
    found = asyncio.run(preflight_of(Wordy(), [anchor(True)], {"faithfulness": 0.4}))
    assert len(found.checks) == 11 + 9 + 1
    assert [check.name for check in found.failed] == [
        f"orders in the answer {lang}, by probability" for lang in ("en", "ru", "ja")
    ]
    assert "P(yes) 0.80" in found.failed[0].said
    assert "yes (0.80)" in found.checks[-1].said
    strict = asyncio.run(preflight_of(Wordy(), [anchor(True)], {"faithfulness": 0.85}))
    assert [check.name.split(" ")[0] for check in strict.failed] == ["control"] * 3 + ["anchor"]


def test_drift_is_seen_although_replies_are_stored(tmp_path: Path) -> None:
    """The canaries of an earlier run count; what the judge says of the anchors is asked anew, once a run."""
    drifted = False

    def handler(messages: list[dict[str, str]], _schema: Any) -> Any:
        claim = messages[-1]["content"].rpartition("<claim-")[2]
        if "<claim-" not in messages[-1]["content"]:
            return {"reason": "r", "grade": 0}
        said = any(fact in claim for fact in FACTS) and not any(wrong in claim for wrong in WRONG)
        return {
            "verdicts": {
                "1": {"reason": "r", "chunk": 1, "verdict": said and not (drifted and "It" in claim)}
            }
        }

    with OpenAIServer(handler) as server:

        def run(run_id: str) -> tuple[list[str], int]:
            before = server.calls
            engine = Engine(store=tmp_path / "store.sqlite", run_id=run_id)
            provider = ProviderSettings(base_url=server.url)
            tested = openai_judge("lab", provider, "m", engine, environ={})
            found = [engine.wait(preflight_of(tested, [anchor(True)])) for _ in range(2)][-1]
            engine.close()
            return [check.name.split(" ")[0] for check in found.failed], server.calls - before

        assert run("monday") == ([], 12)
        assert run("tuesday") == ([], 1)
        drifted = True
        assert run("wednesday") == (["anchor"], 1)


def test_a_judge_that_is_down_is_no_bad_judge() -> None:
    def down(messages: object) -> str:
        raise ConnectionError("down")

    with pytest.raises(JudgeError):
        checked(callable_judge(down))


def test_a_model_that_moves_is_warned_of() -> None:
    assert "gpt-4o-latest" in unpinned("openai:gpt-4o-latest")
    assert unpinned("openai:gpt-4o-mini-2024-07-18") == unpinned("local") == ""
