"""How well two or more raters agree: a judge with itself, with another judge, with people.

Sources: Cohen 1960 and 1968 (kappa, weighted kappa), Gwet 2008 (AC1), Krippendorff 2011 (alpha).
A rating of ``None`` is missing: the call failed, or nobody rated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any, Literal, NamedTuple

import numpy as np

from pytest_ragbench.model.errors import UndefinedScore, UsageError

Weights = Literal["linear", "quadratic"]
Level = Literal["nominal", "ordinal", "interval"]


@dataclass(frozen=True, slots=True)
class Consistency:
    """Share of pairs of scores that lie close together, and what that share is worth."""

    value: float
    delta: float
    """How far apart a pair may be, as a share of the scale."""
    chance: float
    """The share that two judges reach who answer at random, evenly over the scale."""
    alpha: float | None
    """Krippendorff's interval alpha of the pairs; None where all scores are equal."""
    n_pairs: int
    n_left_out: int
    """Pairs in which a call failed."""

    def __str__(self) -> str:
        alpha = "undefined" if self.alpha is None else f"{self.alpha:.2f}"
        return (
            f"consistency {self.value:.2f} (by chance {self.chance:.2f}), alpha {alpha}, {self.n_pairs} pairs"
        )


def consistency(
    first: Sequence[float | None],
    second: Sequence[float | None],
    *,
    delta: float | None = None,
    scale: tuple[float, float] = (0.0, 1.0),
    levels: Sequence[float] | None = None,
) -> Consistency:
    """Share of pairs with |s1 - s2| <= delta, after normalising the scores to [0, 1].

    Parameters
    ----------
    first, second
        Scores of the same samples, in the same order; None where a call failed (the pair is left out).
    delta
        Allowed difference as a share of the scale. Default 0.1; with ``levels`` the same level.
    scale
        Lowest and highest score; not used with ``levels``.
    levels
        All grades of a discrete scale.

    Raises
    ------
    UsageError
        Lists of different length, a score outside the scale, a scale that does not ascend.
    UndefinedScore
        No pair with two scores (code ``no_pairs``).
    """
    grades = None if levels is None else sorted(float(level) for level in set(levels))
    low, high = (grades[0], grades[-1]) if grades else scale
    if not high > low:
        raise UsageError(f"a scale must ascend, got {low:g}..{high:g}")
    pairs, left_out = _pairs(first, second)
    if not pairs:
        raise UndefinedScore(f"no pair of scores to compare ({left_out} left out)", code="no_pairs")
    for score in (score for pair in pairs for score in pair):
        if not low <= score <= high or (grades and score not in grades):
            raise UsageError(f"score {score!r} is not on the scale {grades or f'{low:g}..{high:g}'}")
    if grades:
        steps = np.diff(np.array(grades)) / (high - low)
        allowed = float(steps.min()) / 2 if delta is None else delta
        unit = (np.array(grades) - low) / (high - low)
        chance = float((np.abs(unit[:, None] - unit) <= allowed + 1e-9).mean())
    else:
        allowed = 0.1 if delta is None else delta
        # For two even draws in 0..1: P(|a - b| <= d) = 2d - d².
        chance = 1.0 if allowed >= 1 else 2 * allowed - allowed**2
    if not allowed >= 0:
        raise UsageError(f"delta must not be negative, got {delta!r}")
    table = (np.array(pairs, dtype=np.float64) - low) / (high - low)
    close = np.abs(table[:, 0] - table[:, 1]) <= allowed + 1e-9
    try:
        alpha: float | None = krippendorff_alpha(table.T.tolist(), level="interval")
    except UndefinedScore:
        alpha = None
    return Consistency(float(close.mean()), allowed, chance, alpha, len(pairs), left_out)


@dataclass(frozen=True, slots=True)
class Classification:
    """A yes/no judge against the truth; "yes" is positive.

    Where a ratio is 0/0 the property raises UndefinedScore; it is never 0 by convention.
    """

    tp: int
    fp: int
    fn: int
    tn: int
    n_failed: int
    """Calls without an answer: in none of the ratios but :attr:`error_rate`."""

    @property
    def accuracy(self) -> float:
        """Right answers / answers."""
        return _ratio(
            self.tp + self.tn, self.tp + self.fp + self.fn + self.tn, "accuracy: the judge never answered"
        )

    @property
    def precision(self) -> float:
        """Right "yes" / all "yes" of the judge."""
        return _ratio(self.tp, self.tp + self.fp, 'precision: the judge never said "yes"')

    @property
    def recall(self) -> float:
        """Right "yes" / all that should be "yes" (the true positive rate)."""
        return _ratio(self.tp, self.tp + self.fn, 'recall: no sample should be "yes"')

    @property
    def specificity(self) -> float:
        """Right "no" / all that should be "no" (the true negative rate)."""
        return _ratio(self.tn, self.tn + self.fp, 'specificity: no sample should be "no"')

    @property
    def f1(self) -> float:
        """2 TP / (2 TP + FP + FN)."""
        return _ratio(2 * self.tp, 2 * self.tp + self.fp + self.fn, 'F1: nobody ever said "yes"')

    @property
    def error_rate(self) -> float:
        """Failed calls / all calls."""
        return error_rate(self.n_failed, self.tp + self.fp + self.fn + self.tn + self.n_failed)


def classification(predicted: Sequence[bool | None], actual: Sequence[bool]) -> Classification:
    """Count a judge's yes/no answers (None: the call failed) against the truth.

    Raises UsageError for lists of different length and for anything else than True, False and None.
    """
    if len(predicted) != len(actual):
        raise UsageError(f"{len(predicted)} predictions for {len(actual)} samples; give one for each")
    counts: Counter[tuple[bool | None, bool]] = Counter()
    for index, (said, truth) in enumerate(zip(predicted, actual, strict=True)):
        if truth not in (True, False) or not (said is None or said in (True, False)):
            raise UsageError(f"sample {index}: expected True or False, got {said!r} for {truth!r}")
        counts[None if said is None else bool(said), bool(truth)] += 1
    return Classification(
        tp=counts[True, True],
        fp=counts[True, False],
        fn=counts[False, True],
        tn=counts[False, False],
        n_failed=counts[None, True] + counts[None, False],
    )


def error_rate(failed: int, attempted: int) -> float:
    """Failed calls / attempted calls; UndefinedScore where none was attempted."""
    if not 0 <= failed <= attempted:
        raise UsageError(f"{failed} failed of {attempted} attempted calls is not possible")
    return _ratio(failed, attempted, "error rate: no call was made")


class Latency(NamedTuple):
    """Seconds."""

    mean: float
    p95: float


def latency(seconds: Iterable[float]) -> Latency:
    """Mean and 95th percentile (linear between neighbours) of successful attempts, retries excluded."""
    durations = np.array(list(seconds), dtype=np.float64)
    if not len(durations):
        raise UndefinedScore("latency: no call succeeded", code="no_calls")
    if not (np.isfinite(durations).all() and (durations >= 0).all()):
        raise UsageError("a duration must be a finite number of seconds, not negative")
    return Latency(float(durations.mean()), float(np.percentile(durations, 95)))


def cohen_kappa(
    first: Sequence[Hashable],
    second: Sequence[Hashable],
    *,
    weights: Weights | None = None,
    levels: Sequence[Hashable] | None = None,
) -> float:
    """Cohen's kappa of two raters, (po - pe) / (1 - pe).

    Parameters
    ----------
    first, second
        Ratings of the same items; pairs with a None are left out.
    weights
        ``"linear"`` or ``"quadratic"`` for ordered grades: disagreement by the distance in ``levels``.
    levels
        All grades in their order; default: those that occur, sorted. It matters with weights, where a
        grade that nobody gave lies between two that were given.

    Raises
    ------
    UndefinedScore
        No pairs (``no_pairs``), or both raters always gave the same one grade (``no_variation``).
    UsageError
        Lists of different length, unknown weights, a rating that is not in ``levels``.
    """
    table, n = _table(first, second, levels)
    grades = np.arange(len(table), dtype=np.float64)
    apart = np.abs(grades[:, None] - grades)
    match weights:
        case None:
            cost = (apart > 0).astype(np.float64)
        case "linear":
            cost = apart
        case "quadratic":
            cost = apart**2
        case _:
            raise UsageError(f"weights must be linear, quadratic or None; got {weights!r}")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    # Weighted disagreement that independent raters with the same margins would have.
    by_chance = float((cost * expected).sum())
    if by_chance == 0:
        raise UndefinedScore(
            "kappa: no variation, both raters gave every item the same grade", code="no_variation"
        )
    return 1.0 - float((cost * table).sum()) / by_chance


def gwet_ac1(
    first: Sequence[Hashable], second: Sequence[Hashable], *, levels: Sequence[Hashable] | None = None
) -> float:
    """Gwet's AC1 of two raters: as kappa, with a chance agreement that skewed grades don't inflate.

    pe = sum of p(1 - p) over the grades / (number of grades - 1), p the mean share of a grade.
    Give ``levels`` where grades may be missing from the data. Errors as :func:`cohen_kappa`.
    """
    table, n = _table(first, second, levels)
    if len(table) < 2:
        raise UndefinedScore("AC1: no variation, only one grade is known; give 'levels'", code="no_variation")
    agreed = float(np.trace(table)) / n
    shares = (table.sum(axis=0) + table.sum(axis=1)) / (2 * n)
    by_chance = float((shares * (1 - shares)).sum()) / (len(table) - 1)
    return (agreed - by_chance) / (1 - by_chance)


def auc(values: Any, truth: Any) -> float:
    """Share of (true, false) pairs in which the true one scores higher (Hanley and McNeil 1982); ties count half."""
    from scipy.stats import rankdata

    truth = np.asarray(truth, dtype=bool)
    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        raise UndefinedScore("AUC needs labels of both kinds", code="no_variation")
    ranks = rankdata(np.asarray(values, dtype=np.float64))
    return float((ranks[truth].sum() - positive * (positive + 1) / 2) / (positive * negative))


def best_threshold(values: Any, truth: Any) -> float:
    """The score t for which "at least t" has the largest TPR + TNR; the highest of equals."""
    values, truth = np.asarray(values, dtype=np.float64), np.asarray(truth, dtype=bool)
    return float(
        max(np.unique(values), key=lambda t: ((values >= t)[truth].mean() + (values < t)[~truth].mean(), t))
    )


def krippendorff_alpha(ratings: Sequence[Sequence[Any]], level: Level = "nominal") -> float:
    """Krippendorff's alpha, 1 - observed / expected disagreement, for any number of raters.

    Parameters
    ----------
    ratings
        One row a rater, one column an item; None (or NaN) where a rating is missing. Items with fewer
        than two ratings are left out.
    level
        ``"nominal"`` (names), ``"ordinal"`` (ranks) or ``"interval"`` (numbers).

    Raises
    ------
    UndefinedScore
        No item with two ratings (``no_pairs``), or only one value occurs (``no_variation``).
    UsageError
        Rows of different length, an unknown level, values without an order, or that aren't numbers.
    """
    if level not in ("nominal", "ordinal", "interval"):
        raise UsageError(f"level must be nominal, ordinal or interval; got {level!r}")
    lengths = {len(row) for row in ratings}
    if len(lengths) > 1:
        raise UsageError(f"every rater needs one entry for each item; got rows of {sorted(lengths)}")
    units = [[value for value in unit if not _missing(value)] for unit in zip(*ratings, strict=True)]
    # A single rating has nothing to agree with.
    units = [unit for unit in units if len(unit) > 1]
    if not units:
        raise UndefinedScore("alpha: no item has two ratings", code="no_pairs")
    counts = Counter(value for unit in units for value in unit)
    n = sum(counts.values())
    if len(counts) < 2:
        raise UndefinedScore("alpha: no variation, all ratings are equal", code="no_variation")
    if level == "nominal":
        observed = sum(_unlike(Counter(unit)) / (len(unit) - 1) for unit in units)
        return 1.0 - (n - 1) * observed / _unlike(counts)
    place = _places(counts, level)
    mean = sum(place[value] * times for value, times in counts.items()) / n
    observed = sum(
        _square_differences([place[value] - mean for value in unit]) / (len(unit) - 1) for unit in units
    )
    expected = 2 * n * sum(times * (place[value] - mean) ** 2 for value, times in counts.items())
    return 1.0 - (n - 1) * observed / expected


def _unlike(counts: Counter[Any]) -> int:
    """Ordered pairs of unlike values."""
    return sum(counts.values()) ** 2 - sum(times**2 for times in counts.values())


def _square_differences(values: Sequence[float]) -> float:
    """Sum of (x - y)² over ordered pairs."""
    return 2 * (len(values) * sum(value**2 for value in values) - sum(values) ** 2)


def _places(counts: Counter[Any], level: Level) -> dict[Any, float]:
    """Value -> where it lies. Krippendorff's ordinal distance is the distance of mean ranks."""
    try:
        if level == "interval":
            places = {value: float(value) for value in counts}
            if not np.isfinite(list(places.values())).all():
                raise ValueError
            return places
        ranks, below = {}, 0
        for value in sorted(counts):
            ranks[value] = below + counts[value] / 2
            below += counts[value]
        return ranks
    except (TypeError, ValueError):
        raise UsageError(f"{level} alpha needs values with an order; got {list(counts)[:5]}") from None


def _missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def _pairs(first: Sequence[Any], second: Sequence[Any]) -> tuple[list[tuple[Any, Any]], int]:
    if len(first) != len(second):
        raise UsageError(f"{len(first)} ratings against {len(second)}; give one of each rater for every item")
    pairs = [
        (one, other)
        for one, other in zip(first, second, strict=True)
        if not _missing(one) and not _missing(other)
    ]
    return pairs, len(first) - len(pairs)


def _table(
    first: Sequence[Hashable], second: Sequence[Hashable], levels: Sequence[Hashable] | None
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], int]:
    """Contingency table of two raters, grades in order."""
    pairs, left_out = _pairs(first, second)
    if not pairs:
        raise UndefinedScore(f"no pair of ratings to compare ({left_out} left out)", code="no_pairs")
    seen = {value for pair in pairs for value in pair}
    if levels is None:
        try:
            grades: list[Any] = sorted(seen)
        except TypeError:
            raise UsageError(
                f"ratings of different types have no order: {list(seen)[:5]}; give 'levels'"
            ) from None
    else:
        grades = list(levels)
        if unknown := seen - set(grades):
            raise UsageError(f"rating {next(iter(unknown))!r} is not one of the levels {grades}")
    place = {grade: index for index, grade in enumerate(grades)}
    table = np.zeros((len(grades), len(grades)))
    for (one, other), times in Counter(pairs).items():
        table[place[one], place[other]] = times
    return table, len(pairs)


def _ratio(above: float, below: float, undefined: str) -> float:
    if not below:
        raise UndefinedScore(undefined, code="undefined_ratio")
    return above / below
