"""Text overlap: worked values in en, ru, ja, and rouge-score and sacrebleu as oracles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_ragbench.metrics.formulas import overlap as o
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.thresholds import Scale, parse_threshold
from pytest_ragbench.text import tokens

close = pytest.approx


def f1s(answer: str, reference: str | list[str], **options: Any) -> list[float]:
    return [score.f1 for score in o.rouge(answer, reference, **options).values()]


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("Paris is the capital of France", "The capital of France is Paris", [1, 0.6, 2 / 3]),
        ("Столицей России является Москва.", "Москва является столицей России.", [1, 1 / 3, 0.5]),
        ("日本の首都は東京です。", "東京は日本の首都です。", [1, 2 / 3, 0.7]),
        ("Кружка стоит на столе", "Кружка стоит на столе", [1, 1, 1]),
        ("会議は月曜日です", "会議は月曜日です", [1, 1, 1]),
        ("犬と猫", "空が青い", [0, 0, 0]),
        ("Поезд ушёл в 2023", "Дождь шёл весь день, 2023", [2 / 9, 0, 2 / 9]),
    ],
)
def test_rouge_in_three_languages(answer: str, reference: str, expected: list[float]) -> None:
    assert f1s(answer, reference) == close(expected, abs=1e-9)


def test_rouge_precision_and_recall() -> None:
    # 4 answer tokens, all among the 6 of the reference; 2 of 3 and 2 of 5 bigrams.
    found = o.rouge("ключ лежит под ковриком", "запасной ключ всегда лежит под ковриком")
    assert found["rouge1"] == close((1, 4 / 6, 0.8))
    assert found["rouge2"] == close((2 / 3, 2 / 5, 0.5))
    assert found["rougeL"] == close((1, 4 / 6, 0.8))


def test_rouge_tokenizers() -> None:
    reference, answer = "配送 は 三 日 以内 に 到着", "配送 の 到着 は 三 日 以内"
    found = o.rouge(answer, reference, tokenizer="whitespace")
    assert [found[name].f1 for name in o.ROUGE_TYPES] == close([6 / 7, 0.5, 5 / 7])
    assert f1s("a,b", "b,a", tokenizer=lambda text: text.split(",")) == close([1, 0, 0.5])
    assert f1s("snake_case", "snake case") == [1, 1, 1]
    assert f1s("й", "й") == [1, 0, 1]  # one code point and two: the same letter
    assert f1s("naïve", "naive") == [0, 0, 0]
    assert f1s("ёлка", "елка") == [0, 0, 0]
    assert f1s("ёлка и ёж", "елка и еж", fold_yo=True) == [1, 1, 1]
    assert f1s("running dogs", "run dog") == [0, 0, 0]
    assert f1s("running dogs", "run dog", stem=True) == [1, 1, 1]
    assert f1s("собаки", "собака", stem=True) == [0, 0, 0]


def test_the_best_of_several_references_counts() -> None:
    assert f1s("кот спит", ["пёс лает", "кот спит", "👍"]) == [1, 1, 1]
    assert o.token_f1("кот спит", ["пёс лает", "кот спит дома"]) == close(0.8)
    assert o.bleu("The cat sleeps at home", ["A dog barks", "The cat sleeps at home"]).value == 100.0


def test_rouge_signature_tells_what_the_value_depends_on() -> None:
    assert o.rouge_signature().startswith("tok:unicode|stem:no|yo:kept|version:rouge-score ")
    assert o.rouge_signature("whitespace", stem=True, fold_yo=True).startswith(
        "tok:whitespace|stem:porter|yo:e|"
    )


words = st.text("abcXYZ019 .,-_'\n", max_size=40)


@given(words, words, st.booleans())
@settings(deadline=None)
def test_ascii_scores_are_those_of_rouge_score(answer: str, reference: str, stem: bool) -> None:
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")
    if not reference.strip() or not tokens(answer + reference):
        return
    oracle = rouge_scorer.RougeScorer(list(o.ROUGE_TYPES), use_stemmer=stem).score(reference, answer)
    mine = o.rouge(answer, reference, stem=stem)
    for name in o.ROUGE_TYPES:
        assert tuple(mine[name]) == close(tuple(oracle[name]), abs=1e-9)


@pytest.mark.parametrize("metric", [o.rouge, o.bleu, o.chrf, o.token_f1, o.exact_match])
@pytest.mark.parametrize("reference", ["", "   ", "\n", [], ["хорошо", " "]])
def test_a_blank_reference_is_the_authors_mistake(metric: Any, reference: Any) -> None:
    with pytest.raises(UsageError, match=r"reference is (blank|missing)"):
        metric("Возврат за 7 дней", reference)


def test_an_empty_answer_scores_zero() -> None:
    for blank in ("", "  "):
        assert f1s(blank, "Возврат за 7 дней") == [0, 0, 0]
        assert o.bleu(blank, "Возврат за 7 дней").value == o.chrf(blank, "Возврат за 7 дней").value == 0.0
        assert o.exact_match(blank, "Возврат") == o.token_f1(blank, "Возврат") == 0.0


def test_nothing_but_symbols() -> None:
    for metric in (o.rouge, o.token_f1):
        with pytest.raises(UndefinedScore, match="no tokens") as caught:
            metric("👍👍", "👍👍")
        assert caught.value.code == "no_tokens"
    assert o.bleu("👍👍", "👍👍").value == 100.0
    assert o.exact_match("👍👍", "👍👍") == 1.0
    assert f1s("Да", "???") == [0, 0, 0]
    assert o.bleu("Да", "???").value == 0.0
    assert o.exact_match("!!!", "???") == 0.0


@pytest.mark.parametrize(
    ("answer", "reference", "options", "expected"),
    [
        ("Paris is the capital of France", "The capital of France is Paris", {}, 34.3295),
        ("Hello world", "Hello world", {}, 100),
        ("The cat sat on the mat. Dogs barked.", "The cat sat on the mat. It was a sunny day.", {}, 48.9409),
        ("日本の首都は東京です。", "東京は日本の首都です。", {"tokenizer": "13a"}, 0.0),
        ("日本の首都は東京です。", "東京は日本の首都です。", {"tokenizer": "char"}, 52.8),
        ("日本の首都は東京です。", "東京は日本の首都です。", {"tokenizer": "zh"}, 51.7),
    ],
)
def test_bleu(answer: str, reference: str, options: Any, expected: float) -> None:
    assert o.bleu(answer, reference, **options).value == close(
        expected, abs=5e-2 if expected == 52.8 else 6e-2
    )


@pytest.mark.parametrize(
    "text",
    [
        "Доставка бесплатна от трёх тысяч рублей.",
        "The parcel arrives within five working days.",
        "荷物は五日以内に届きます。",
    ],
)
def test_a_perfect_bleu_meets_every_limit_of_100(text: str) -> None:
    value = o.bleu(text, text).value
    assert value <= 100.0
    for threshold in (">=100", "<=100", "==100"):
        low = "lower" if threshold.startswith("<") else "higher"
        assert parse_threshold(threshold, Scale("bleu", 0, 100, low)).met(value)  # type: ignore[arg-type]


def test_one_changed_character_is_no_zero_in_japanese_and_chinese() -> None:
    japanese = o.bleu("返品は十日以内に受け付けます。", "返品は七日以内に受け付けます。")
    assert 0 < japanese.value < 100
    chinese = o.bleu("货物将在三天内到达。", "货物将在五天内到达。")
    assert 0 < chinese.value < 100
    assert "tok:zh" in chinese.signature


def test_tokenizer_by_language() -> None:
    assert o.bleu_tokenizer("en-US") == "13a"
    assert o.bleu_tokenizer("ru") == o.bleu_tokenizer("und") == "intl"
    assert o.bleu_tokenizer("zh_CN") == "zh"
    assert o.bleu_tokenizer("ja") in ("ja-mecab", "char")
    assert o.bleu_tokenizer("ko") in ("ko-mecab", "char")
    assert o.bleu_tokenizer("th") == "char"
    assert "tok:intl" in o.bleu("Дом стоит на горе", "Дом стоит у реки").signature
    with pytest.raises(UsageError, match="unknown BLEU tokenizer 'mecab'"):
        o.bleu("a", "a", tokenizer="mecab")


def test_corpus_bleu_is_not_the_mean_of_sentences() -> None:
    answers = ["The shop opens at nine in the morning.", "Cats sleep."]
    references = ["The shop opens at nine in the morning.", "Dogs bark."]
    corpus = o.corpus_bleu(answers, references)
    sentences = [o.bleu(answer, reference) for answer, reference in zip(answers, references, strict=True)]
    assert sentences[0].value == close(100)
    assert corpus.value > (100 + sentences[1].value) / 2 + 5
    assert "eff:no" in corpus.signature
    assert "eff:yes" in sentences[0].signature
    assert o.corpus_bleu(["Hello world"], ["Hello world"]).value == 0.0
    # One reference for each answer: every sentence is scored, not the first alone.
    assert o.corpus_bleu([answers[0]] * 2, references).value < 80
    assert o.corpus_bleu(["", ""], ["a b c d", "e f g h"]).value == 0.0


def test_corpus_with_unequal_numbers_of_references() -> None:
    text = "One two three four five"
    several: list[o.References] = [["Six seven", text], text]
    score = o.corpus_bleu([text, text], several)
    assert score.value == 100.0
    assert score.signature.startswith("nrefs:var|")
    assert o.bleu("", ["one", "two"]).signature.startswith("nrefs:2|")
    assert o.chrf("one", "two").signature.startswith("nrefs:1|")


@pytest.mark.parametrize(
    ("answers", "references", "message"),
    [
        (["a"], ["a", "b"], "1 answers but 2 references"),
        ([], [], "no answers"),
        ("a", "a", "must be lists"),
        (["a", "b"], ["a", " "], r"references\[1\] is blank"),
        (["a"], [[5]], r"references\[0\] must be text, got int"),
    ],
)
def test_a_corpus_that_does_not_fit(answers: Any, references: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        o.corpus_bleu(answers, references)


text = st.text("abсде .日本", min_size=1, max_size=30).filter(lambda value: bool(value.strip()))


@given(text, text)
@settings(deadline=None, max_examples=50)
def test_bleu_and_chrf_as_sacrebleu(answer: str, reference: str) -> None:
    sacrebleu = pytest.importorskip("sacrebleu")
    oracle = sacrebleu.sentence_bleu(answer, [reference], tokenize="intl").score
    assert o.bleu(answer, reference, tokenizer="intl").value == close(min(oracle, 100), abs=1e-9)
    for order in (0, 2):
        oracle = sacrebleu.sentence_chrf(answer, [reference], word_order=order).score
        assert o.chrf(answer, reference, word_order=order).value == close(oracle, abs=1e-9)


def test_unknown_rouge() -> None:
    for types in (["rouge0"], ["rouge"], ["rougeX"], []):
        with pytest.raises(UsageError, match="ROUGE type"):
            o.rouge("a", "a", types)
    with pytest.raises(UsageError, match="tokenizer must be"):
        o.rouge("a", "a", tokenizer="mecab")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "reference", "expected"),
    [
        ("Paris.", " paris ", 1),
        ("ＰＡＲＩＳ", "paris", 1),
        ("«Москва»!", "москва", 1),
        ("東京。", "東京", 1),
        ("New  York", "new york", 1),
        ("Paris, France", "Paris", 0),
        ("U.S.", "US", 0),
    ],
)
def test_exact_match(answer: str, reference: str, expected: float) -> None:
    assert o.exact_match(answer, reference) == expected


def test_token_f1() -> None:
    assert o.token_f1("the cat", "the cat sat") == close(0.8)
    assert o.token_f1("a a b", "a b b") == close(2 / 3)  # counted, not as sets
    assert o.token_f1("北京", "東京") == close(0.5)


def plain_levenshtein(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


@given(st.text("abё日", max_size=20), st.text("abё日", max_size=20))
def test_levenshtein_as_the_textbook_table(a: str, b: str) -> None:
    assert o.levenshtein(a, b) == plain_levenshtein(a, b)


def test_string_similarity() -> None:
    assert o.levenshtein("kitten", "sitting") == 3
    assert o.string_similarity("", "") == 1.0
    assert o.string_similarity("", "ab") == 0.0
    assert o.string_similarity("кот", "код") == close(2 / 3)
