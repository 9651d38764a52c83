"""Recompute published values with our formulas, and print how well they agree.

    python benchmarks/reference_values.py DATA_DIR

``DATA_DIR`` holds, each part optional (a missing one is skipped):

- ``ir/trec_eval``: NIST's test files of trec_eval (qrels.test, qrels.rel_level, results.test, results.trunc,
  out.test.aq, .aqc, .aqcM, .aql), values printed with 4 decimals
- ``ir/qa``: ``NAME.RUN.run``, ``NAME.qrels`` and ``NAME.RUN.expected.json``, values by pytrec_eval with 6 decimals
- ``judge/mtrag_human_vs_llm_judge.jsonl``: ROUGE-L of answers, by rouge-score with its own tokenizer
- ``judge/llmbar_verdicts.jsonl`` and ``llmbar_expected_statistics.json``: accuracy and kappa of LLM judges

The exit code is 1 where a value disagrees that is not expected to.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pytest_ragbench.metrics.formulas import retrieval
from pytest_ragbench.metrics.formulas.overlap import rouge
from pytest_ragbench.model.errors import UndefinedScore
from pytest_ragbench.statistics.agreement import cohen_kappa

NAMES = {
    "map": "map",
    "recip_rank": "mrr",
    "Rprec": "r_precision",
    "ndcg": "ndcg",
    "P": "precision",
    "recall": "recall",
    "map_cut": "map",
    "ndcg_cut": "ndcg",
    "success": "hit_rate",
}


def our_name(theirs: str) -> str | None:
    """trec_eval's ``ndcg_cut_10`` is our ``ndcg@10``; None for a measure that we don't have."""
    if theirs in NAMES:
        return NAMES[theirs]
    match = re.fullmatch(r"(P|recall|map_cut|ndcg_cut|success)_(\d+)", theirs)
    return f"{NAMES[match[1]]}@{match[2]}" if match else None


Judgments = dict[str, dict[str, float]]
"""Query id -> document id -> grade."""


def read_qrels(file: Path) -> Judgments:
    """Lines ``query 0 document grade``."""
    qrels: Judgments = defaultdict(dict)
    for line in file.read_text(encoding="utf-8-sig").splitlines():
        query, _, document, grade = line.split()
        qrels[query][document] = float(grade)
    return qrels


def read_run(file: Path) -> dict[str, list[str]]:
    """Lines ``query Q0 document rank score tag``, ranked as trec_eval does: by score, then by the larger id."""
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8-sig").splitlines():
        query, _, document, _, score, *_ = line.split()
        found[query].append((float(score), document))
    return {query: [document for _, document in sorted(rows, reverse=True)] for query, rows in found.items()}


def evaluate(
    qrels: Judgments, run: dict[str, list[str]], names: Iterable[str]
) -> dict[str, dict[str, float]]:
    """Metric -> query id -> value, the mean as ``all``; queries without relevant documents are left out."""
    found: dict[str, dict[str, float]] = {}
    for name in names:
        metric, _, k = name.partition("@")
        formula = getattr(retrieval, "average_precision" if metric == "map" else metric)
        values = {}
        for query, relevant in qrels.items():
            with contextlib.suppress(UndefinedScore):
                values[query] = formula(run.get(query, []), relevant, *([int(k)] if k else []))
        found[name] = values | {"all": sum(values.values()) / len(values)}
    return found


def trec_eval(folder: Path) -> Iterator[tuple[str, int, float, float]]:
    """Each of NIST's output files: its name, values compared, largest difference, tolerance."""
    cases = [
        ("out.test.aq", "qrels.test", "results.test", None, 0),
        ("out.test.aqc", "qrels.test", "results.trunc", None, 0),
        ("out.test.aqcM", "qrels.test", "results.trunc", 100, 0),
        ("out.test.aql", "qrels.rel_level", "results.test", None, 2),
    ]
    for output, qrels_name, run_name, cut, level in cases:
        expected: dict[str, dict[str, float]] = defaultdict(dict)
        for line in (folder / output).read_text().splitlines():
            name, query, value = line.split(maxsplit=2)
            if mine := our_name(name):
                expected[mine][query] = float(value)
        qrels = read_qrels(folder / qrels_name)
        run = {query: ranking[:cut] for query, ranking in read_run(folder / run_name).items()}
        # -l: a grade below the level is not relevant; the gains of NDCG are not touched by it.
        levelled = {
            query: {doc: grade if grade >= level else 0 for doc, grade in grades.items()}
            for query, grades in qrels.items()
        }
        graded = [name for name in expected if name.startswith("ndcg")]
        differences = []
        for judgments, names in (
            (qrels, graded),
            (levelled, [name for name in expected if name not in graded]),
        ):
            done = evaluate(judgments, run, names)
            for name in names:
                differences += [abs(done[name][query] - value) for query, value in expected[name].items()]
        yield f"trec_eval {output}", len(differences), max(differences), 5e-5


def qa(folder: Path) -> Iterator[tuple[str, int, float, float]]:
    for file in sorted(folder.glob("*.expected.json")):
        expected = json.loads(file.read_text(encoding="utf-8"))
        stem = file.name.removesuffix(".expected.json")
        qrels, run = read_qrels(folder / f"{stem.split('.')[0]}.qrels"), read_run(folder / f"{stem}.run")
        names = {theirs: mine for theirs in expected["mean"] if (mine := our_name(theirs))}
        done = evaluate(qrels, run, names.values())
        differences = []
        if expected["queries"] == expected["queries_with_results"]:
            # pytrec_eval leaves queries without results out of its mean, so compare means only where all have some.
            differences += [
                abs(done[mine]["all"] - expected["mean"][theirs]) for theirs, mine in names.items()
            ]
        for query, scores in expected["per_query"].items():
            differences += [abs(done[names[name]][query] - value) for name, value in scores.items()]
        yield f"qa {stem}", len(differences), max(differences), 5e-7


def mtrag(file: Path) -> Iterator[tuple[str, int, float, float]]:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    same, other = [], []
    for row in rows(file):
        published = row["auto"]["RougeL"]
        mine = rouge(row["answer"], row["reference"], ["rougeL"])["rougeL"].f1
        default = scorer.score(row["reference"], row["answer"])["rougeL"].fmeasure
        (same if (row["answer"] + row["reference"]).isascii() else other).append(
            (abs(mine - published), abs(default - published))
        )
    yield "ROUGE-L of ASCII texts", len(same), max(mine for mine, _ in same), 1e-6
    yield "ROUGE-L of other texts (tokens differ)", len(other), max(mine for mine, _ in other), float("inf")
    yield "  the same, rouge-score's own tokenizer", len(other), max(default for _, default in other), 1e-6


def llmbar(verdicts: Path, statistics: Path) -> Iterator[tuple[str, int, float, float]]:
    groups: dict[str, list[Any]] = defaultdict(list)
    for row in rows(verdicts):
        groups[f"{row['subset']}/{row['judge']}/{row['prompt']}"].append(row)
    shares, kappas = [], []
    for name, expected in json.loads(statistics.read_text(encoding="utf-8")).items():
        found = groups[name]
        labels = [str(row["label"]) for row in found]
        first, second = ([row[order]["winner"] for row in found] for order in ("order_ab", "order_ba"))
        for key, hits in {
            "correct_False": [winner == label for winner, label in zip(first, labels, strict=True)],
            "correct_True": [winner == label for winner, label in zip(second, labels, strict=True)],
            "equal": [one == other for one, other in zip(first, second, strict=True)],
        }.items():
            published = float(expected[key].split("=")[1].strip(" %"))
            shares.append(abs(100 * sum(hits) / len(hits) - published))
        # The published kappas compare 0/1 (winner "1" or anything else, a failed reply included) with
        # labels 1/2, so those against the label are not what kappa means; they are recomputed as they are.
        zero_one = [["1" if winner == "1" else "0" for winner in winners] for winners in (first, second)]
        for key, pair in {
            "kappa_False": (zero_one[0], labels),
            "kappa_True": (zero_one[1], labels),
            "kappa_agreement": (zero_one[0], zero_one[1]),
        }.items():
            kappas.append(abs(cohen_kappa(*pair) - expected[key]))
    yield "LLMBar shares (percent)", len(shares), max(shares), 1e-9
    yield "LLMBar kappas", len(kappas), max(kappas), 1e-9


def rows(file: Path) -> Iterator[Any]:
    for line in file.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


def show(results: Iterable[tuple[str, int, float, float]]) -> bool:
    right = True
    for name, count, difference, tolerance in results:
        verdict = "-" if tolerance == float("inf") else "yes" if difference <= tolerance * 1.0001 else "NO"
        right = right and verdict != "NO"
        print(f"| {name} | {count} | {difference:.2g} | {verdict} |", flush=True)
    return right


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    data = parser.parse_args().data
    judge = data / "judge"
    parts = [
        ([data / "ir/trec_eval/out.test.aq"], lambda: trec_eval(data / "ir/trec_eval")),
        ([data / "ir/qa"], lambda: qa(data / "ir/qa")),
        ([judge / "mtrag_human_vs_llm_judge.jsonl"], lambda: mtrag(judge / "mtrag_human_vs_llm_judge.jsonl")),
        (
            [judge / "llmbar_verdicts.jsonl", judge / "llmbar_expected_statistics.json"],
            lambda: llmbar(judge / "llmbar_verdicts.jsonl", judge / "llmbar_expected_statistics.json"),
        ),
    ]
    print("| published values | compared | largest difference | agree |\n|---|---|---|---|", flush=True)
    right = True
    for needed, compute in parts:
        missing = [path for path in needed if not path.exists()]
        if missing:
            print(f"| {missing[0].relative_to(data)} | not there, skipped | | |")
        else:
            right = show(compute()) and right
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
