"""Metrics of one's own, in the project of a user."""

from __future__ import annotations

import os
from typing import Any

import pytest

import pytest_ragbench as rb
from pytest_ragbench.assertions.stub import is_built_in
from pytest_ragbench.metrics.registry import all_metrics, find, metric
from tests.plugin.conftest import Project

CONFTEST = '''
from pytest_ragbench import metric

@metric("brevity", tier="generation", needs="answer", bands={"good": 0.6})
def brevity(sample, *, words=10):
    """1 for an answer of at most ten words, less for a longer one."""
    count = len(sample.answer.split())
    return min(1.0, words / count), f"{count} words"
'''

SAMPLE = (
    'SAMPLE = rb.RagSample("How long?", "It takes thirty days, or more.", ["It takes 30 days."], id="q1")\n'
)


def test_ten_lines_in_a_conftest(project: Project) -> None:
    project.write(
        conftest_py=CONFTEST,
        ragbench_toml='[thresholds]\nbrevity = ">=0.3"\n',
        test_a_py="import pytest, pytest_ragbench as rb\nfrom pytest_ragbench import assert_brevity\n"
        + SAMPLE
        + """
def test_by_helper():
    assert assert_brevity(SAMPLE, ">=0.5", words=5).value == pytest.approx(5 / 6)

def test_by_name():
    assert rb.assert_metric("brevity", SAMPLE, "good").value == 1.0
    assert rb.assert_quality(SAMPLE, brevity=">=0.9")["brevity"].value == 1.0
    assert rb.assert_over([SAMPLE, SAMPLE], "brevity", "==1").value == 1.0

def test_by_configuration():
    rb.assert_metric("brevity", SAMPLE)

def test_its_needs():
    with pytest.raises(rb.UsageError, match="brevity needs answer, .*; sample q1"):
        rb.assert_brevity(SAMPLE.with_(answer=None), ">=0.5")
    assert rb.score("brevity", SAMPLE.with_(answer=" ")).value == 0.0

def test_it_fails():
    rb.assert_brevity(SAMPLE, ">=0.9", words=3)
""",
    )
    result = project.run("--ragbench-json=out.json", "-p", "no:randomly")
    result.assert_outcomes(passed=4, failed=1)
    assert "brevity 0.50, wanted >=0.9: 6 words" in result.stdout.str()
    result.stdout.fnmatch_lines(["generation*brevity*"])
    bands = {row["metric"]: row["band"] for row in project.report()["summary"]["metrics"]}
    assert bands["brevity"] == "good"


def test_from_an_entry_point_and_with_a_judge(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    info = project.path / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ragbench.metrics]\nextra = extra_metrics\n")
    monkeypatch.setenv("PYTHONPATH", str(project.path), prepend=os.pathsep)
    project.write(
        extra_metrics_py="""
from pytest_ragbench import metric
from pytest_ragbench.judge.tasks import SplitClaims

@metric("claim_count", tier="generation", needs=("question", "answer"), tasks=("split_claims",), high=50)
class ClaimCount:
    "How many claims the answer makes."
    async def __call__(self, sample, tools, *, at_most=50):
        claims = (await tools.ask(SplitClaims(sample.answer, sample.question))).claims
        return tools.score(sample, min(len(claims), at_most), reason=str(claims))
""",
        test_a_py="import pytest_ragbench as rb\n"
        + SAMPLE
        + """
calls = []

def judge(messages):
    calls.append(1)
    return '{"claims": ["a", "b", "c"]}'

judge.ragbench_key = {"model": "counted"}

def test_it():
    assert rb.assert_metric("claim_count", SAMPLE, ">=3", judge=judge).value == 3
    again = rb.assert_claim_count(SAMPLE, ">=2", judge=judge, at_most=2)
    assert (again.value, again.cached, len(calls)) == (2, True, 1)
    assert again.judge == "judge"
""",
    )
    project.run().assert_outcomes(passed=1)


def test_a_broken_entry_point_is_named(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    info = project.path / "extra-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: extra\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[ragbench.metrics]\nextra = no_such_module\n")
    monkeypatch.setenv("PYTHONPATH", str(project.path), prepend=os.pathsep)
    project.write(
        test_a_py="import pytest_ragbench as rb\n"
        + SAMPLE
        + "\ndef test_it():\n    rb.score('from_extra', SAMPLE)\n"
        + "\ndef test_ours():\n    rb.score('exact_match', rb.RagSample('q', 'a', reference='a'))\n"
    )
    result = project.run()
    result.assert_outcomes(errors=1, passed=1)
    assert "entry point 'extra' = 'no_such_module'" in result.stdout.str()


def test_names_are_taken_once() -> None:
    @metric("test_once", tier="generation", needs=("answer",))
    def first(sample: rb.RagSample) -> float:
        """Always one."""
        return 1.0

    with pytest.raises(rb.UsageError, match="'test_once' is registered already, at .*test_own.py"):

        @metric("test_once", tier="generation", needs=("answer",))
        def second(sample: rb.RagSample) -> float:
            return 0.0

    with pytest.raises(rb.UsageError, match="'faithfulness' is registered already"):

        @metric("faithfulness", tier="generation")
        def third(sample: rb.RagSample) -> float:
            return 0.0

    assert rb.score("test_once", rb.RagSample("q", "a")).value == 1.0


@pytest.mark.parametrize(
    ("name", "options", "named"),
    [
        ("Bad name", {}, "identifier"),
        ("ndcg@10", {}, "identifier"),
        ("test_bad", {"tier": "best"}, "unknown tier 'best'"),
        ("test_bad", {"needs": ("anwser",)}, "anwser"),
        ("test_bad", {"low": 1, "high": 0}, "empty"),
        ("test_bad", {"direction": "up"}, "direction"),
    ],
)
def test_definitions_that_can_not_be(name: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(rb.UsageError, match=named):
        metric(name, **{"tier": "generation", **options})


def test_formulas_that_can_not_be() -> None:
    def three(sample: object, tools: object, more: object) -> float:
        return 0.0

    def any_options(sample: object, **options: object) -> float:
        return 0.0

    def takes_threshold(sample: object, *, threshold: float = 0.5) -> float:
        return 0.0

    class Wants:
        def __init__(self, model: str) -> None:
            self.model = model

        def __call__(self, sample: object) -> float:
            return 0.0

    for formula in (three, any_options, takes_threshold, Wants):
        with pytest.raises(rb.UsageError, match="test_bad"):
            metric("test_bad", tier="generation")(formula)


@pytest.mark.parametrize("value", [None, "good", float("nan"), 1.5, [1]])
def test_results_that_are_no_score(value: Any) -> None:
    name = f"test_returns_{type(value).__name__}_{str(value)[:1].strip('[')}x".lower()

    def formula(sample: rb.RagSample) -> Any:
        return value

    metric(name, tier="generation")(formula)
    with pytest.raises(rb.UsageError, match=name):
        rb.score(name, rb.RagSample("q"))


def test_every_metric_says_what_it_is() -> None:
    for name, known in all_metrics().items():
        if not name.startswith("test_") and is_built_in(known):
            assert known.summary, name
            assert known.tier
            assert hasattr(rb, f"assert_{name}") or name.startswith("search_rag"), name


def test_bands_of_the_founding_benchmark() -> None:
    limits = {
        "hit_rate@1": (0.8, 0.5), "mrr": (0.8, 0.5), "ndcg@10": (0.8, 0.5), "faithfulness": (0.9, 0.7),
        "e2e_score": (0.8, 0.6), "judge_accuracy": (0.95, 0.85), "judge_consistency": (0.95, 0.85),
    }  # fmt: skip
    for name, (excellent, good) in limits.items():
        known = find(name)
        assert [known.band(v) for v in (excellent, good, good - 0.01)] == ["excellent", "good", "attention"]
    assert find("noise_sensitivity").band(0.05) == "excellent"
    assert find("noise_sensitivity").band(0.5) == "attention"
    assert find("bleu").band(15.0) is None
    tiers = {name: known.tier for name, known in all_metrics().items()}
    assert {tiers[name] for name in ("silhouette", "intra_cluster_similarity")} == {"embedding"}
    assert {tiers[name] for name in ("mrr", "context_recall")} == {"retrieval"}
    assert {tiers[name] for name in ("faithfulness", "rougeL", "bleu")} == {"generation"}
    assert {tiers[name] for name in ("e2e_score", "semantic_similarity")} == {"end_to_end"}
    assert (tiers["judge_consistency"], tiers["judge_accuracy"]) == ("judge", "judge_pipeline")
    assert tiers["cache_hit_rate"] == tiers["multi_turn_consistency"] == "dialogue"


def test_bands_are_mirrored_where_lower_is_better() -> None:
    aspect = find("aspect")
    met = aspect.adapted(rb.RagSample("q"), {"definition": "x"})
    not_met = aspect.adapted(rb.RagSample("q"), {"definition": "x", "direction": "lower"})
    assert [met.band(value) for value in (1.0, 0.0)] == ["good", "attention"]
    assert [not_met.band(value) for value in (1.0, 0.0)] == ["attention", "good"]

    @metric("test_share_of_errors", tier="generation", bands={"excellent": 0.9, "good": 0.6})
    def share(sample: rb.RagSample) -> float:
        """A share."""
        return 0.3

    lower = find("test_share_of_errors").turned("lower")
    assert dict(lower.bands) == {"excellent": pytest.approx(0.1), "good": pytest.approx(0.4)}
    bands = [lower.band(value) for value in (0.05, 0.3, 0.9)]
    assert bands == ["excellent", "good", "attention"]
    assert lower.turned("higher").bands == pytest.approx(find("test_share_of_errors").bands)

    @metric("test_latency", tier="generation", low=10, high=20, bands={"good": 18})
    def latency(sample: rb.RagSample) -> float:
        """Some seconds."""
        return 12.0

    assert dict(find("test_latency").turned("lower").bands) == {"good": 12}


def test_default_bands_follow_the_direction() -> None:
    for direction, bands in (("higher", ["attention", "excellent"]), ("lower", ["excellent", "attention"])):
        name = f"test_default_{direction}"

        def formula(sample: rb.RagSample) -> float:
            """Nothing."""
            return 0.0

        metric(name, tier="generation", direction=direction)(formula)  # type: ignore[arg-type]
        assert [find(name).band(value) for value in (0.05, 0.95)] == bands
