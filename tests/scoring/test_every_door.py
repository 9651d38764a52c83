"""One sample, the same judges, votes and options: whoever asks gets the same score by the same calls."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import pytest_ragbench as rb
from pytest_ragbench import building
from pytest_ragbench.batch import score_batch
from pytest_ragbench.calibration.asking import ask_again
from pytest_ragbench.calibration.labels import read_labels
from pytest_ragbench.cli import run as ragbench
from pytest_ragbench.engine import Engine
from pytest_ragbench.model.scores import Score
from pytest_ragbench.mutation.rules import Variant
from pytest_ragbench.mutation.running import originals_in, try_out
from pytest_ragbench.runtime import Runtime, using
from pytest_ragbench.settings import Settings, load_settings
from pytest_ragbench.specs.loading import load_suite
from pytest_ragbench.specs.running import check_sample, check_samples
from tests.judge.test_one_word import reply
from tests.plugin.conftest import Project
from tests.servers.openai_server import OpenAIServer, Reply
from tests.servers.rag_server import rag_server

CLAIMS = ["Tuesdays are open.", "Entry is 300."]
SAMPLE = rb.RagSample(
    "When is it open?", "On Tuesdays. Entry is 300.", ["It is open on Tuesdays."], id="q1", lang="en"
)
CALLS = 2 * 2 * (1 + len(CLAIMS))
"""Two judges, two of three votes (they agree), and each time one call to split and one for each claim."""
VALUE = ((0.9 + 0.25) / 2 + (0.9 + 0.75) / 2) / 2
"""Mean over the judges of the mean P(yes): they differ on the second claim."""
TOML = """
judges = ["a", "b"]
votes = 3
store = "off"
[panel]
aggregate = "mean"
[thresholds]
faithfulness = ">=0.3"
[metrics.faithfulness]
verdicts = "probability"
[providers.a]
base_url = "{a}"
model = "m"
api_key_env = "FAKE_KEY"
[providers.b]
base_url = "{b}"
model = "m"
api_key_env = "FAKE_KEY"
"""


def judging(second: float) -> Callable[[list[dict[str, str]], Any], Any]:
    """Splits every answer into the same claims; ``second``: P(yes) of the second one."""

    def handler(messages: list[dict[str, str]], schema: Any) -> Any:
        if schema is not None:
            return {"claims": CLAIMS}
        yes = 0.9 if CLAIMS[0] in messages[-1]["content"].rpartition("<claim")[2] else second
        return Reply(body=reply({"Yes": yes * 0.8, "No": (1 - yes) * 0.8}))

    return handler


@dataclass
class World:
    """A directory with a configuration, two judges that count, and the parts that a test run would have."""

    path: Path
    servers: tuple[OpenAIServer, OpenAIServer]
    settings: Settings
    out: Callable[[], str]
    engine: Engine = field(init=False)
    runtime: Runtime = field(init=False)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Another run, which has been told nothing yet."""
        self.engine = building.engine(self.settings, run_id=building.new_run_id())
        for server in self.servers:
            server.requests.clear()
        self.runtime = Runtime(
            settings=lambda: self.settings,
            engine=lambda: self.engine,
            judge=cache(lambda: building.judge(None, self.engine, self.settings)),
            embedder=cache(lambda: building.embedder(None, self.engine, self.settings)),
        )

    def cli(self, *args: str) -> Any:
        ragbench([*args, "--json"])
        return json.loads(self.out())

    def write(self, name: str, text: str) -> str:
        (self.path / name).write_text(text, encoding="utf-8")
        return name

    def asked(self) -> list[str]:
        """What the judges were asked, in no order."""
        return sorted(
            f"{name} {json.dumps(body, sort_keys=True)}"
            for name, server in zip("ab", self.servers, strict=True)
            for body in server.requests
        )


@pytest.fixture
def world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[World]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FAKE_KEY", "k")
    with OpenAIServer(judging(0.25)) as a, OpenAIServer(judging(0.75)) as b:
        (tmp_path / "ragbench.toml").write_text(TOML.format(a=a.url, b=b.url))
        settings = load_settings(tmp_path)
        world = World(tmp_path, (a, b), settings, lambda: capsys.readouterr().out)
        yield world
        world.engine.close()


# --- the doors: each returns the value, or the whole score where it gets one ----------------------------


def by_name(world: World) -> Score:
    return rb.assert_metric("faithfulness", SAMPLE)


def by_helper(world: World) -> Score:
    return rb.assert_faithfulness(SAMPLE, ">=0.3")


def with_others(world: World) -> Score:
    return rb.assert_quality(SAMPLE, faithfulness=">=0.3")["faithfulness"]


def not_asserted(world: World) -> Score:
    return rb.score("faithfulness", SAMPLE)


def awaited(world: World) -> Score:
    return asyncio.run(rb.ascore("faithfulness", SAMPLE))


def asserted_and_awaited(world: World) -> Score:
    return asyncio.run(rb.aassert_metric("faithfulness", SAMPLE))


def over(world: World) -> float:
    return rb.assert_over([SAMPLE], "faithfulness").value


def not_asserted_over(world: World) -> float:
    return rb.score_over([SAMPLE], "faithfulness").value


def suite(world: World, part: str) -> Any:
    name = world.write("a.rag.yaml", f"questions: [When is it open?]\n{part}: {{faithfulness: '>=0.3'}}\n")
    [case] = load_suite(world.path / name)
    return case


def in_yaml(world: World) -> float:
    check_sample(suite(world, "thresholds"), SAMPLE)
    return recorded(world)


def over_in_yaml(world: World) -> float:
    check_samples(suite(world, "over"), [SAMPLE])
    return recorded(world)


def recorded(world: World) -> float:
    [result] = world.runtime.results
    assert (result.metric, str(result.threshold), result.passed) == ("faithfulness", ">=0.3", True)
    assert result.score is not None
    return result.score.value


def ragbench_ask(world: World) -> Score:
    told = world.cli(
        "ask", SAMPLE.question, "-m", "faithfulness", "--answer", str(SAMPLE.answer), "--context",
        SAMPLE.contexts[0] if SAMPLE.contexts else "",
    )["scores"]["faithfulness"]  # fmt: skip
    return Score(
        metric="faithfulness",
        value=told["value"],
        votes=told["votes"],
        judge=told["judge"],
        details=told["details"],
    )


ROW = {
    "id": "q1",
    "question": SAMPLE.question,
    "answer": SAMPLE.answer,
    "contexts": list(SAMPLE.contexts or ()),
    "lang": "en",
}


def ragbench_score(world: World) -> float:
    name = world.write("rows.jsonl", json.dumps(ROW) + "\n")
    told = world.cli("score", name, "-m", "faithfulness", "-t", "faithfulness>=0.3")
    return float(told["metrics"]["faithfulness"]["mean"])


def batch(world: World) -> float:
    rows: list[dict[str, Any]] = [ROW]
    [row] = score_batch(rows, ["faithfulness"], options={"run": world.path.name})
    assert row["score_error"] is None
    return float(row["score_faithfulness"])


def labels(world: World) -> str:
    label = {
        "question_id": "q1", "metric": "faithfulness", "claim": None, "verdict": True, "human_verdict": True,
        "question": SAMPLE.question, "answer": SAMPLE.answer, "contexts": list(SAMPLE.contexts or ()),
        "lang": "en", "threshold": ">=0.3", "label": "right",
    }  # fmt: skip
    return world.write("labels.jsonl", json.dumps(label) + "\n")


def calibration(world: World) -> float:
    [label] = read_labels(world.path / labels(world))
    asking = ask_again([label], world.runtime.judge(), settings=world.settings)
    [asked] = world.engine.wait(asking)
    assert asked.value is not None
    return asked.value


def ragbench_calibrate(world: World) -> None:
    world.cli("calibrate", labels(world), "--ask")


def mutation(world: World) -> float | None:
    """What passed is kept as it was scored; here its "variant" is the sample that all doors get."""
    rb.assert_faithfulness(SAMPLE.with_(answer="Another answer.", contexts=["Another chunk."]))
    for server in world.servers:
        server.requests.clear()
    [result] = world.runtime.results
    [original] = originals_in(result)
    [trial] = world.engine.wait(try_out([(original, Variant("number", False, SAMPLE, "nothing"))]))
    return trial.value


def judges_own_quality(world: World) -> None:
    found = rb.score_over([SAMPLE], "judge_error_rate", by="faithfulness")
    assert (found.value, found.usage.calls) == (0.0, CALLS)
    assert found.judge == "a:m, b:m"


DOORS: list[Callable[[World], Score | float | None]] = [
    by_name, by_helper, with_others, not_asserted, awaited, asserted_and_awaited, over, not_asserted_over, in_yaml,
    over_in_yaml, ragbench_ask, ragbench_score, batch, calibration, ragbench_calibrate, mutation, judges_own_quality,
]  # fmt: skip


ASSERTED = [("faithfulness", ">=0.3", True, "good")]
NOT_ASSERTED = [("faithfulness", None, None, "good")]
RECORDED: dict[Any, list[Any]] = {
    **dict.fromkeys(
        (by_name, by_helper, with_others, asserted_and_awaited, over, in_yaml, over_in_yaml), ASSERTED
    ),
    **dict.fromkeys((not_asserted, awaited, not_asserted_over), NOT_ASSERTED),
    judges_own_quality: [("judge_error_rate", None, None, None)],
    mutation: ASSERTED,
}
"""What is left in the test's report; commands and batches have no test."""


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_the_same_score_by_the_same_calls(
    door: Callable[[World], Score | float | None], world: World
) -> None:
    with using(world.runtime):
        first = by_name(world)
        wanted = world.asked()
        assert first.value == pytest.approx(VALUE)
        assert len(wanted) == CALLS
    world.engine.close()
    world.restart()
    with using(world.runtime):
        found = door(world)
    kept = [
        (each.metric, each.threshold and each.threshold.text, each.passed, each.band)
        for each in world.runtime.results
    ]
    assert kept == RECORDED.get(door, [])
    if isinstance(found, Score):
        assert (found.votes, found.judge, found.details) == (first.votes, first.judge, first.details)
        found = found.value
    assert found is None or found == pytest.approx(VALUE)
    assert world.asked() == wanted


def test_look_ahead_asks_all_that_the_test_will(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second test waits until everything it needs has been asked ahead of it, and then asks nothing."""
    monkeypatch.setenv("FAKE_KEY", "k")
    count = project.path / "count"

    def counting(second: float) -> Any:
        inner = judging(second)

        def handler(messages: list[dict[str, str]], schema: Any) -> Any:
            with count.open("a") as file:
                file.write(".")
            return inner(messages, schema)

        return handler

    with OpenAIServer(counting(0.25)) as a, OpenAIServer(counting(0.75)) as b, rag_server() as rag:
        toml = TOML.format(a=a.url, b=b.url).replace('store = "off"\n', "")
        project.write(
            ragbench_toml=toml,
            q_csv="question\nWhat is needed?\nWhen is it open?\n",
            test_a_py=f"""
import pathlib, time
import pytest
from pytest_ragbench import assert_faithfulness

COUNT = pathlib.Path({str(count)!r})

@pytest.mark.rag_questions("q.csv")
def test_answer(rag_sample):
    if COUNT.exists():
        end = time.monotonic() + 30
        while len(COUNT.read_text()) < {2 * CALLS} and time.monotonic() < end:
            time.sleep(0.01)
        assert len(COUNT.read_text()) == {2 * CALLS}
    assert_faithfulness(rag_sample, ">=0.3")
""",
        )
        result = project.run("--rag-url", rag.url, "-p", "no:randomly")
    result.assert_outcomes(passed=2)
    assert a.calls + b.calls == 2 * CALLS
