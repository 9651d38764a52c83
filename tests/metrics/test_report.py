"""Metrics of all tiers in one run of a user's project: table, JSON, both ways to run."""

from __future__ import annotations

import pytest

from tests.metrics.conftest import Project

TESTS = """
import json
import pytest, pytest_ragbench as rb

VECTORS = {"a": [1.0, 0.0], "a2": [0.9, 0.1], "b": [0.0, 1.0], "b2": [0.1, 0.9]}
SAMPLES = [
    rb.RagSample(text, "It is open.", cluster=text[0], session=text[0], reference="It is open.", id=text)
    for text in VECTORS
]

@pytest.fixture
def embedder():
    return lambda texts: [VECTORS[text] for text in texts]

@pytest.fixture
def judge():
    def reply(messages):
        if "agrees with the answers before it" in messages[0]["content"]:
            return json.dumps({"verdicts": {"2": {"verdict": True}}})
        return json.dumps({"rating": 2, "grade": 1, "verdict": False, "reason": "good"})
    return reply

def test_embedding():
    rb.assert_silhouette(SAMPLES, ">=0.5")

def test_generation():
    rb.assert_over(SAMPLES, "rougeL", "==1")
    rb.assert_rouge(SAMPLES[0], "good")

@pytest.mark.asyncio
async def test_async():
    await rb.aassert_metric("aspect", SAMPLES[0], "==0", definition="Is it rude?", direction="lower")
    await rb.aassert_quality(SAMPLES[0], {"rougeL": ">=0.9"}, bleu="==100")

def test_end_to_end():
    rb.assert_quality(SAMPLES[0], answer_accuracy="==1", e2e_score=">=0.8")

def test_judge():
    rb.assert_judge_consistency(SAMPLES, "excellent", by="e2e_score")
    rb.assert_judge_accuracy([("yes", True), ("no", True)], ">=0.5")

def test_dialogue():
    rb.assert_multi_turn_consistency(SAMPLES, "==1")
    rb.assert_context_preservation(SAMPLES, ">=0.9")

def test_a_miss():
    rb.assert_cache_hit_rate(SAMPLES, ">=0.5", cutoff=0.999)
"""


@pytest.mark.parametrize("how", [[], ["-n", "2"]], ids=["one process", "two workers"])
def test_tiers(project: Project, how: list[str]) -> None:
    project.write(test_a_py=TESTS)
    result = project.run("--ragbench-json=out.json", *how)
    result.assert_outcomes(passed=6, failed=1)
    for line in (
        "embedding*silhouette*excellent",
        "generation*aspect*0.000*good",
        "*rougeL*good",
        "end to end*answer_accuracy*excellent",
        "*e2e_score*1.000*excellent",
        "judge *judge_consistency*1.000*excellent",
        "judge pipeline*judge_accuracy*0.500*attention",
        "dialogue*cache_hit_rate*0.000*1/1*attention",
        "*multi_turn_consistency*1.000*",
        "FAILED*cache_hit_rate 0.00, wanted >=0.5: 0 hits among 4 questions, 4 cached",
    ):
        result.stdout.fnmatch_lines([line])
    scores = [score for record in project.report()["results"] for score in record["scores"]]
    by_name = {score["metric"]: score for score in scores}
    assert by_name["judge_consistency"]["details"]["n_items"] == 4
    assert by_name["silhouette"]["details"]["distance"] == "cosine"
    assert by_name["judge_accuracy"]["tier"] == "judge_pipeline"
