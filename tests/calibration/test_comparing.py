"""JSON verdicts and verdicts by probability, on the same labels."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from pytest_ragbench.calibration.comparing import auc_gain, consistency, valued
from pytest_ragbench.calibration.labels import Label
from tests.calibration.test_agreement import label, read
from tests.cli.conftest import Cli, cli  # noqa: F401 - a fixture
from tests.judge.test_one_word import reply as words
from tests.servers.openai_server import OpenAIServer, Reply


def judged(values: list[float], truth: list[bool]) -> list[Label]:
    rows = [
        label(value >= 0.5, human, n=n, value=value)
        for n, (value, human) in enumerate(zip(values, truth, strict=True))
    ]
    return read(rows)


def test_the_gain_is_the_difference_of_two_aucs() -> None:
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(3)
    truth = (rng.random(80) < 0.5).tolist()
    fine = np.clip(np.where(truth, 0.6, 0.4) + rng.normal(0, 0.15, 80), 0, 1).tolist()
    plain = [label.model_copy(update={"value": None}) for label in judged(fine, truth)]
    said = [float(value >= 0.5) for value in fine]
    gain = auc_gain(valued(plain), judged(fine, truth))
    assert gain.value == pytest.approx(roc_auc_score(truth, fine) - roc_auc_score(truth, said))
    assert gain.value is not None
    assert gain.low is not None
    assert gain.high is not None
    assert gain.low < gain.value < gain.high
    assert auc_gain(judged(fine, [True] * 80), judged(fine, [True] * 80)).value is None
    same = auc_gain(judged(fine, truth), judged(fine, truth))
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_consistency_beside_chance() -> None:
    once, twice = judged([1, 1, 0, 0], [True] * 4), judged([1, 0, 0, 0], [True] * 4)
    found = consistency([once, twice])
    assert found == {"value": 0.75, "chance": pytest.approx((3 / 8) ** 2 + (5 / 8) ** 2)}
    assert consistency([once]) is None


def test_calibrate_compares_both_ways(cli: Cli) -> None:  # noqa: F811
    """In JSON the judge passes everything; by probability it is rightly unsure."""

    def handler(messages: list[dict[str, str]], schema: Any) -> Any:
        if schema is not None:
            return {"verdicts": {"1": {"reason": "sure", "chunk": 1, "verdict": True}}}
        good = "good" in messages[-1]["content"].rpartition("<claim")[2]
        return Reply(body=words({"Yes": 0.9, "No": 0.1} if good else {"Yes": 0.3, "No": 0.6}))

    rows = [
        label(True, n % 2 == 0, n=n, claim=f"A {'good' if n % 2 == 0 else 'bad'} claim {n}.")
        for n in range(12)
    ]
    cli.write("labels.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with OpenAIServer(handler) as server:
        cli.write(
            "ragbench.toml", f'judge = "lab:m"\nstore = "off"\n[providers.lab]\nbase_url = "{server.url}"\n'
        )
        ran = cli("calibrate", "labels.jsonl", "--ask", "--verdicts", "both", "--repeats", "2", "--json")
        shown = cli("calibrate", "labels.jsonl", "--ask", "--verdicts", "both").out
    assert ran.code == 0
    groups = ran.data["groups"]
    assert groups["faithfulness (claims)"]["tnr"]["value"] == 0
    by_probability = groups["faithfulness (claims, by probability)"]
    assert (by_probability["accuracy"]["value"], by_probability["auc"]["value"]) == (1, 1)
    assert by_probability["best_threshold"] == pytest.approx(0.9)
    assert ran.data["auc_gain"]["value"] == 0.5
    assert ran.data["consistency_by_probability"] == {"value": 1.0, "chance": 0.5}
    assert "AUC by probability minus AUC of JSON verdicts: 0.500 (0.500 to 0.500)" in shown
    # The local judge grades each verdict on its own: there is nothing to ask for in a word.
    graded = cli("calibrate", "labels.jsonl", "--ask", "--verdicts", "both", "--judge", "local", "--json")
    assert {"faithfulness (claims)", "faithfulness (claims, by probability)"} <= set(graded.data["groups"])
    assert cli("calibrate", "labels.jsonl", "--verdicts", "both").code == 4
