"""Overlap metrics through the product; their formulas are tested in tests/formulas."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench import (
    QualityFailure,
    RagSample,
    UsageError,
    assert_bleu,
    assert_over,
    assert_rouge,
    score,
    score_over,
)


def sample(answer: str, reference: str, **more: Any) -> RagSample:
    return RagSample("q", answer, reference=reference, **more)


EN = sample("Paris is the capital of France", "The capital of France is Paris")


def test_values() -> None:
    assert score("rouge1", EN).value == 1.0  # RO1
    assert score("rouge2", EN).value == pytest.approx(0.6)
    assert score("rougeL", EN).value == pytest.approx(2 / 3)
    assert score("bleu", EN).value == pytest.approx(34.3295, abs=1e-4)  # BL1
    assert score("bleu", sample("Hello world", "Hello world")).value == 100.0  # BL2
    moved = sample("The cat sat on the mat. Dogs barked.", "The cat sat on the mat. It was a sunny day.")
    assert score("bleu", moved).value == pytest.approx(48.9409, abs=1e-4)  # BL3
    assert 0 < score("chrf", EN).value < 100
    assert score("token_f1", EN).value == 1.0
    assert score("exact_match", sample("«Париж».", "париж")).value == 1.0
    assert score("string_similarity", sample("abcd", "abxd")).value == 0.75


def test_russian_and_japanese() -> None:
    ru = sample("Столицей России является Москва.", "Москва является столицей России.")
    assert [score(name, ru).value for name in ("rouge1", "rouge2", "rougeL")] == pytest.approx(
        [1, 1 / 3, 0.5]
    )  # RO2
    ja = sample("東京は日本の首都です。", "日本の首都は東京です。")
    assert [score(name, ja).value for name in ("rouge1", "rouge2", "rougeL")] == pytest.approx(
        [1, 2 / 3, 0.7]
    )  # RO3
    assert score("bleu", ja).value > 30
    assert "tok:intl" in score("bleu", ru).details["signature"]
    assert "tok:13a" in score("bleu", EN).details["signature"]


def test_parts_and_signatures() -> None:
    found = score("rouge1", sample("Заявление подаётся", "Заявление на отпуск подаётся"), part="recall")
    assert (found.value, found.details["precision"], found.details["f1"]) == (0.5, 1.0, pytest.approx(2 / 3))
    assert found.details["signature"].startswith("tok:unicode|stem:no")
    spaced = sample("返金 の 申請 は 七 日 以内", "返金 は 七 日 以内 に 申請")
    assert score("rouge1", spaced, tokenizer="whitespace").value == pytest.approx(6 / 7)
    with pytest.raises(UsageError, match="part"):
        score("rouge1", EN, part="recal")


def test_gates_on_bleu() -> None:
    same = sample("Возврат в течение семи дней.", "Возврат в течение семи дней.")
    for threshold in (">=100", "==100", 100, "99..100"):
        assert assert_bleu(same, threshold).value == 100.0
    with pytest.raises(QualityFailure, match="bleu 34"):
        assert_bleu(EN, ">=50")
    with pytest.raises(UsageError, match="range 0..100"):
        assert_bleu(EN, ">=101")


def test_rouge_helper() -> None:
    assert assert_rouge(EN, ">=0.5").metric == "rougeL"
    assert assert_rouge(EN, ">=1", kind="rouge1").value == 1.0
    with pytest.raises(QualityFailure, match="rouge2 0.60, wanted >=0.9: the reference is"):
        assert_rouge(EN, ">=0.9", kind="rouge2")


@pytest.mark.parametrize(
    "name", ["rouge1", "rougeL", "bleu", "chrf", "exact_match", "token_f1", "string_similarity"]
)
def test_nothing_to_compare(name: str) -> None:
    assert score(name, sample("", "Возврат за 7 дней")).value == 0.0
    for blank in ("", "   "):
        with pytest.raises(UsageError, match="reference"):
            score(name, sample("Возврат за 7 дней", blank))
    with pytest.raises(UsageError, match="answer"):
        score(name, RagSample("q", None, reference="x"))


@pytest.mark.parametrize("name", ["rouge1", "rouge2", "token_f1"])
def test_no_tokens_on_either_side(name: str) -> None:
    with pytest.raises(UsageError, match=r"no token.*reference"):
        score(name, sample("👍👍", "👍👍"))
    assert score(name, sample("Да", "???")).value == 0.0


def test_bleu_over_a_set() -> None:
    samples = [
        sample("Hello world", "Hello world", id="a"),
        sample("The cat sat on the mat", "The cat sat on a mat", id="b"),
    ]
    mean = score_over(samples, "bleu")
    assert mean.value == pytest.approx(sum(score("bleu", one).value for one in samples) / 2)
    corpus = score_over(samples, "corpus_bleu")
    assert corpus.value != pytest.approx(mean.value)
    assert "eff:no" in corpus.details["signature"]
    with pytest.raises(QualityFailure, match=r"bleu .*wanted >=90"):
        assert_over(samples, "bleu", ">=90")
    with pytest.raises(UsageError, match="assert_over"):
        score("corpus_bleu", samples[0])
    with pytest.raises(UsageError, match="reference"):
        score_over([samples[0].with_(reference=None)], "corpus_bleu")


def test_the_language_of_a_sample_chooses_the_tokenizer() -> None:
    spaced = sample("a b c d e", "a b c d e", lang="zh")
    assert "tok:zh" in score("bleu", spaced).details["signature"]
    corpus = score_over([EN, spaced], "corpus_bleu")
    assert "tok:zh" in corpus.details["signature"]  # of the first that names one
    assert "tok:intl" in score_over([EN, spaced], "corpus_bleu", lang="ru").details["signature"]
    assert (corpus.reason, corpus.details["n_items"]) == ("2 answers", 2)


def test_what_is_compared_is_told() -> None:
    wanted = "the reference is: The capital of France is Paris"
    for name in ("rouge1", "bleu", "chrf", "exact_match", "token_f1", "string_similarity"):
        assert score(name, EN).reason == wanted
    [shown] = score("string_similarity", EN).evidence
    assert (shown.text, shown.reason) == (EN.reference, "reference")
    assert score("exact_match", sample("a", "x" * 200)).reason == f"the reference is: {'x' * 159}…"
