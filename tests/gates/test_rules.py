from __future__ import annotations

import math

import pytest

from pytest_ragbench.gates.rules import Rule, parse_rule, parse_rules, rules_of
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.thresholds import Scale


@pytest.mark.parametrize(
    ("text", "kind", "statistic", "limit"),
    [
        ("faithfulness >= 0.85", "sure", "mean", 0.85),
        ("faithfulness 0.85", "sure", "mean", 0.85),
        ("faithfulness good", "sure", "mean", 0.7),
        ("faithfulness>=0.85 with 95% confidence", "confident", "mean", 0.85),
        ("faithfulness mean >= 0.8", "plain", "mean", 0.8),
        ("faithfulness p10 >= 0.5", "plain", "p10", 0.5),
        ("faithfulness min >= 0.2", "plain", "min", 0.2),
        ("faithfulness pass_rate >= 0.9", "sure", "pass_rate", 0.9),
        ("ndcg@10 >= 0.6", "sure", "mean", 0.6),
        ("noise_sensitivity <= 0.2", "sure", "mean", 0.2),
        ("pass_rate >= 0.9 with 95% confidence", "confident", "mean", 0.9),
        ("latency p95 <= 2", "plain", "p95", 2),
        ("first_token p95 <= 2", "plain", "p95", 2),
        ("latency mean <= 2", "plain", "mean", 2),
        ("faithfulness pass_rate >= 0.9 with 95% confidence", "confident", "pass_rate", 0.9),
        ("noise_sensitivity pass_rate >= 0.9", "sure", "pass_rate", 0.9),
        ("error_rate <= 0.02 with 95% confidence", "confident", "mean", 0.02),
        ("faithfulness max >= 0.9", "plain", "max", 0.9),
        ("latency p95 <= 2 with 90% confidence", "confident", "p95", 2),
        ("cost <= 0.5", "plain", "mean", 0.5),
        ("error_rate <= 0.02", "plain", "mean", 0.02),
        ("search_rag_groundedness >= 0.7", "sure", "mean", 0.7),
    ],
)
def test_rules(text: str, kind: str, statistic: str, limit: float) -> None:
    rule = parse_rule(text)
    assert (rule.kind, rule.statistic, rule.limit) == (kind, statistic, limit)


def test_baseline_rules() -> None:
    rule = parse_rule("faithfulness no worse than baseline by more than 0.02")
    assert (rule.kind, rule.margin, rule.higher) == ("baseline", 0.02, True)
    assert parse_rule("noise_sensitivity no worse than the baseline").margin == 0
    assert not parse_rule("noise_sensitivity no worse than the baseline").higher
    for quantity in ("pass_rate", "latency", "first_token"):
        assert parse_rule(f"{quantity} no worse than baseline").kind == "baseline"
    with pytest.raises(UsageError, match="there is no threshold"):
        _ = rule.limit


def test_subsets() -> None:
    rule = parse_rule("faithfulness[lang=ru, tag='refunds'|returns] >= 0.8")
    assert rule.subset == (("lang", ("ru",)), ("tag", ("refunds", "returns")))
    assert rule.name == "faithfulness[lang=ru,tag=refunds|returns]"


def test_a_confidence_is_read() -> None:
    assert parse_rule("faithfulness >= 0.8 with 99.5% confidence").confidence == pytest.approx(0.995)
    assert parse_rule("faithfulness >= 0.8").confidence == 0.95


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("faithfullness >= 0.8", "did you mean 'faithfulness'"),
        ("faithfulness", "the rule is missing"),
        ("faithfulness mean", "the threshold is missing"),
        ("faithfulness >= 1.2", "outside its range"),
        ("faithfulness <= 0.8", "points the wrong way"),
        ("faithfulness >= 80%", "0.8"),
        ("faithfulness => 0.8", "Did you mean"),
        ("faithfulness 0.7..0.9", "one limit"),
        ("faithfulness == 1", "one limit"),
        ("faithfulness[language=ru] >= 0.8", "known: tag, lang"),
        ("faithfulness[lang] >= 0.8", "chooses no questions"),
        ("faithfulness[lang=] >= 0.8", "'lang=' chooses no questions"),
        ("faithfulness[metric=mrr] >= 0.8", "is for pass_rate"),
        ("faithfulness >= 0.8 with 40% confidence", "confidence above 50%"),
        ("faithfulness >= 0.8 with 50% confidence", "confidence above 50%"),
        ("faithfulness min >= 0.8 with 95% confidence", "nothing can be said"),
        ("faithfulness max >= 0.8 with 95% confidence", "nothing can be said"),
        ("pass_rate p10 >= 0.8", "leave 'p10' out"),
        ("pass_rate pass_rate >= 0.8", "pass_rate is for metrics"),
        ("error_rate mean <= 0.1", "leave 'mean' out"),
        ("cost no worse than baseline", "can't be paired"),
        ("error_rate no worse than baseline", "can't be paired"),
        ("cost <= 2 with 95% confidence", "the cost of a run is known"),
        ("latency <= 2", r"'latency p95 <=2'.*'with 95% confidence'.*'latency mean <=2'"),
        ("latency mean <= 2 with 95% confidence", "no highest value"),
        ("must_pass >= 1", "takes no threshold"),
        (">= 0.8", "begins with a metric"),
        ("", "begins with a metric"),
    ],
)
def test_what_can_not_be_meant_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_rule(text)


def test_a_table_of_gates() -> None:
    rules = parse_rules(
        {"faithfulness": ">= 0.85", "ndcg@10": 0.6, "must_pass[lang=ja]": True, "pass_rate[lang=ja]": ">=0.9"}
    )
    assert [rule.name for rule in rules] == [
        "faithfulness",
        "ndcg@10",
        "must_pass[lang=ja]",
        "pass_rate[lang=ja]",
    ]
    assert parse_rules({"must_pass": "all"})[0].kind == "must_pass"
    wrong: tuple[object, ...] = (True, None, [0.8], {})
    for value in wrong:
        with pytest.raises(UsageError, match=r"^\[gates\] faithfulness: .*a string or a number"):
            parse_rules({"faithfulness": value})
    with pytest.raises(UsageError, match=r"^\[gates\] must_pass: .*a string or a number, got False"):
        parse_rules({"must_pass": False})


def test_what_is_typed_replaces_what_is_configured_of_that_name() -> None:
    configured = {"faithfulness": ">= 0.85", "faithfulness[lang=ru]": ">= 0.8", "mrr": ">= 0.5"}

    def texts(*typed: str, only_typed: bool = False) -> list[str]:
        return [rule.text for rule in rules_of(configured, typed, only_typed=only_typed)]

    others = ["faithfulness[lang=ru] >= 0.8", "mrr >= 0.5"]
    assert texts("faithfulness p10 >= 0.5") == [*others, "faithfulness p10 >= 0.5"]
    # A mean and a percentile of one metric are two gates; the same kind twice is a correction.
    assert texts("faithfulness >= 0.7", "faithfulness p10 >= 0.5", "faithfulness >= 0.9") == [
        *others,
        "faithfulness >= 0.9",
        "faithfulness p10 >= 0.5",
    ]
    assert texts("bleu >= 20", only_typed=True) == ["bleu >= 20"]
    assert texts() == ["faithfulness >= 0.85", *others]


def test_a_metric_without_ends_has_no_confident_mean() -> None:
    def endless(text: str) -> Rule:
        return parse_rule(text, lambda _: Scale("score", low=-math.inf, high=1.0))

    assert endless("score p10 >= -2").kind == "plain"
    for text in ("score >= 0.5", "score mean >= 0.5 with 95% confidence"):
        with pytest.raises(UsageError, match="score has no lowest value"):
            endless(text)
