"""Measure the embedded local judge against human labels, beside token overlap.

    python benchmarks/local_judge.py DATA_DIR      every calibration_*.jsonl in DATA_DIR
    python benchmarks/local_judge.py --probe       the minimal pairs next to this script
    python benchmarks/local_judge.py DATA_DIR --fold 0    half of the rows, by a hash of the id

A row is a JSON object with ``contexts`` (list of text), ``answer``, ``label`` (1 faithful, 0 not),
``source``, ``lang`` and perhaps ``question``. Columns:

AUC        probability that a faithful answer scores above an unfaithful one (ties count half), of the
           mean support over the answer's claims, with a 95 % interval (percentile bootstrap)
overlap    the same for the share of the answer's tokens that occur in the contexts
accuracy, F1, kappa    where an answer counts as faithful if its mean support is 0.5 or more: the cut as
           shipped, never moved for a source. F1 is of the faithful class; kappa is Cohen's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import sys
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_ragbench.judge.local import VERSION, answer_support, split_claims, verify

PROBES = Path(__file__).with_name("local_judge_probes.jsonl")
_CJK = "\u3040-\u30ff\u3400-\u9fff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
# Beside the right chunk stands one about something else: a judge must not need to be handed the one chunk.
DISTRACTOR = {
    "en": "The cafeteria serves soup on weekdays. Parking is behind the building.",
    "ru": "Столовая подаёт суп по будням. Стоянка находится за зданием.",
    "ja": "食堂では平日にスープが出ます。駐車場は建物の裏にあります。",
}


def overlap_tokens(text: str) -> set[str]:
    """Casefolded runs of letters and digits; Han and kana as pairs of neighbouring characters."""
    found: set[str] = set()
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if re.match(rf"[{_CJK}]", run):
            found.update(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        else:
            found.add(run)
    return found


def overlap(answer: str, contexts: Sequence[str]) -> float:
    """Share of the answer's tokens that occur in the contexts, 0..1; 0 for an answer without tokens."""
    own = overlap_tokens(answer)
    return len(own & overlap_tokens(" ".join(contexts))) / len(own) if own else 0.0


def auc(scores: Sequence[float], labels: Sequence[int]) -> float:
    """Area under the ROC curve by ranks; NaN where only one label occurs."""
    order = sorted(range(len(scores)), key=lambda i: scores[i])
    ranks = [0.0] * len(scores)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and scores[order[end + 1]] == scores[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2 + 1
        start = end + 1
    positive = sum(labels)
    negative = len(labels) - positive
    if not positive or not negative:
        return float("nan")
    rank_sum = sum(rank for rank, label in zip(ranks, labels, strict=True) if label)
    return (rank_sum - positive * (positive + 1) / 2) / (positive * negative)


def bootstrap(
    statistic: Callable[[list[int]], float], size: int, *, rounds: int = 1000, seed: int = 20240501
) -> tuple[float, float]:
    """Percentile interval (2.5 %, 97.5 %) of a statistic over resampled row numbers."""
    draw = random.Random(seed)
    values = []
    for _ in range(rounds):
        value = statistic([draw.randrange(size) for _ in range(size)])
        if value == value:
            values.append(value)
    values.sort()
    return values[int(0.025 * len(values))], values[min(len(values) - 1, int(0.975 * len(values)))]


def agreement(predicted: Sequence[bool], labels: Sequence[int]) -> tuple[float, float, float]:
    """(accuracy, F1 of the faithful class, Cohen's kappa)."""
    n = len(labels)
    both = sum(p and bool(label) for p, label in zip(predicted, labels, strict=True))
    right = sum(p == bool(label) for p, label in zip(predicted, labels, strict=True))
    said, true = sum(predicted), sum(labels)
    f1 = 2 * both / (said + true) if said + true else float("nan")
    chance = (said * true + (n - said) * (n - true)) / n**2
    kappa = (right / n - chance) / (1 - chance) if chance < 1 else float("nan")
    return right / n, f1, kappa


def fold_of(identifier: str) -> int:
    """0 or 1, by a hash of the id."""
    return int(hashlib.sha256(identifier.encode()).hexdigest(), 16) // 2 % 2


def rows_of(directory: Path, fold: int | None) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """Labelled rows by (file, source, language)."""
    files = sorted(directory.glob("calibration_*.jsonl"))
    if not files:
        sys.exit(f"{directory}: no calibration_*.jsonl here")
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for path in files:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if fold is None or fold_of(str(row["id"])) == fold:
                groups[path.stem.removeprefix("calibration_"), row["source"], row["lang"]].append(row)
    return groups


def measure(directory: Path, fold: int | None) -> None:
    """Print the table of labelled rows."""
    print(f"local judge version {VERSION}" + ("" if fold is None else f", fold {fold}"))
    print(
        "| source | lang | n (faithful) | AUC judge [95 %] | AUC overlap | accuracy | F1 | kappa | CPU ms/claim |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for (_, source, lang), rows in rows_of(directory, fold).items():
        labels = [int(row["label"]) for row in rows]
        started = time.process_time()
        support = [answer_support(row["answer"], row["contexts"], row.get("question", "")) for row in rows]
        seconds = time.process_time() - started
        claims = sum(len(split_claims(row["answer"], row.get("question", ""))) or 1 for row in rows)
        base = [overlap(row["answer"], row["contexts"]) for row in rows]

        def resampled(chosen: list[int], support: list[float] = support, labels: list[int] = labels) -> float:
            return auc([support[i] for i in chosen], [labels[i] for i in chosen])

        low, high = bootstrap(resampled, len(rows))
        accuracy, f1, kappa = agreement([value >= 0.5 for value in support], labels)
        print(
            f"| {source} | {lang} | {len(rows)} ({sum(labels)}) | {auc(support, labels):.3f} [{low:.3f}, {high:.3f}] "
            f"| {auc(base, labels):.3f} | {accuracy:.3f} | {f1:.3f} | {kappa:.3f} | {1000 * seconds / claims:.1f} |"
        )


def probe() -> None:
    """Print the table of minimal pairs: good claims accepted, bad claims caught, beside overlap."""
    groups: dict[tuple[str, str, str], list[tuple[bool, bool, bool, bool]]] = defaultdict(list)
    for line in PROBES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        chunks = [DISTRACTOR[row["lang"]], row["context"]]
        good, bad = verify(row["good"], chunks).value, verify(row["bad"], chunks).value
        overlaps = overlap(row["good"], chunks) > overlap(row["bad"], chunks)
        groups[row["set"], row["kind"], row["lang"]].append((good >= 0.5, bad < 0.5, good > bad, overlaps))
    print(f"local judge version {VERSION}")
    print("| set | kind | lang | pairs | good accepted | bad caught | good above bad | the same by overlap |")
    print("|---|---|---|---|---|---|---|---|")
    for (part, kind, lang), results in groups.items():
        shares = " | ".join(str(sum(column)) for column in zip(*results, strict=True))
        print(f"| {part} | {kind} | {lang} | {len(results)} | {shares} |")
    for part in dict.fromkeys(key[0] for key in groups):
        every = [result for key, results in groups.items() if key[0] == part for result in results]
        shares = " | ".join(f"{sum(column) / len(every):.0%}" for column in zip(*every, strict=True))
        print(f"| {part} | all | all | {len(every)} | {shares} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", type=Path, help="folder with calibration_*.jsonl")
    parser.add_argument("--probe", action="store_true", help="minimal pairs next to this script")
    parser.add_argument("--fold", type=int, choices=(0, 1), help="only this half of the rows")
    options = parser.parse_args()
    if options.data is None and not options.probe:
        parser.error("give a data folder, or --probe")
    if options.data is not None:
        measure(options.data, options.fold)
    if options.probe:
        probe()


if __name__ == "__main__":
    main()
