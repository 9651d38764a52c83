"""False-alarm and miss rates of the gates as they are shipped, by simulation.

    python benchmarks/gates_simulation.py [--runs 300] [--seed 1] [--pairs-only]

Each simulated run gives every question 2 to 6 claims, supported with a probability of the question's own (a
beta-binomial with a standard deviation of .235 at a mean of .85); the very functions that pytest calls then decide.
Two runs to be compared differ by a judge's noise of .14 a score. In the runs with clusters ten documents have five
questions each, more than half of whose variance is the document's. Beside each share stand its simulation error (two
standard errors) and the value that is promised in docs/choosing.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from pytest_ragbench.gates.intervals import mean_bounds

from pytest_ragbench.gates.baseline import Baseline
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import parse_rule
from pytest_ragbench.gates.verdicts import Conditions, evaluate
from pytest_ragbench.model.report import SampleRecord, ScoreRecord, TestRecord

ABSOLUTE = ("faithfulness mean >= 0.85", "faithfulness >= 0.85 with 95% confidence", "faithfulness >= 0.85")
PROMISED = {
    (0.75, 50): (0.003, 0, 0.83), (0.75, 200): (0, 0, 1),
    (0.80, 50): (0.087, 0.001, 0.35), (0.80, 200): (0.003, 0, 0.87),
    (0.85, 50): (0.51, 0.06, 0.03), (0.85, 200): (0.51, 0.05, 0.04),
    (0.90, 50): (0.96, 0.47, 0), (0.90, 200): (1, 0.96, 0),
    (0.95, 50): (1, 0.96, 0), (0.95, 200): (1, 1, 0),
}  # fmt: skip
CLAIMS = range(2, 7)
# So that sd² = .85 * .15 * (mean of 1/claims + (1 - that) * RHO) is .235².
INNER = sum(1 / claims for claims in CLAIMS) / len(CLAIMS)
RHO = (0.235**2 / (0.85 * 0.15) - INNER) / (1 - INNER)
NOISE, BASE = 0.1414, 0.88
# So that the claims of one answer, checked twice, differ by this noise.
RHO_PAIRED = 1 - NOISE**2 / (BASE * (1 - BASE) * INNER)
REGRESSION = "faithfulness no worse than baseline by more than 0.02"


def results(scores: Sequence[float]) -> list[TestRecord]:
    return [
        TestRecord(
            test=f"t.py::t[{place}]",
            outcome="passed",
            samples=(SampleRecord(id=f"q{place}", question=f"{place}?"),),
            scores=(ScoreRecord(metric="faithfulness", tier="generation", sample=0, value=float(score)),),
        )
        for place, score in enumerate(scores)
    ]


def claims_scores(rng: np.random.Generator, mean: float, n: int) -> np.ndarray:
    """Scores such as verified claims give: shares of a few, most of them 1."""
    claims = rng.choice(list(CLAIMS), n)
    total = 1 / RHO - 1
    truth = rng.beta(mean * total, (1 - mean) * total, n)
    return rng.binomial(claims, truth) / claims


def share(count: int, runs: int, promised: float) -> str:
    """The share, and whether the promise lies within its simulation error."""
    value = count / runs
    spread = max(promised * (1 - promised), value * (1 - value), 1 / runs)
    error = 2 * math.sqrt(spread / runs)
    return f"{value:6.3f} ±{error:.3f} ({promised:g}){' ' if abs(value - promised) <= error + 0.01 else '!'}"


def absolute(rng: np.random.Generator, runs: int) -> None:
    rules = [parse_rule(text) for text in ABSOLUTE]
    print("true mean    n   sd    mean >= t passes      rule 3 passes         rule 2 fails")
    for (mean, n), promised in PROMISED.items():
        counts, spreads = [0, 0, 0], []
        for _ in range(runs):
            scores = claims_scores(rng, mean, n)
            spreads.append(scores.std(ddof=1))
            plain, sure, pull = evaluate(rules, Observations(results(scores)))
            counts[0] += plain.outcome == "PASS"
            counts[1] += sure.outcome == "PASS"
            counts[2] += pull.outcome == "FAIL"
        cells = "  ".join(share(count, runs, wanted) for count, wanted in zip(counts, promised, strict=True))
        print(f"{mean:9.2f} {n:4d} {np.mean(spreads):.3f}  {cells}", flush=True)


def regression(rng: np.random.Generator, runs: int) -> None:
    """Two runs of the same questions. A judge splits and checks the claims of each answer anew, so the noise is
    that of the claims: .14 a score at the base of .88, and more where fewer claims hold.
    """
    rule = parse_rule(REGRESSION)
    print("\nrule 4, base .88, margin .02: share of runs that fail", flush=True)
    total = 1 / RHO_PAIRED - 1
    for drop, n, repeats, promised in (
        (0.0, 50, 1, 0.054),
        (0.05, 50, 1, 0.47),
        (0.05, 50, 3, 0.86),
        (0.05, 200, 1, 0.96),
    ):
        failed = 0
        for _ in range(runs):
            truth = rng.beta(BASE * total, (1 - BASE) * total, (n, 1))
            claims = rng.choice(list(CLAIMS), (n, 1))
            old, new = (
                (rng.binomial(claims, truth * (1 - less / BASE), (n, repeats)) / claims).mean(axis=1)
                for less in (0.0, drop)
            )
            baseline = Baseline(Observations(results(old)))
            [verdict] = evaluate([rule], Observations(results(new)), Conditions(baseline=baseline))
            failed += verdict.outcome == "FAIL"
        print(
            f"  true drop {drop:.2f}, n {n:3d}, repeats {repeats}: {share(failed, runs, promised)}",
            flush=True,
        )


def settled(rng: np.random.Generator, runs: int) -> None:
    """Of undecided runs: whether as many more questions as they say do settle it."""
    rules = [parse_rule(ABSOLUTE[2])]
    print(
        "\nrule 2, undecided at n 50: share that is settled by as many more questions as it says (80 % is aimed at)"
    )
    for mean in (0.80, 0.90):
        more, done = [], 0
        for _ in range(runs):
            [verdict] = evaluate(rules, Observations(results(claims_scores(rng, mean, 50))))
            if verdict.outcome == "UNDECIDED" and verdict.more is not None:
                more.append(verdict.more)
                scores = claims_scores(rng, mean, min(50 + verdict.more, 5000))
                [later] = evaluate(rules, Observations(results(scores)))
                done += later.outcome != "UNDECIDED"
        print(
            f"  true mean {mean:.2f}: {done / len(more):.2f} of {len(more)}, median {np.median(more):.0f} more",
            flush=True,
        )


def clustered(rng: np.random.Generator, runs: int) -> None:
    """Ten documents of five questions: how often the two-sided 95 % interval holds the truth."""
    print("\nten documents of five questions: share of 95 % intervals that hold the truth")
    ties = [place // 5 for place in range(50)]
    held = {"clusters = true": 0, "clusters = false": 0}
    for _ in range(runs):
        document = rng.normal(0.6, 0.15, 10).repeat(5)
        scores = np.clip(document + rng.normal(0, 0.13, 50), 0, 1).tolist()
        for name, clusters in zip(held, (ties, None), strict=True):
            bounds = mean_bounds(scores, passed=[True] * 50, clusters=clusters, confidence=0.975)
            held[name] += bounds.low <= 0.6 <= bounds.high
    for (name, count), promised in zip(held.items(), (0.95, 0.72), strict=True):
        print(f"  {name + ':':<17} {share(count, runs, promised)}", flush=True)


def several(rng: np.random.Generator, runs: int) -> None:
    """Six metrics, nothing changed."""
    names = (
        "faithfulness",
        "answer_relevancy",
        "context_recall",
        "context_precision",
        "answer_correctness",
        "answer_accuracy",
    )
    rules = [parse_rule(f"{name} no worse than baseline by more than 0.02") for name in names]
    failed = 0
    for _ in range(runs):
        old, new = [], []
        for name in names:
            base = rng.uniform(0.4, 0.6, 50)
            for into in (old, new):
                noisy = base + rng.normal(0, NOISE, 50)
                for result in results(noisy):
                    into.append(replace(result, scores=(replace(result.scores[0], metric=name),)))
        verdicts = evaluate(rules, Observations(new), Conditions(baseline=Baseline(Observations(old))))
        failed += any(verdict.outcome == "FAIL" for verdict in verdicts)
    print(f"  six metrics, nothing changed, any fails: {share(failed, runs, 0.038)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs-only", action="store_true", help="leave the absolute gates out")
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    print(f"{given.runs} runs each; in brackets what is promised; ! where that is not within the error\n")
    if not given.pairs_only:
        absolute(rng, given.runs)
        settled(rng, max(given.runs // 3, 50))
    regression(rng, given.runs)
    clustered(rng, given.runs)
    several(rng, max(given.runs // 3, 50))


if __name__ == "__main__":
    main()
