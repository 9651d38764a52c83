from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench.engine import Engine
from pytest_ragbench.engine.lookahead import looking_ahead
from pytest_ragbench.engine.nearest import differences
from pytest_ragbench.engine.recording import Recorder, Replay, journal_of, load, merge
from pytest_ragbench.model.errors import EndpointError, JudgeError, UsageError
from tests.engine.helpers import Asked, Service, fetched

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "tape.jsonl"


async def _not_asked(send: Any) -> Any:
    raise AssertionError("asked")


def request(key: dict[str, Any], kind: Any = "judge", provider: str = "openai") -> Asked:
    return Asked(kind, provider, key, _not_asked, lambda payload: payload)


def value(tape: Path, asked: Asked) -> Any:
    return Replay(tape).value(asked.call, asked.read)


def recorded(tape: Path, *entries: tuple[Asked, Any]) -> Path:
    recorder = Recorder(tape)
    for asked, reply in entries:
        recorder.note(asked.call, json.dumps(reply))
    merge(tape)
    return tape


def judge_key(text: str, version: str = "1-aa-en", model: str = "m") -> dict[str, Any]:
    return {
        "model": model,
        "prompt": ["verify_claims", version],
        "messages": [
            {"role": "system", "content": f"Instructions {version}; the markers end in -0a0b0c0d."},
            {"role": "user", "content": f"<chunk-0a0b0c0d>\n{text}\n</chunk-0a0b0c0d>"},
        ],
        "schema": {"type": "object"},
    }


def test_what_is_recorded_is_replayed_without_a_call(make_engine: Callable[..., Engine], tape: Path) -> None:
    service = Service()
    engine = make_engine(recorder=Recorder(tape))
    asked = [service.ask("q"), service.ask("p", scope="none")]
    values = [engine.wait(fetched(engine, each)).value for each in asked]
    engine.close()
    assert (merge(tape).total, service.calls) == (2, 2)
    replaying = make_engine(store=None, replay=Replay(tape))
    got = [replaying.wait(fetched(replaying, each)) for each in asked]
    assert [each.value for each in got] == values == ["q", "p"]
    assert all(each.cached for each in got)
    assert service.calls == 2
    assert replaying.usage()["judge"]["stored"] == 2


def test_a_stored_reply_is_recorded_too(make_engine: Callable[..., Engine], tape: Path) -> None:
    service = Service()
    first = make_engine()
    first.wait(fetched(first, service.ask("q")))
    first.close()
    second = make_engine(recorder=Recorder(tape))
    second.wait(fetched(second, service.ask("q")))
    assert service.calls == 1
    assert merge(tape).total == 1


def test_guesses_and_other_kinds_are_not_recorded(make_engine: Callable[..., Engine], tape: Path) -> None:
    service = Service()
    engine = make_engine(recorder=Recorder(tape, ["rag"]))
    engine.wait(fetched(engine, service.ask("q")))
    guessing = make_engine(recorder=Recorder(tape))

    async def guess() -> None:
        looking_ahead.set(True)
        await fetched(guessing, service.ask("guessed"))

    guessing.wait(guess())
    assert merge(tape).total == 0


def test_what_is_not_recorded_is_an_error_that_counts(make_engine: Callable[..., Engine], tape: Path) -> None:
    recorded(tape, (request({"input": "q"}, provider="p"), {"echo": "q"}))
    engine = make_engine(store=None, replay=Replay(tape))
    with pytest.raises(JudgeError, match="input: 'q' recorded, 'r' now") as caught:
        engine.wait(fetched(engine, Service().ask("r")))
    assert caught.value.code == "not_recorded"
    assert engine.usage()["judge"]["failed"] == 1


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (judge_key("30 days", version="2-bb-en"), "prompt[1]: '1-aa-en' recorded, '2-bb-en' now"),
        (judge_key("30 days", model="n"), "model: 'm' recorded, 'n' now"),
        (judge_key("40 days"), "messages[1].content (chunk): '<chunk>\\n30 days\\n</chunk>' recorded"),
        ({**judge_key("30 days"), "temperature": 0.5}, "temperature: None recorded, 0.5 now"),
    ],
)
def test_the_error_names_the_nearest_line_and_what_differs(
    tape: Path, key: dict[str, Any], said: str
) -> None:
    others = [(request(judge_key(f"chunk {n} of other things")), [n]) for n in range(5)]
    recorded(tape, *others, (request(judge_key("30 days")), ["x"]))
    line = 1 + next(n for n, entry in enumerate(load(tape)) if entry["reply"] == ["x"])
    with pytest.raises(JudgeError) as caught:
        value(tape, request(key))
    assert f"line {line}," in str(caught.value)
    assert said in str(caught.value)


def test_without_anything_like_it_the_error_says_so(tape: Path) -> None:
    recorded(tape, (request({"question": "q"}, "rag", "rag"), "a"))
    with pytest.raises(JudgeError, match="no judge replies at all"):
        value(tape, request({"input": "q"}))


def test_the_service_may_have_been_elsewhere(tape: Path) -> None:
    def at(host: str) -> Asked:
        return request({"url": f"http://{host}/llm/search-rag?questions=q"}, "rag", "rag")

    recorded(tape, (at("staging:8080"), {"text": "a"}))
    assert value(tape, at("localhost:1")) == {"text": "a"}
    recorded(tape, (at("production"), {"text": "b"}))
    assert value(tape, at("production")) == {"text": "b"}
    with pytest.raises(EndpointError, match="url: "):  # which of the two?
        value(tape, at("localhost:1"))


def test_lines_are_the_same_whatever_the_order_of_the_calls(tmp_path: Path) -> None:
    entries: list[tuple[Asked, Any]] = [(request(judge_key(text)), [text]) for text in ("b", "a", "я")]
    entries.append((request({"question": "q"}, "rag", "rag"), {"text": "a", "latency": 0.1}))
    one = recorded(tmp_path / "one.jsonl", *entries)
    two = recorded(tmp_path / "two.jsonl", *reversed(entries))
    assert one.read_bytes() == two.read_bytes()
    assert "я" in one.read_text(encoding="utf-8")
    assert load(one)[0]["kind"] == "rag"


def test_recording_again_changes_only_what_has_changed(tape: Path) -> None:
    service = request({"question": "q"}, "rag", "rag")
    recorded(tape, (service, {"text": "a", "latency": 0.1}), (request({"input": "old"}), [1]))
    before = tape.read_bytes()
    Recorder(tape).note(service.call, '{"text": "a", "latency": 0.7}')
    assert str(merge(tape)) == (
        "2 replies: 0 new, 0 changed, 1 not asked for in this run (delete the file first to drop such)"
    )
    assert tape.read_bytes() == before
    Recorder(tape).note(service.call, '{"text": "b", "latency": 0.7}')
    Recorder(tape).note(request({"input": "new"}).call, "[2]")
    told = merge(tape)
    assert (told.total, told.new, told.changed) == (3, 1, 1)


def test_a_killed_run_loses_nothing_that_was_whole(tape: Path) -> None:
    Recorder(tape).note(request({"input": "q"}).call, "[1]")
    with journal_of(tape).open("ab") as journal:
        journal.write(b'{"kind": "judge", "provider": "ope')
    with pytest.raises(UsageError, match="was killed left its journal"):
        load(tape)
    Recorder(tape).note(request({"input": "r"}).call, "[2]")
    assert merge(tape).total == 2
    assert not journal_of(tape).exists()


def test_no_secret_of_the_environment_is_written(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "sk-planted-0123456789")
    asked = request({"input": "use sk-planted-0123456789"})
    recorded(tape, (asked, ["it said sk-planted-0123456789"]))
    assert "planted" not in tape.read_text()
    assert value(tape, asked) == ["it said ***"]


def test_a_file_that_is_no_recording_is_refused(tape: Path) -> None:
    tape.write_text('{"kind": "judge", "provider": "p", "asked": {}, "reply": 1}\n{"kind": "else"}\n')
    for reads in (Replay, Recorder):
        with pytest.raises(UsageError, match="line 2"):
            reads(tape)
    with pytest.raises(UsageError, match="there is no such recording"):
        Replay(tape.with_name("other"))
    with pytest.raises(UsageError, match="can't be written"):
        Recorder(tape / "below-a-file")


def test_two_replies_to_the_same_are_refused(tape: Path) -> None:
    recorded(tape, (request({"input": "q"}), [1]), (request({"input": "r"}), [2]))
    lines = tape.read_text().splitlines()
    tape.write_text("\n".join([*lines, lines[0]]))
    assert value(tape, request({"input": "q"})) == [1]  # twice the same does no harm
    tape.write_text("\n".join([*lines, lines[0].replace("[1]", "[3]")]))
    with pytest.raises(UsageError, match="lines 1 and 3 hold different replies to the same judge request"):
        Replay(tape)
    with pytest.raises(UsageError, match="lines 1 and 3"):
        merge(tape)


@pytest.mark.parametrize("error", [KeyError("content"), JudgeError("no grade", code="bad_reply")])
def test_a_line_that_somebody_has_changed_is_an_error_that_names_it(tape: Path, error: Exception) -> None:
    """Not the test's failure, and no longer a good reply either."""
    asked = request({"input": "q"})
    recorded(tape, (asked, [1]))

    def fails(payload: Any) -> Any:
        raise error

    with pytest.raises(JudgeError, match=r"tape.jsonl, line 1: .* can't be read") as caught:
        value(tape, replace(asked, read=fails))
    assert caught.value.code == "bad_recording"


def test_what_workers_get_is_written_by_the_controller(
    make_engine: Callable[..., Engine], make_team: Callable[..., list[Engine]], tape: Path
) -> None:
    service = Service()
    controller, *_ = team = make_team(2, recorder=Recorder(tape))
    address = team[1]._controller
    workers = [make_engine(store=None, controller=address, recorder=Recorder(tape)) for _ in range(2)]
    for number, worker in enumerate(workers):
        for each in (*range(number * 10, number * 10 + 20), "x" * 20_000):
            worker.wait(fetched(worker, service.ask(each)))
        worker.settle()
    controller.close()
    assert merge(tape).total == 31
    assert service.calls == 31


@given(JSON, JSON)
def test_equal_values_alone_have_no_differences(one: Any, other: Any) -> None:
    assert differences(one, one) == (0, [])
    distance, told = differences(one, other)
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    absent = not told and not same  # a key with null is as good as no key
    assert absent or (distance == 0) == same
