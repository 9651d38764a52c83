"""How often the gates pass and fail what they should not, by simulation of the functions that pytest calls.

    python benchmarks/gates_simulation.py [--suites 4000] [--documents 4000] [--runs 2000] [--seed 1] [--only PART]

Each cell draws suites of scores with a known true mean and counts what becomes of them. Exits with 1 where a rate is
outside its promise. With fewer suites than by default three standard errors are allowed on top.

absolute    false passes at truth = threshold, of scores of six kinds: at most .055 in every cell
power       what the three rules pass and fail beside the specification's table: within .03
documents   false passes where questions share documents: at most .07
regression  ``no worse than baseline by more than 0.02``: nothing changed fails at most .055 of all runs, a drop of .05
            among 200 questions at least .95
advice      of undecided gates, how many are settled by as many more questions as they say
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtr

from pytest_ragbench.gates.baseline import Baseline
from pytest_ragbench.gates.observations import Observations
from pytest_ragbench.gates.rules import parse_rule
from pytest_ragbench.gates.verdicts import Conditions, evaluate
from pytest_ragbench.model.tests import SampleRecord, ScoreRecord, TestRecord
from pytest_ragbench.model.thresholds import TOLERANCE
from pytest_ragbench.statistics.bounds import mean_bounds
from pytest_ragbench.statistics.clusters import effective_count
from pytest_ragbench.statistics.gaffke import lower_quantiles
from pytest_ragbench.statistics.paired import FEWEST, LEVEL, holm, sign_flip
from pytest_ragbench.statistics.planning import more_questions

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]
Rng: TypeAlias = np.random.Generator

SUITES, DOCUMENT_SUITES, RUNS = 4000, 4000, 2000
THRESHOLDS = (0.8, 0.9, 0.95)
SIZES = (10, 20, 50, 100, 200, 400)


@dataclass(frozen=True)
class Rate:
    """A simulated share, and between what it is promised to lie."""

    cell: str
    value: float
    runs: int
    usual: int
    """Runs by default: of fewer, the simulation's own error is allowed."""
    least: float = 0.0
    most: float = 1.0

    @property
    def held(self) -> bool:
        allowed = 0.0
        if self.runs < self.usual:
            allowed = 3 * math.sqrt(max(self.value * (1 - self.value), 0.05 * 0.95) / self.runs)
        return self.least - allowed <= self.value <= self.most + allowed

    def __str__(self) -> str:
        return f"{self.value:.3f}{' ' if self.held else '!'}"


# Scores with a known mean: (suites, n)


def of_values(values: Sequence[float], chances: Callable[[float], Sequence[float]]) -> Callable[..., Floats]:
    def draw(rng: Rng, mean: float, suites: int, n: int) -> Floats:
        return rng.choice(np.array(values), (suites, n), p=np.array(chances(mean)))

    return draw


THIRDS = (0.0, 1 / 3, 2 / 3, 1.0)


def thirds_chances(mean: float) -> list[float]:
    """Most at 1; of the others .2, .3 and .5 at 0, 1/3 and 2/3, as verified claims give them."""
    split = (0.2, 0.3, 0.5)
    missing = (1 - mean) / sum(share * (1 - value) for share, value in zip(split, THIRDS, strict=False))
    return [*(missing * share for share in split), 1 - missing]


KINDS: dict[str, Callable[[Rng, float, int, int], Floats]] = {
    "thirds": of_values(THIRDS, thirds_chances),
    "halves": of_values((0.0, 0.5, 1.0), lambda mean: ((1 - mean) / 2, 1 - mean, (3 * mean - 1) / 2)),
    "0 and 1": of_values((0.0, 1.0), lambda mean: (1 - mean, mean)),
    "beta": lambda rng, mean, suites, n: rng.beta(6 * mean, 6 * (1 - mean), (suites, n)),
    # A power of an even draw: most near 1, and a tail down to 0.
    "skewed": lambda rng, mean, suites, n: rng.random((suites, n)) ** ((1 - mean) / mean),
    # Nearly all equal and below the highest score, rarely 0.
    "ties": of_values((0.0, 0.98), lambda mean: (1 - mean / 0.98, mean / 0.98)),
}


def reaches(suites: Floats, share: float = 0.05) -> Floats:
    """(suites,) how far above 0 the lower bound of each suite lies: what ``mean_bounds`` does, for many at once."""
    distinct = np.unique(suites)
    if len(distinct) > len(THIRDS):
        return lower_quantiles(suites, np.ones_like(suites), share)
    counts = np.stack([(suites == value).sum(axis=1) for value in distinct], axis=1).astype(np.float64)
    found = lower_quantiles(np.tile(distinct, (len(suites), 1)), counts, share)
    assert abs(found[0] - mean_bounds(suites[0].tolist()).low) < 1e-7
    return found


def absolute(
    rng: Rng, suites: int, sizes: Sequence[int] = SIZES, thresholds: Sequence[float] = THRESHOLDS
) -> Iterator[Rate]:
    print(f"\nfalse passes of '>= t with 95% confidence', true mean t, {suites} suites a cell: at most .055")
    print(f"{'scores':<8}     t " + "".join(f"{f'n {n}':>8}" for n in sizes))
    for kind, draw in KINDS.items():
        for threshold in thresholds:
            row = []
            for n in sizes:
                drawn = draw(rng, threshold, suites, n)
                # No lower bound exceeds the mean, so half of the suites need none.
                above = drawn[drawn.mean(axis=1) >= threshold - TOLERANCE]
                passed = int((reaches(above) >= threshold - TOLERANCE).sum())
                row.append(Rate(f"{kind}, t {threshold}, n {n}", passed / suites, suites, SUITES, most=0.055))
            print(f"{kind:<8}  {threshold:4.2f} " + "".join(f"{rate!s:>8}" for rate in row), flush=True)
            yield from row


POWER = {
    20: ((0.10, 0, 0.38), (0.28, 0, 0.14), (0.58, 0.002, 0.03), (0.86, 0.02, 0), (0.99, 0.16, 0)),
    50: ((0.01, 0, 0.71), (0.13, 0.001, 0.29), (0.52, 0.03, 0.04), (0.92, 0.22, 0), (1, 0.79, 0)),
    100: ((0, 0, 0.94), (0.06, 0.001, 0.50), (0.54, 0.03, 0.03), (0.98, 0.48, 0), (1, 0.99, 0)),
    200: ((0, 0, 1), (0.01, 0, 0.76), (0.53, 0.04, 0.04), (1, 0.77, 0), (1, 1, 0)),
    400: ((0, 0, 1), (0, 0, 0.95), (0.53, 0.04, 0.04), (1, 0.98, 0), (1, 1, 0)),
}
"""Of threshold .85: n -> for each true mean, what passes `mean >=`, passes with confidence, fails without."""
TRUE_MEANS = (0.75, 0.80, 0.85, 0.90, 0.95)
HEADROOM = {100: 0.41, 200: 0.70, 400: 0.94}
"""Of threshold .8 at a true .85: n -> what passes with confidence."""
NEAR = 0.03


def power(rng: Rng, suites: int, sizes: Sequence[int] = tuple(POWER)) -> Iterator[Rate]:
    print(
        f"\nscores in thirds, threshold .85, {suites} suites a cell, within {NEAR} of the specification:\n"
        "'mean >= t' passes / '>= t with 95% confidence' passes / '>= t' fails"
    )
    print("   n " + "".join(f"{f'true {mean}':>24}" for mean in TRUE_MEANS))
    for n in sizes:
        row = []
        for mean, promised in zip(TRUE_MEANS, POWER[n], strict=True):
            drawn = KINDS["thirds"](rng, mean, suites, n)
            values = (
                float((drawn.mean(axis=1) >= 0.85 - TOLERANCE).mean()),
                float((reaches(drawn) >= 0.85 - TOLERANCE).mean()),
                float((1 - reaches(1 - drawn) < 0.85 - TOLERANCE).mean()),
            )
            row.append(
                [near(f"n {n}, true {mean}", *pair, suites) for pair in zip(values, promised, strict=True)]
            )
        print(f"{n:4d} " + "".join(f"{' /'.join(map(str, cell)):>24}" for cell in row), flush=True)
        yield from (rate for cell in row for rate in cell)
    print("threshold .8, true .85: passes with confidence")
    for n, wanted in HEADROOM.items():
        if n in sizes:
            passed = float((reaches(KINDS["thirds"](rng, 0.85, suites, n)) >= 0.8 - TOLERANCE).mean())
            rate = near(f"n {n}, threshold .8", passed, wanted, suites)
            print(f"{n:4d} {rate}")
            yield rate


def near(cell: str, value: float, promised: float, runs: int) -> Rate:
    return Rate(cell, value, runs, SUITES, least=promised - NEAR, most=promised + NEAR)


SHAPES: dict[str, list[int]] = {
    "10 of 5": [5] * 10,
    "5 of 10": [10] * 5,
    "25 of 2": [2] * 25,
    "20 of 10": [10] * 20,
    "40 of 5": [5] * 40,
    "30 and 20 of 1": [30] + [1] * 20,
    "mixed": [1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 10, 15],
}
"""Questions of each document."""
CORRELATIONS = (0.0, 0.05, 0.3)


def lower_with_documents(rng: Rng, mean: float, shape: str, correlation: float, suites: int) -> Floats:
    """(suites,) lower bounds of scores in thirds, whose order within a document follows from normal variables that
    have ``correlation`` there.
    """
    sizes = SHAPES[shape]
    documents = [place for place, size in enumerate(sizes) for _ in range(size)]
    shared = rng.normal(size=(suites, len(sizes)))[:, documents]
    own = rng.normal(size=(suites, len(documents)))
    even = ndtr(math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own)
    drawn = (even[:, :, None] > np.cumsum(thirds_chances(mean))[:3]).sum(axis=2)
    scores = np.array(THIRDS)[drawn]
    counts = np.stack([(drawn == place).sum(axis=1) for place in range(4)], axis=1)
    effective = np.array([effective_count(suite.tolist(), documents) for suite in scores])
    weights = counts * (effective / len(documents))[:, None]
    found = lower_quantiles(np.tile(THIRDS, (suites, 1)), weights, 0.05)
    assert abs(found[0] - mean_bounds(scores[0].tolist(), clusters=documents).low) < 1e-7
    return found


def with_documents(rng: Rng, suites: int, shapes: Sequence[str] = tuple(SHAPES)) -> Iterator[Rate]:
    print(f"\nfalse passes with documents, scores in thirds, {suites} suites a cell: at most .07")
    cells = [(threshold, correlation) for threshold in (0.85, 0.95) for correlation in CORRELATIONS]
    print(
        f"{'documents':<15}"
        + "".join(f"{f't {t} r {r}':>14}" for t, r in cells)
        + "   power, true .95 for .85"
    )
    for shape in shapes:
        row, powers = [], []
        for threshold, correlation in cells:
            low = lower_with_documents(rng, threshold, shape, correlation, suites)
            passed = float((low >= threshold - TOLERANCE).mean())
            name = f"{shape}, t {threshold}, correlation {correlation}"
            row.append(Rate(name, passed, suites, DOCUMENT_SUITES, most=0.07))
        for correlation in CORRELATIONS:
            low = lower_with_documents(rng, 0.95, shape, correlation, max(suites // 4, 1))
            powers.append(float((low >= 0.85).mean()))
        said = " ".join(f"{value:.2f}" for value in powers)
        print(f"{shape:<15}" + "".join(f"{rate!s:>14}" for rate in row) + f"   {said}", flush=True)
        yield from row


# Against a baseline: two runs of the same questions, each score with a judge's noise of its own.
NOISE, BASE = 0.1414, 0.88
CLAIMS = range(2, 7)
INNER = sum(1 / claims for claims in CLAIMS) / len(CLAIMS)
RHO = 1 - NOISE**2 / (BASE * (1 - BASE) * INNER)
"""How alike the claims of one answer are, so that the noise of its share that holds is NOISE."""
METRICS = (
    "faithfulness",
    "answer_relevancy",
    "context_recall",
    "context_precision",
    "answer_correctness",
    "answer_accuracy",
)


def results(scores: Sequence[float], metric: str = METRICS[0]) -> list[TestRecord]:
    return [
        TestRecord(
            test=f"t.py::t[{place}]",
            outcome="passed",
            samples=(SampleRecord(id=f"q{place}", question=f"{place}?"),),
            scores=(ScoreRecord(metric=metric, tier="generation", sample=0, value=float(score)),),
        )
        for place, score in enumerate(scores)
    ]


def two_runs(rng: Rng, drop: float, n: int, repeats: int, of_claims: bool = False) -> tuple[Floats, Floats]:
    """(n,) old and new scores, means of ``repeats``. The noise is the same for all scores, or that of claims that are
    split and checked anew, which grows as fewer of them hold: .14 at the base, .18 after a drop of .05.
    """
    if not of_claims:
        base = rng.uniform(0.4, 0.6, n)  # far from the ends: nothing is cut off
        noise = rng.normal(0, NOISE, (2, n, repeats)).mean(axis=2)
        return base + noise[0], base - drop + noise[1]
    total = 1 / RHO - 1
    truth = rng.beta(BASE * total, (1 - BASE) * total, (n, 1))
    claims = rng.choice(list(CLAIMS), (n, 1))
    old, new = (
        (rng.binomial(claims, truth * (1 - less / BASE), (n, repeats)) / claims).mean(axis=1)
        for less in (0.0, drop)
    )
    return old, new


def fails(pairs: Sequence[tuple[Floats, Floats]]) -> bool:
    """Whether any metric, given by its scores in both runs, fails its rule; by the functions of the rule itself."""
    adjusted = holm([sign_flip((new - old).tolist()) for old, new in pairs])
    dropped = [float((old - new).mean()) > 0.02 + TOLERANCE for old, new in pairs]
    changed = [int((np.abs(new - old) > TOLERANCE).sum()) >= FEWEST for old, new in pairs]
    return any(p < LEVEL and all(rest) for p, *rest in zip(adjusted, dropped, changed, strict=True))


def fails_in_a_run(pairs: Sequence[tuple[Floats, Floats]]) -> bool:
    """The same through the whole decision, which takes 20 times longer."""
    sides: tuple[list[TestRecord], list[TestRecord]] = ([], [])
    for metric, pair in zip(METRICS, pairs, strict=False):
        for side, scores in zip(sides, pair, strict=True):
            side.extend(results(scores.tolist(), metric))
    old, new = (Observations(side) for side in sides)
    rules = [
        parse_rule(f"{metric} no worse than baseline by more than 0.02") for metric in METRICS[: len(pairs)]
    ]
    verdicts = evaluate(rules, new, Conditions(baseline=Baseline(old)))
    return any(verdict.outcome == "FAIL" for verdict in verdicts)


COMPARED = 2
"""Runs of each cell that are decided in both ways."""


def share_that_fails(
    rng: Rng, runs: int, drop: float, n: int, repeats: int, of_claims: bool, metrics: int = 1
) -> float:
    failed = 0
    for run in range(runs):
        pairs = [two_runs(rng, drop, n, repeats, of_claims) for _ in range(metrics)]
        failed += (found := fails(pairs))
        assert run >= COMPARED or fails_in_a_run(pairs) == found
    return failed / runs


def regression(rng: Rng, runs: int) -> Iterator[Rate]:
    print(f"\n'no worse than baseline by more than 0.02': share of {runs} runs that fail")
    for drop, n, repeats, of_claims, least, most in (
        (0.0, 50, 1, False, 0.0, 0.055),
        (0.0, 200, 1, False, 0.0, 0.055),
        (0.05, 50, 1, False, 0.44, 1.0),
        (0.05, 50, 3, False, 0.83, 1.0),
        (0.05, 200, 1, False, 0.95, 1.0),
        (0.0, 200, 1, True, 0.0, 0.055),
        (0.05, 50, 3, True, 0.8, 1.0),
        (0.05, 200, 1, True, 0.88, 1.0),
    ):
        noise = "noise of claims" if of_claims else "even noise"
        name = f"drop {drop:.2f}, n {n:3d}, repeats {repeats}, {noise}"
        value = share_that_fails(rng, runs, drop, n, repeats, of_claims)
        rate = Rate(name, value, runs, RUNS, least, most)
        print(f"  {name:<46} {rate} ({least:g} to {most:g})", flush=True)
        yield rate
    value = share_that_fails(rng, runs, 0.0, 50, 1, False, len(METRICS))
    rate = Rate("six metrics, nothing changed", value, runs, RUNS, most=0.055)
    print(f"  {'six metrics, nothing changed, any fails':<46} {rate} (at most .055, by Holm)", flush=True)
    yield rate


def advice(rng: Rng, suites: int) -> Iterator[Rate]:
    print("\nundecided at n 50, threshold .85: settled by as many more questions as it says (.8 is aimed at)")
    for mean in (0.75, 0.80, 0.90, 0.95):
        more, settled = [], 0
        for scores in KINDS["thirds"](rng, mean, suites, 50):
            found = mean_bounds(scores.tolist())
            if found.low >= 0.85 or found.high < 0.85:
                continue
            if (extra := more_questions(scores.tolist(), 0.85)) is None:
                continue
            more.append(extra)
            later = mean_bounds(KINDS["thirds"](rng, mean, 1, min(50 + extra, 20_000))[0].tolist())
            settled += later.low >= 0.85 or later.high < 0.85
        rate = Rate(f"advice, true {mean}", settled / max(len(more), 1), len(more), SUITES, least=0.6)
        print(f"  true mean {mean:.2f}: {rate} of {len(more)} undecided, median {np.median(more):.0f} more")
        yield rate


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suites", type=int, default=SUITES)
    parser.add_argument("--documents", type=int, default=DOCUMENT_SUITES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seed", type=int, default=1)
    parts: dict[str, Callable[[Rng, argparse.Namespace], Iterator[Rate]]] = {
        "absolute": lambda rng, given: absolute(rng, given.suites),
        "power": lambda rng, given: power(rng, given.suites),
        "documents": lambda rng, given: with_documents(rng, given.documents),
        "regression": lambda rng, given: regression(rng, given.runs),
        "advice": lambda rng, given: advice(rng, max(given.suites // 10, 10)),
    }
    parser.add_argument("--only", choices=list(parts), action="append", help="this part; may be given again")
    given = parser.parse_args(arguments)
    broken = []
    for name, part in parts.items():
        if given.only is None or name in given.only:
            # Each part draws from its own numbers, so that leaving one out changes no other.
            rng = np.random.default_rng([given.seed, *name.encode()])
            broken += [rate for rate in part(rng, given) if not rate.held]
    for rate in broken:
        print(f"outside its promise: {rate.cell}: {rate.value:.3f}, promised {rate.least:g} to {rate.most:g}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
