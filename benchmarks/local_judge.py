"""Measure the embedded local judge against human labels, beside token overlap.

    python benchmarks/local_judge.py DATA_DIR      every calibration_*.jsonl in DATA_DIR
    python benchmarks/local_judge.py --probe       the minimal pairs next to this script
    python benchmarks/local_judge.py DATA_DIR --probe --page docs/local-judge.md    all tables of that page, into it
    python benchmarks/local_judge.py DATA_DIR --fold 0    half of the rows, by a hash of the id

A row is a JSON object with ``contexts`` (list of text), ``answer``, ``label`` (1 faithful, 0 not),
``source``, ``lang`` and perhaps ``question``. Columns:

Rows are in view (weights and rules may be chosen by them) or held out, by a hash of the first chunk, so that no
document is in both. Each is scored as a user would: ``score("faithfulness", sample)``.

AUC        probability that a faithful answer scores above an unfaithful one (ties count half), with a 95 %
           interval (percentile bootstrap)
overlap    the same for the share of the answer's tokens that occur in the contexts
accuracy, F1, kappa    where an answer counts as faithful from a score of 0.5 (or 0.8): the same for every
           source. F1 is of the faithful class; kappa is Cohen's.

Below it, how many answers were faithful among those whose score lies in 0-0.2, 0.2-0.4 and so on.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_ragbench import RagSample, Unscored, score
from pytest_ragbench.judge.local import VERSION, split_claims, verify

PROBES = Path(__file__).with_name("local_judge_probes.jsonl")
_CJK = "\u3040-\u30ff\u3400-\u9fff"
_RUN = re.compile(rf"[{_CJK}]+|[^\W_{_CJK}]+")
_BINS = (0.0, 0.2, 0.4, 0.6, 0.8)
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


def user_score(row: Mapping[str, Any]) -> float | None:
    """What a user gets of ``score("faithfulness", sample)``; None where it is undefined: the answer claims nothing."""
    sample = RagSample(row.get("question") or "-", answer=row["answer"], contexts=row["contexts"])
    try:
        return score("faithfulness", sample, judge="local").value
    except Unscored:
        return None


def in_view(row: Mapping[str, Any]) -> bool:
    """Whether the row is of the half that the judge may be tuned on: by its first chunk, so by its document."""
    return fold_of(row["contexts"][0] if row["contexts"] else "") == 0


def measure(directory: Path, fold: int | None) -> Iterator[tuple[str, list[str]]]:
    """The tables of labelled rows: scores, their means, and how far they can be taken for probabilities."""
    lines = [
        "| source | lang | rows | n (faithful) | AUC [95 %] | AUC overlap | accuracy .5 | accuracy .8 | F1 | kappa "
        "| undefined | CPU ms/claim |",
        "|---" * 12 + "|",
    ]
    said: dict[tuple[str, bool], list[tuple[float, int]]] = defaultdict(list)
    means: dict[bool, list[tuple[float, float, float, float]]] = defaultdict(list)
    for (_, source, lang), rows in rows_of(directory, fold).items():
        for seen in (True, False):
            part = [row for row in rows if in_view(row) is seen]
            labels = [int(row["label"]) for row in part]
            if len(set(labels)) < 2:
                continue
            found = measured(part, labels)
            said[lang, seen] += zip(found.scores, labels, strict=True)
            means[seen].append((found.auc, found.overlap, found.accuracy, found.strict))
            lines.append(f"| {source} | {lang} | {'in view' if seen else 'held out'} {found}")
    yield "sources", lines
    lines = ["| mean of the sources | AUC | AUC overlap | accuracy .5 | accuracy .8 |", "|---" * 5 + "|"]
    for seen, values in means.items():
        average = " | ".join(f"{sum(column) / len(values):.3f}" for column in zip(*values, strict=True))
        lines.append(f"| {'in view' if seen else 'held out'} | {average} |")
    yield "means", lines
    yield "reliability", reliability(said)


@dataclass(frozen=True)
class Measured:
    """The figures of one source; ``str`` gives the rest of its line."""

    scores: list[float]
    faithful: int
    auc: float
    low: float
    high: float
    overlap: float
    accuracy: float
    strict: float
    f1: float
    kappa: float
    undefined: int
    ms: float

    def __str__(self) -> str:
        return (
            f"| {len(self.scores)} ({self.faithful}) | {self.auc:.3f} [{self.low:.3f}, {self.high:.3f}] "
            f"| {self.overlap:.3f} | {self.accuracy:.3f} | {self.strict:.3f} | {self.f1:.3f} | {self.kappa:.3f} "
            f"| {self.undefined} | {self.ms:.1f} |"
        )


def measured(rows: Sequence[Mapping[str, Any]], labels: Sequence[int]) -> Measured:
    """The figures of some rows. An undefined score counts as 0: a gate does not let such an answer pass."""
    # The judge alone and first, before its caches have the chunks; what a score costs beside it is the engine's.
    started, claims = time.process_time(), 0
    for row in rows:
        split = split_claims(row["answer"], row.get("question", ""))
        claims += len(split) or 1
        for claim in split:
            verify(claim, row["contexts"], row.get("question", ""), split)
    seconds = time.process_time() - started
    given = [user_score(row) for row in rows]
    scores = [value or 0.0 for value in given]
    base = [overlap(row["answer"], row["contexts"]) for row in rows]

    def resampled(chosen: list[int]) -> float:
        return auc([scores[i] for i in chosen], [labels[i] for i in chosen])

    low, high = bootstrap(resampled, len(rows))
    accuracy, f1, kappa = agreement([value >= 0.5 for value in scores], labels)
    strict, _, _ = agreement([value >= 0.8 for value in scores], labels)
    return Measured(
        scores, sum(labels), auc(scores, labels), low, high, auc(base, labels), accuracy, strict, f1, kappa,
        given.count(None), 1000 * seconds / claims,
    )  # fmt: skip


def reliability(said: Mapping[tuple[str, bool], Sequence[tuple[float, int]]]) -> list[str]:
    """How many answers were faithful among those with about the same score, by language."""
    lines = ["| lang | rows | " + " | ".join(f"{low:.1f}-{low + 0.2:.1f}" for low in _BINS) + " |"]
    lines.append("|---" * (len(_BINS) + 2) + "|")
    for (lang, seen), pairs in sorted(said.items(), key=lambda item: (item[0][0], not item[0][1])):
        cells = []
        for low in _BINS:
            labels = [label for value, label in pairs if low <= value < low + 0.2 + (low == _BINS[-1])]
            cells.append(f"{sum(labels) / len(labels):.2f} ({len(labels)})" if labels else "-")
        lines.append(f"| {lang} | {'in view' if seen else 'held out'} | " + " | ".join(cells) + " |")
    return lines


def probed() -> Iterator[tuple[Mapping[str, str], tuple[bool, ...]]]:
    """Each minimal pair with: good claim accepted, bad one caught, good above bad, the same by overlap."""
    for line in PROBES.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        chunks, question = [DISTRACTOR[row["lang"]], row["context"]], row.get("question", "")

        def support(answer: str, chunks: list[str] = chunks, question: str = question) -> float:
            # A yes or no is a claim with its question only.
            claims = split_claims(answer, question) if question else [answer]
            return min(verify(claim, chunks, question, claims).value for claim in claims)

        good, bad = support(row["good"]), support(row["bad"])
        overlaps = overlap(row["good"], chunks) > overlap(row["bad"], chunks)
        yield row, (good >= 0.5, bad < 0.5, good > bad, overlaps)


def probe() -> Iterator[tuple[str, list[str]]]:
    """The tables of minimal pairs, by set and by kind of fault."""
    found = list(probed())
    by_set: dict[str, list[tuple[bool, ...]]] = defaultdict(list)
    by_kind: dict[str, list[tuple[bool, ...]]] = defaultdict(list)
    for row, result in found:
        by_set[row["set"]].append(result)
        if row["set"] != "first":
            by_kind[row["kind"]].append(result)
    lines = [
        "| set | pairs | good accepted | bad caught | good above bad | the same by overlap |",
        "|---" * 6 + "|",
    ]
    for part, results in by_set.items():
        shares = " | ".join(f"{sum(column) / len(results):.0%}" for column in zip(*results, strict=True))
        lines.append(f"| {part} | {len(results)} | {shares} |")
    yield "sets", lines
    lines = ["| kind of fault | pairs | good accepted | bad caught | good above bad |", "|---" * 5 + "|"]
    for kind, results in by_kind.items():
        counts = " | ".join(str(sum(column)) for column in list(zip(*results, strict=True))[:3])
        lines.append(f"| {kind} | {len(results)} | {counts} |")
    yield "kinds", lines


def put(page: Path, tables: Mapping[str, Sequence[str]]) -> None:
    """Exchange the tables of a page, each between ``<!-- NAME -->`` and the next empty line."""
    text = page.read_text(encoding="utf-8")
    for name, lines in tables.items():
        mark = f"<!-- {name} -->\n"
        before, found, after = text.partition(mark)
        if not found:
            sys.exit(f"{page}: no line {mark.strip()}")
        text = f"{before}{mark}" + "\n".join(lines) + "\n\n" + after.partition("\n\n")[2]
    page.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", nargs="?", type=Path, help="folder with calibration_*.jsonl")
    parser.add_argument("--probe", action="store_true", help="minimal pairs next to this script")
    parser.add_argument("--fold", type=int, choices=(0, 1), help="only this half of the rows")
    parser.add_argument("--page", type=Path, help="put the tables into this page: docs/local-judge.md")
    options = parser.parse_args()
    if options.data is None and not options.probe:
        parser.error("give a data folder, or --probe")
    tables: dict[str, list[str]] = {}
    if options.data is not None:
        tables |= measure(options.data, options.fold)
    if options.probe:
        tables |= probe()
    print(f"local judge version {VERSION}")
    for lines in tables.values():
        print("\n" + "\n".join(lines))
    if options.page is not None:
        put(options.page, tables)


if __name__ == "__main__":
    main()
