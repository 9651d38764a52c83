"""Time of ROUGE and BLEU, beside rouge-score and sacrebleu called directly, on the same pairs.

    python benchmarks/overlap_metrics.py [--pairs 10000] [--words 40]

The pairs are made from a seed: a sentence of random words, and the same with some words changed. For
English the values of the two must be equal. For Russian rouge-score's own tokenizer sees nothing, so its
time there is that of scoring empty texts and its mean is 0.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Sequence

from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU

from pytest_ragbench.metrics.formulas import overlap

WORDS = {
    "en": [
        "return",
        "parcel",
        "customer",
        "shop",
        "order",
        "delivery",
        "week",
        "price",
        "answer",
        "question",
        "office",
        "manual",
        "receipt",
    ],
    "ru": [
        "возврат",
        "посылка",
        "клиент",
        "магазин",
        "заказ",
        "доставка",
        "неделя",
        "цена",
        "ответ",
        "вопрос",
        "офис",
        "справка",
        "чек",
    ],
    "ja": list("返品荷物客店注文配送週間値段回答質問事務所説明書領収証"),
}
Pairs = Sequence[tuple[str, str]]


def pairs(lang: str, n: int, words: int) -> Pairs:
    rng = random.Random(5)
    joiner = "" if lang == "ja" else " "
    made = []
    for _ in range(n):
        reference = rng.choices(WORDS[lang], k=words)
        answer = [rng.choice(WORDS[lang]) if rng.random() < 0.3 else word for word in reference]
        made.append((joiner.join(answer) + ".", joiner.join(reference) + "."))
    return made


def rouge_peer(found: Pairs, lang: str) -> float:
    scorer = RougeScorer(list(overlap.ROUGE_TYPES))
    return sum(scorer.score(reference, answer)["rougeL"].fmeasure for answer, reference in found) / len(found)


def rouge_one_by_one(found: Pairs, lang: str) -> float:
    return sum(overlap.rouge(answer, reference)["rougeL"].f1 for answer, reference in found) / len(found)


def sentence_peer(found: Pairs, lang: str) -> float:
    metric = BLEU(tokenize=overlap.bleu_tokenizer(lang), effective_order=True)
    return sum(metric.sentence_score(answer, [reference]).score for answer, reference in found) / len(found)


def sentence_one_by_one(found: Pairs, lang: str) -> float:
    return sum(overlap.bleu(answer, reference, lang=lang).value for answer, reference in found) / len(found)


def corpus_peer(found: Pairs, lang: str) -> float:
    metric = BLEU(tokenize=overlap.bleu_tokenizer(lang))
    return metric.corpus_score([answer for answer, _ in found], [[reference for _, reference in found]]).score


def corpus(found: Pairs, lang: str) -> float:
    return overlap.corpus_bleu([pair[0] for pair in found], [pair[1] for pair in found], lang=lang).value


JOBS: list[tuple[str, str, Callable[[Pairs, str], float]]] = [
    ("rouge1/2/L", "rouge-score", rouge_peer),
    ("rouge1/2/L", "pytest-ragbench, rouge", rouge_one_by_one),
    ("sentence BLEU", "sacrebleu", sentence_peer),
    ("sentence BLEU", "pytest-ragbench, bleu", sentence_one_by_one),
    ("corpus BLEU", "sacrebleu", corpus_peer),
    ("corpus BLEU", "pytest-ragbench, corpus_bleu", corpus),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--words", type=int, default=40)
    options = parser.parse_args()
    print(
        f"{options.pairs} pairs of {options.words} words (ja: characters); the mean of ROUGE is that of rougeL\n"
    )
    print(
        "| metric | language | tool | seconds | CPU seconds | mean |\n|---|---|---|---|---|---|", flush=True
    )
    for lang in WORDS:
        found = pairs(lang, options.pairs, options.words)
        for metric, tool, job in JOBS:
            job(found[:10], lang)
            start, cpu = time.perf_counter(), time.process_time()
            mean = job(found, lang)
            took, cpu = time.perf_counter() - start, time.process_time() - cpu
            print(f"| {metric} | {lang} | {tool} | {took:.2f} | {cpu:.2f} | {mean:.9f} |", flush=True)


if __name__ == "__main__":
    main()
