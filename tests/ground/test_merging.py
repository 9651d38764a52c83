"""Reports of shards, merged."""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report import merging
from pytest_ragbench.report.merging import Shard, read_shards
from pytest_ragbench.report.reading import part_from, report_from
from pytest_ragbench.report.summary import Summary
from pytest_ragbench.report.writing import as_dict, to_json


def record(
    test: str, value: float | None, outcome: str = "passed", kind: str | None = None
) -> dict[str, Any]:
    score: dict[str, Any] = {"metric": "mrr", "tier": "retrieval", "sample": 0, "count": 1, "value": value}
    score |= {"threshold": ">=0.5", "passed": value is not None and value >= 0.5, "band": None, "error": None}
    score["usage"] = {"calls": 1, "prompt_tokens": 10, "completion_tokens": 1, "cost": 0.25}
    sample = {"id": test, "question": f"{test}?"}
    return {"test": test, "outcome": outcome, "kind": kind, "samples": [sample], "scores": [score]}


def shard(name: str, started: float, *records: dict[str, Any], code: int = 0, **more: Any) -> Shard:
    summary = Summary()
    for each in records:
        summary.add(part_from(TestRecord, each))
    page = {"calls": 2, "stored": 1, "failed": 0, "prompt_tokens": 20, "completion_tokens": 2, "cost": 0.5}
    summary.add_usage({"judge": {**page, "latencies": [started, started + 1]}, "judge openai:m": page})
    run = {"id": name, "started": started, "settings": "judge openai", "ragbench": "0.1.0", "python": "3"}
    run |= more.pop("run", {})
    report = {"schema": "ragbench-report", "version": 1, "run": run, "results": list(records)}
    report |= {"complete": True, "exit_code": code, "finished": started + 9, "lost": [], "warnings": []}
    return Shard(name, report_from({**report, "summary": as_dict(summary.record()), **more}))


def merge(shards: list[Shard], **how: Any) -> dict[str, Any]:
    return as_dict(merging.merge(shards, **how))


FAILED_GATE = {"gate": "mrr >= 0.9", "metric": "mrr", "verdict": "FAIL"}
ONE = shard("one.json", 1.0, record("a", 1.0), record("b", 0.5))
TWO = shard("two.json", 2.0, record("c", 0.0, "failed", "quality"), code=1)


def test_sums_are_those_of_one_run() -> None:
    merged = merge([ONE, TWO])
    assert [each["test"] for each in merged["results"]] == ["a", "b", "c"]
    assert [each["test"] for each in merge([TWO, ONE])["results"]] == ["c", "a", "b"]
    assert merge([TWO, ONE])["run"]["started"] == 1.0
    [row] = merged["summary"]["metrics"]
    assert (row["mean"], row["n_scored"], row["n_missed"], row["cost"]) == (0.5, 3, 1, 0.75)
    calls = merged["summary"]["calls"]["judge"]
    assert (calls["calls"], calls["stored"], calls["cost"]) == (4, 2, 1.0)
    assert (calls["p50"], calls["p95"]) == (2.0, 3.0)
    [model] = merged["summary"]["models"]
    assert (model["model"], model["calls"]) == ("openai:m", 4)
    assert merged["summary"]["outcomes"] == {"passed": 2, "quality": 1}
    assert (merged["exit_code"], merged["complete"], merged["warnings"]) == (1, True, [])
    assert report_from(merged).summary is not None
    again = merge([Shard("m", report_from(merged)), shard("d.json", 3.0, record("d", 1.0))])
    assert len(again["results"]) == 4


def test_votes_panels_and_a_shared_preflight_are_those_of_one_run() -> None:
    flaky = record("f", 1.0)
    flaky["scores"][0]["details"] = {"flaky": True, "votes": [1.0, 0.0], "self_agreement": 0.5}
    panel = record("p", 1.0)
    panel["scores"][0]["details"] = {"panel": {"one": 1.0, "two": 0.0}}
    preflight = {"judge": "j", "passed": True, "fingerprint": "a", "checks": []}
    both = [
        shard("1.json", 1.0, flaky, preflight=preflight),
        shard("2.json", 2.0, panel, preflight=preflight),
    ]
    report = report_from(merge(both))
    assert [each.votes for each in report.flaky] == [(1.0, 0.0)]
    assert [each.means for each in report.panels] == [{"one": 1.0, "two": 0.0}]
    assert report.preflight is not None
    other = shard("3.json", 3.0, preflight={**preflight, "fingerprint": "b"})
    assert report_from(merge([both[0], other])).preflight is None
    assert merge([ONE, TWO]).keys().isdisjoint({"flaky", "panels", "preflight"})


def test_a_test_of_two_shards_is_refused_or_the_later_one_is_taken() -> None:
    rerun = shard("rerun.json", 5.0, record("c", 1.0))
    with pytest.raises(UsageError, match="c was run in two.json and in rerun.json"):
        merge([ONE, TWO, rerun])
    merged = merge([rerun, ONE, TWO], newest=True)
    assert merged["summary"]["metrics"][0]["n_missed"] == 0
    assert len(merged["results"]) == 3


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((0, 0), 0),
        ((0, 1), 1),
        ((8, 0), 8),
        ((8, 1), 1),
        ((4, 8), 4),
        ((4, 1), 1),
        ((3, 1), 3),
        ((0, 5), 0),
        ((0, 7), 7),
    ],
)
def test_exit_codes(codes: tuple[int, int], expected: int) -> None:
    for pair in (codes, codes[::-1]):
        shards = [shard(f"{n}", n, record(f"t{n}", 1.0), code=code) for n, code in enumerate(pair)]
        assert merge(shards)["exit_code"] == expected


def test_what_a_shard_s_own_gates_said_is_left_out() -> None:
    gated = shard("g.json", 3.0, record("d", 1.0), code=1, gates=[FAILED_GATE])
    assert merge([ONE, gated])["exit_code"] == 0
    failed = shard("g.json", 3.0, record("d", 0.0, "failed", "quality"), code=1, gates=[FAILED_GATE])
    assert merge([ONE, failed])["exit_code"] == 1
    judge = shard("g.json", 3.0, record("d", None, "error", "judge"), code=9, gates=[FAILED_GATE])
    assert merge([ONE, judge])["exit_code"] == 8


def test_what_is_missing_is_told_and_never_green() -> None:
    merged = merge([ONE], expected=2)
    assert (merged["complete"], merged["exit_code"]) == (False, 3)
    assert "1 of 2 shards are here" in merged["warnings"][0]
    killed = shard("k.json", 3.0, record("d", 1.0), complete=False, exit_code=None, summary=None)
    merged = merge([ONE, killed])
    assert (merged["complete"], merged["exit_code"]) == (False, 2)


@pytest.mark.parametrize(
    ("run", "told"),
    [
        (
            {"git": {"commit": "abcdef0123456789"}},
            "on different commits: unknown (one.json) | abcdef012345 (o)",
        ),
        (
            {"settings": "judge local"},
            "with different judges or embedders: judge openai (one.json) | judge local (o)",
        ),
        ({"ragbench": "0.2.0"}, "with different versions of ragbench: 0.1.0 (one.json) | 0.2.0 (o)"),
    ],
)
def test_shards_of_different_things_are_refused_unless_asked_for(run: dict[str, Any], told: str) -> None:
    other = shard("o", 3.0, record("d", 1.0), run=run)
    with pytest.raises(UsageError, match=re.escape(f"{told}; merge shards of one run, or take")):
        merge([ONE, other])
    assert f"the shards ran {told}" in merge([ONE, other], mixed=True)["warnings"]


def test_judges_and_prompts_of_shards() -> None:
    def judged(name: str, judges: list[str], version: str = "1-a") -> Shard:
        records = [record(f"{name} {judge}", 1.0) for judge in judges]
        for each, judge in zip(records, judges, strict=True):
            each["scores"][0]["judge"] = judge
        return shard(name, 1.0, *records, run={"prompts": {"rate": version, "split": "1-b"}})

    with pytest.raises(UsageError, match=r"different judges: a:m \(1\) \| b:m \(2\)"):
        merge([judged("1", ["a:m"]), judged("2", ["b:m"])])
    assert not merge([judged("1", ["a:m", "b:m"]), judged("2", ["b:m"])])[
        "warnings"
    ]  # one stood in for another
    # Of a cascade each shard may have met another member.
    both = [judged("1", ["a:m"]), judged("2", ["b:m, after a:m"])]
    for each in both:
        told = as_dict(each.report)
        told["results"][0]["scores"][0]["setup"] = {
            "direction": "higher",
            "judge": "a:m, near the threshold b:m",
        }
        both[both.index(each)] = Shard(each.name, report_from(told))
    assert not merge(both)["warnings"]
    with pytest.raises(UsageError, match=r"different prompts: rate 1-a \(1\) \| rate 2-c \(2\)"):
        merge([judged("1", ["a:m"]), judged("2", ["a:m"], "2-c")])


def test_other_differences_are_told() -> None:
    run = {"settings": "judge openai, service http://b", "python": "3.13"}
    preflight = {"judge": "j", "passed": True, "fingerprint": "f"}
    other = shard("o.json", 3.0, record("d", 1.0), run=run, preflight=preflight)
    told = merge([ONE, other])["warnings"]
    assert "the shards differ in settings: judge openai | judge openai, service http://b" in told
    assert "the shards differ in python: 3 | 3.13" in told
    assert any("different things in the preflights" in text for text in told)


def test_what_is_said_of_all_scores_is_said_anew() -> None:
    def claims(test: str) -> dict[str, Any]:
        made = record(test, 0.5, "failed", "quality")
        evidence = [{"text": "x", "ok": True}, {"text": "y", "ok": False}]
        made["scores"][0] |= {"threshold": ">=0.8", "passed": False, "evidence": evidence}
        return made

    said = (
        "mrr >=0.8 asks for all claims of {0} of {0} {1}; {0} failed by one: "
        "with 2 claims a score can only be 0, 0.5 or 1"
    )
    gate = {"gate": "mrr >= 0.9", "metric": "mrr", "verdict": "UNDECIDED", "reason": "too few"}
    warned = [said.format(1, "question"), "gate mrr >= 0.9: undecided: too few", "the store is full"]
    both = [shard(name, 1.0, claims(name), warnings=warned, gates=[gate]) for name in ("a", "b")]
    assert merge(both)["warnings"] == ["the store is full", said.format(2, "questions")]


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30), st.randoms())
def test_the_order_of_shards_shows_in_no_mean(values: list[float], random: Random) -> None:
    shards = [shard(f"{n}", float(n), record(f"{n}", value)) for n, value in enumerate(values)]
    mixed = random.sample(shards, len(shards))
    [one], [other] = (merge(each)["summary"]["metrics"] for each in (shards, mixed))
    assert one == other
    assert one["mean"] == pytest.approx(statistics.fmean(values))


def test_files_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(to_json(ONE.report))
    with pytest.raises(UsageError, match=r"a\.json and .*a\.json are reports of the same run"):
        read_shards([path, path])
    with pytest.raises(UsageError, match=r"b\.json"):
        read_shards([tmp_path / "b.json"])
