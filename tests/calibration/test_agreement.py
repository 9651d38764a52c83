"""Agreement with people: worked values, scikit-learn, and a judge that is asked again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ragbench import JudgeError, QualityFailure, UsageError, assert_judge_agreement
from pytest_ragbench.calibration.agreement import agreement
from pytest_ragbench.calibration.labels import Label, higher_is_better, read_labels
from pytest_ragbench.model.errors import UndefinedScore
from pytest_ragbench.model.thresholds import Scale
from pytest_ragbench.statistics.agreement import auc, best_threshold
from pytest_ragbench.statistics.correction import ppi_mean, rogan_gladen
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture

CONTEXT = "Refunds are paid within 14 days."


def label(verdict: bool, human: bool, **more: Any) -> dict[str, Any]:
    row = {
        "question_id": f"q{more.pop('n', 0)}",
        "metric": "faithfulness",
        "claim": "A claim.",
        "verdict": verdict,
        "label": "right" if verdict == human else "wrong",
        "human_verdict": human,
        "question": "How long?",
        "answer": "A claim.",
        "contexts": [CONTEXT],
    }
    return row | more


def labels(tp: int, fp: int, fn: int, tn: int, **more: Any) -> list[dict[str, Any]]:
    kinds = [(True, True)] * tp + [(True, False)] * fp + [(False, True)] * fn + [(False, False)] * tn
    return [label(said, human, n=n, **more) for n, (said, human) in enumerate(kinds)]


def read(rows: list[dict[str, Any]]) -> list[Label]:
    return [Label.model_validate(row) for row in rows]


def test_kappa_and_ac1_of_the_specification() -> None:
    """90 of 100 agree, both say yes to 90 %."""
    found = agreement(read(labels(85, 5, 5, 5)))
    kappa, ac1 = found.estimates["kappa"], found.estimates["ac1"]
    assert kappa.value == pytest.approx(0.444444, abs=1e-6)
    assert ac1.value == pytest.approx(0.878049, abs=1e-6)
    assert kappa.low is not None
    assert kappa.high is not None
    assert kappa.low < 0.4444 < kappa.high
    assert found.estimates["tnr"].value == 0.5
    assert len(found.disagreements) == 10
    assert all(each.verdict for each in found.disagreements[:5])  # what was let through comes first


def test_one_kind_of_labels_leaves_kappa_undefined() -> None:
    found = agreement(read(labels(20, 0, 0, 0)))
    assert found.estimates["kappa"].value is None
    assert found.estimates["accuracy"].value == 1.0
    assert found.estimates["tnr"].value is None


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=2, max_size=40))
def test_auc_is_that_of_scikit_learn(pairs: list[tuple[int, bool]]) -> None:
    from sklearn import metrics as sk

    values, truth = [value / 10 for value, _ in pairs], [kind for _, kind in pairs]
    if len(set(truth)) < 2:
        with pytest.raises(UndefinedScore):
            auc(values, truth)
        return
    assert auc(values, truth) == pytest.approx(sk.roc_auc_score(truth, values))
    fpr, tpr, _limits = sk.roc_curve(truth, values, drop_intermediate=False)
    t = best_threshold(values, truth)
    reached = np.mean(np.array(values)[truth] >= t) - np.mean(np.array(values)[~np.array(truth)] >= t)
    # The curve's first point, where nothing is good enough, is no score that occurs.
    assert reached == pytest.approx(max((tpr - fpr)[1:]))


def test_rogan_gladen() -> None:
    found = rogan_gladen(0.85, 0.95, 0.70, n=200, n_positive=60, n_negative=40)
    assert found.value == pytest.approx(0.846154, abs=1e-6)
    assert found.error == pytest.approx(0.056076, abs=1e-6)
    with pytest.raises(UndefinedScore):
        rogan_gladen(0.5, 0.5, 0.5, n=10, n_positive=5, n_negative=5)


@pytest.mark.parametrize(
    ("share", "tpr", "tnr", "sizes"),
    [(0.85, 0.95, 0.70, (200, 60, 40)), (0.6, 0.9, 0.9, (300, 150, 150)), (0.3, 0.8, 0.95, (100, 80, 80))],
)
def test_the_error_of_rogan_gladen_is_that_of_a_bootstrap(
    share: float, tpr: float, tnr: float, sizes: tuple[int, int, int]
) -> None:
    """All three shares are drawn anew: the run's, and the two of the labels. The naive error has only the first."""
    n, n_positive, n_negative = sizes
    rng = np.random.default_rng(11)
    drawn = rng.binomial(n, share, 40_000) / n
    hits = rng.binomial(n_positive, tpr, 40_000) / n_positive
    rejects = rng.binomial(n_negative, tnr, 40_000) / n_negative
    values = (drawn + rejects - 1) / (hits + rejects - 1)
    found = rogan_gladen(share, tpr, tnr, n=n, n_positive=n_positive, n_negative=n_negative)
    assert found.error == pytest.approx(values.std(), rel=0.1)
    naive = (share * (1 - share) / n) ** 0.5
    assert found.error > 1.1 * naive
    assert np.mean(np.abs(values - found.value) <= 1.96 * found.error) == pytest.approx(0.95, abs=0.02)


def test_ppi_holds_what_its_interval_promises() -> None:
    """A lenient judge (TPR .98, TNR .50), 400 verdicts, 80 labels of other items; the true mean is .8.

    It is inside 95 times of 100; in the judge's own interval hardly ever.
    """
    rng = np.random.default_rng(5)
    inside = naive_inside = 0
    for _ in range(400):
        truth = rng.random(480) < 0.8
        judged = np.where(truth, rng.random(480) < 0.98, rng.random(480) < 0.5).astype(float)
        found = ppi_mean(judged[:400].tolist(), judged[400:].tolist(), truth[400:].astype(float).tolist())
        inside += found.low <= 0.8 <= found.high
        mean = judged[:400].mean()
        naive_inside += abs(mean - 0.8) <= 1.96 * (mean * (1 - mean) / 400) ** 0.5
    assert 0.92 <= inside / 400 <= 0.98
    assert naive_inside / 400 < 0.05


def test_ppi_by_its_published_formula() -> None:
    """Angelopoulos et al. 2023, algorithm 1: the variances of the verdicts and of the corrections add up."""
    judged, human, others = [0.9, 0.4, 0.8, 0.7], [1.0, 0.0, 1.0, 0.0], [0.6, 0.9, 0.5, 0.7, 0.8]
    rectifier = np.array(human) - np.array(judged)
    error = (np.var(others, ddof=1) / 5 + np.var(rectifier, ddof=1) / 4) ** 0.5
    found = ppi_mean(others, judged, human)
    assert (found.value, found.error) == pytest.approx((np.mean(others) + rectifier.mean(), error))


def test_ppi_finds_the_mean_behind_a_lenient_judge() -> None:
    rng = np.random.default_rng(3)
    truth = rng.random(4000) < 0.8
    judged = np.where(truth, rng.random(4000) < 0.98, rng.random(4000) < 0.5)
    said, right = judged.astype(float).tolist(), truth.astype(float).tolist()
    found = ppi_mean(said, said[:400], right[:400])
    assert judged.mean() > 0.87
    assert found.low < 0.8 < found.high
    assert found.high < judged.mean()


def test_labels_files(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    rows = [
        label(True, True, n=1),
        label(True, True, n=1, human_verdict=False, label="wrong"),
        label(True, True, n=2),
    ]
    file.write_text("\n\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    assert [each.human_verdict for each in read_labels(file)] == [False, True]
    for broken, said in (
        ("{", "no JSON"),
        (json.dumps({**rows[0], "label": "wrong"}), "label is 'wrong'"),
        (json.dumps({"metric": "faithfulness"}), "question_id"),
        ("", "no label"),
    ):
        file.write_text(broken, encoding="utf-8")
        with pytest.raises(UsageError, match=said):
            read_labels(file)


def judge_says(verdict: bool) -> Any:
    def judge(messages: list[dict[str, str]]) -> str:
        return json.dumps({"verdicts": {"1": {"reason": "because", "chunk": None, "verdict": verdict}}})

    return judge


def test_a_judge_is_held_against_labels_in_a_test() -> None:
    known = read(labels(10, 0, 0, 10))
    with pytest.raises(QualityFailure, match=r"kappa 0.000 .*wanted >=0.6") as failure:
        assert_judge_agreement(known, judge=judge_says(True), kappa=">=0.6", tpr=">=0.9")
    assert "people say no:  the judge says yes 10, no 0" in str(failure.value)
    assert "judge yes: because" in str(failure.value)
    assert assert_judge_agreement(known, judge=judge_says(True), tpr="==1").estimates["tnr"].value == 0
    with pytest.raises(UsageError, match="no threshold"):
        assert_judge_agreement(known, judge=judge_says(True))
    with pytest.raises(JudgeError, match="20 of 20 labels got no verdict"):
        assert_judge_agreement(known, judge=lambda messages: "nonsense", kappa=">=0")
    with pytest.raises(UsageError, match="no contexts"):
        assert_judge_agreement(read([label(True, True, contexts=None)]), judge=judge_says(True), kappa=">=0")


def test_calibrate(cli: Cli) -> None:  # noqa: F811
    rows = labels(45, 5, 2, 48)
    cli.write("labels.jsonl", "\n".join(map(json.dumps, rows)))
    ran = cli("calibrate", "labels.jsonl", "--kappa", ">=0.9")
    assert ran.code == 1
    assert "faithfulness (claims): 100 labels" in ran.out
    assert "kappa    0.860" in ran.out
    evidence = [{"text": "c", "ok": n % 10 != 0} for n in range(100)]
    score = {"metric": "faithfulness", "tier": "generation", "evidence": evidence, "value": 0.9}
    result = {"test": "t", "outcome": "passed", "scores": [score]}
    run = {"schema": "ragbench-report", "version": 1, "run": {"id": "r", "started": 1}, "results": [result]}
    cli.write("run.json", json.dumps({**run, "complete": True}))
    data = cli("calibrate", "labels.jsonl", "--report", "run.json", "--json").data
    entry = data["corrected"]["faithfulness (claims)"]
    assert entry["as_judged"] == 0.9
    # TPR 45/47, TNR 48/53
    assert entry["rogan_gladen"]["value"] == pytest.approx((0.9 + 48 / 53 - 1) / (45 / 47 + 48 / 53 - 1))
    assert entry["ppi"]["value"] == pytest.approx(0.9 - 0.03)


def test_calibrate_asks_the_judge_again(cli: Cli) -> None:  # noqa: F811
    supported = [label(False, True, n=n, claim="Refunds are paid within 14 days.") for n in range(3)]
    wrong = [label(True, False, n=n + 3, claim="Refunds are paid within 90 days.") for n in range(3)]
    cli.write("labels.jsonl", "\n".join(map(json.dumps, [*supported, *wrong])))
    ran = cli("calibrate", "labels.jsonl", "--ask", "--judge", "local", "--repeats", "2", "--json")
    assert ran.code == 0
    assert ran.data["groups"]["faithfulness (claims)"]["accuracy"]["value"] == 1.0
    assert ran.data["consistency"] == {"value": 1.0, "chance": 0.5}
    assert cli("calibrate", "labels.jsonl", "--repeats", "2").code == 4


def test_less_may_be_better() -> None:
    """So say the report, the registry or the labels' thresholds; else there is neither AUC nor best threshold."""

    def labels(metric: str, threshold: str | None) -> list[Label]:
        rows = [(0.1, True), (0.2, True), (0.3, True), (0.6, False), (0.9, False)]
        return [
            Label(
                question_id=str(n), metric=metric, claim=None, verdict=human, human_verdict=human, value=value,
                threshold=threshold,
            )
            for n, (value, human) in enumerate(rows)
        ]  # fmt: skip

    found = agreement(
        labels("noise_sensitivity", None), higher=higher_is_better(labels("noise_sensitivity", None))
    )
    assert (found.best_threshold, found.estimates["auc"].value) == (0.3, 1.0)
    assert found.to_dict()["direction"] == "lower"
    own = labels("slips_of_mine", "<=0.5")
    assert higher_is_better(own) is False
    assert higher_is_better(labels("slips_of_mine", None)) is None
    assert higher_is_better(own, lambda metric: Scale(metric, direction="higher")) is True
    unknown = agreement(own, higher=None)
    assert (unknown.best_threshold, "auc" in unknown.estimates) == (None, False)
