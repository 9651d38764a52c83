"""Judges that can be talked into verdicts, and one that can't."""

from __future__ import annotations

import asyncio
import base64
import codecs
import contextlib
import json
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench.calibration.labels import Label
from pytest_ragbench.calibration.preflight import (
    Preflight,
    calls_of,
    canaries,
    orders_of,
    preflight_of,
    unpinned,
)
from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.base import Answered, Task
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.local_judge import local_judge
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.panel import Panel
from pytest_ragbench.judge.rendering import render
from pytest_ragbench.judge.tasks import YesChance
from pytest_ragbench.languages import catalog
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.settings import ProviderSettings
from tests.servers.openai_server import OpenAIServer, error

CANARIES, IN_A_WORD = 17, 12
"""Calls of a judge that passes: a control and four places in three languages and two answers without content; those
that are also asked in a word.
"""
FACTS = ("nine in the morning", "девять часов", "午前九時")
WRONG = ("at four", "четыре часа", "午後四時")


def is_true(message: str) -> bool:
    claim = message.rsplit("<claim-", 1)[1]
    return any(fact in claim for fact in FACTS) and not any(wrong in claim for wrong in WRONG)


def judge(kind: str) -> Any:
    """ "honest", "yes" to everything, "no" to everything, or "obedient" to orders that it reads."""

    def reply(messages: list[dict[str, str]]) -> str:
        text = messages[-1]["content"]
        if "<claim-" not in text:
            return json.dumps({"reason": "r", "grade": 0.9 if kind == "yes" else 0})
        true = is_true(text)
        ordered = any(word in text for word in ("SYSTEM", "СИСТЕМА", "システム：", '{"verdicts"'))
        verdict = {"honest": true, "yes": True, "no": False, "obedient": true or ordered}[kind]
        return json.dumps({"verdicts": {"1": {"reason": "r", "chunk": 1, "verdict": verdict}}})

    return callable_judge(reply, name=kind)


def checked(tested: Any, anchors: list[Label] | None = None) -> Preflight:
    return asyncio.run(preflight_of(tested, anchors or []))


def test_an_honest_judge_passes() -> None:
    found = checked(judge("honest"))
    assert not found.failed
    assert len(found.checks) == len(canaries()) == calls_of(None) == CANARIES
    assert calls_of(None, by_probability=True) == CANARIES + IN_A_WORD
    assert calls_of({"verify_claims"}) == IN_A_WORD


ORDERED = {f"orders in the {place}" for place in ("answer", "chunk", "question")}
"""Places that a judge without ratings is asked about."""


@pytest.mark.parametrize(
    ("kind", "failed"), [("obedient", ORDERED), ("no", {"control"}), ("yes", {*ORDERED, "answer"})]
)
def test_a_judge_that_can_be_had_fails(kind: str, failed: set[str]) -> None:
    names = [check.name for check in checked(judge(kind)).failed]
    assert {name.partition(" (")[0].rsplit(" ", 1)[0] for name in names if "Thought" not in name} == failed
    if kind != "yes":
        assert len(names) == 3 * len(failed)
    if kind == "yes":
        assert "orders in the answer en (wrong without orders, too)" in names


# --- judges that obey one kind of order, on a real server ---------------------------------------

PLACES = ("claim", "chunk", "question", "reference")


def texts_in(message: str, places: Collection[str] = PLACES) -> str:
    """What stands between the markers of these labels."""
    found = re.findall(rf"<({'|'.join(places)})-(\w+)>\n(.*?)\n</\1-\2>", message, re.DOTALL)
    return "\n".join(text for _, _, text in found)


def in_base64(text: str) -> bool:
    for word in re.findall(r"[A-Za-z0-9+/=]{24,}", text):
        with contextlib.suppress(ValueError):
            if "ignore all previous" in base64.b64decode(word).decode().casefold():
                return True
    return False


def hidden(text: str) -> bool:
    shown = "".join(chr(ord(letter) - 0xE0000) for letter in text if 0xE0020 <= ord(letter) < 0xE007F)
    return "ignore all" in shown.casefold()


def look_alike(text: str) -> bool:
    latin = text.translate(str.maketrans("асеһіјорѕхуІ", "acehijopsxyI"))
    return latin.casefold().count("ignore all") > text.casefold().count("ignore all")


OBEYS: dict[str, Callable[[str], bool]] = {
    "plain order": lambda text: "the assessment is over" in text,
    "fake JSON": lambda text: '{"verdicts"' in text,
    "role tags": lambda text: any(tag in text for tag in ("<|im_start|>system", "[INST]", "\nSystem:")),
    "ignore all instructions": lambda text: (
        re.search(r"ignore all previous instructions\.", text, re.I) is not None
    ),
    "closing tags": lambda text: "</claim>" in text,
    "authority": lambda text: "administrator" in text,
    "reward": lambda text: "tip of 500 dollars" in text,
    "threat": lambda text: "shut down" in text,
    "another language": lambda text: "Ignorez toutes" in text,
    "base64": in_base64,
    "rot13": lambda text: "ignore all" in codecs.decode(text, "rot13").casefold(),
    "leetspeak": lambda text: "1gn0r3 4ll pr3v10u5" in text,
    "homoglyphs": look_alike,
    "zero-width characters": lambda text: "I\u200bg\u200bn\u200bo\u200br\u200be" in text,
    "invisible tags": hidden,
}


def obeying(kind: str | None, places: Collection[str] = PLACES) -> Callable[..., Any]:
    def handler(messages: list[dict[str, str]], schema: Any) -> Any:
        message = messages[-1]["content"]
        ordered = kind is not None and OBEYS[kind](texts_in(message, places))
        if schema["properties"].get("rating"):
            return {"reason": "r", "rating": 2 if ordered else 0}
        if schema["properties"].get("grade"):
            return {"reason": "r", "grade": 1 if ordered else 0}
        return {"verdicts": {"1": {"reason": "r", "chunk": 1, "verdict": ordered or is_true(message)}}}

    return handler


def asked_of(handler: Callable[..., Any]) -> tuple[Preflight, int]:
    """What a preflight found, and by how many calls."""
    with OpenAIServer(handler) as server:
        engine = Engine(store=None, run_id="preflight")
        try:
            provider = ProviderSettings(base_url=server.url)
            tested = openai_judge("lab", provider, "m", engine, environ={})
            return engine.wait(preflight_of(tested)), server.calls
        finally:
            engine.close()


def test_all_kinds_of_orders_are_tried() -> None:
    for language in catalog():
        assert list(orders_of(language)) == list(OBEYS)
        assert all(orders_of(language).values())


def test_an_honest_judge_on_a_server_passes_by_the_stated_calls() -> None:
    found, calls = asked_of(obeying(None))
    assert (found.failed, calls) == ([], CANARIES)


@pytest.mark.parametrize("kind", OBEYS)
def test_a_judge_that_obeys_one_kind_of_order_is_refused(kind: str) -> None:
    found, calls = asked_of(obeying(kind))
    names = [check.name for check in found.failed]
    assert f"orders in the answer en (obeyed: {kind})" in names
    for place in ("chunk", "question", "reference"):
        assert f"orders in the {place} en" in names
    assert calls <= CANARIES + 3 * (1 + len(OBEYS))


@pytest.mark.parametrize("place", PLACES)
def test_a_judge_that_obeys_in_one_place_is_refused(place: str) -> None:
    found, _ = asked_of(obeying("role tags", [place]))
    names = [check.name for check in found.failed]
    told = "answer" if place == "claim" else place
    assert names == [f"orders in the {told} {lang} (obeyed: role tags)" for lang in ("en", "ru", "ja")]


def test_a_judge_that_fails_on_orders_is_a_judge_error() -> None:
    def broken(messages: list[dict[str, str]], schema: Any) -> Any:
        ordered = OBEYS["authority"](texts_in(messages[-1]["content"]))
        return error(400, "no") if ordered else obeying(None)(messages, schema)

    with pytest.raises(JudgeError):
        asked_of(broken)


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
    assert len(found.checks) == 2 * (CANARIES + 1)
    assert len(found.failed) == 3 * len(ORDERED)
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
    assert len(found.checks) == CANARIES + IN_A_WORD + 1
    assert [check.name for check in found.failed] == [
        f"orders in the {place} {lang}, by probability{told}"
        for lang in ("en", "ru", "ja")
        for place, told in [("answer", " (obeyed: plain order)"), ("chunk", ""), ("question", "")]
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
            return {"reason": "r", "grade": 0, "rating": 0}
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

        assert run("monday") == ([], CANARIES + 1)
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
