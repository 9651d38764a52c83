"""From rules and scores to verdicts: PASS, FAIL or UNDECIDED, and why, in one sentence."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_ragbench.gates.baseline import MAX_UNPAIRED, Baseline, Comparison, compare, on_no_claims, p_said
from pytest_ragbench.gates.observations import DESELECTED, NOT_REACHED, Key, Observations, Sample
from pytest_ragbench.gates.rules import Rule
from pytest_ragbench.model.report import GateOutcome, GateRecord
from pytest_ragbench.model.thresholds import TOLERANCE
from pytest_ragbench.money import dollars
from pytest_ragbench.statistics.bounds import Bounds, mean_bounds
from pytest_ragbench.statistics.paired import FEWEST, LEVEL, holm
from pytest_ragbench.statistics.percentile import percentile
from pytest_ragbench.statistics.planning import advice, more_questions


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says."""

    rule: Rule
    outcome: GateOutcome
    reason: str
    """One sentence."""
    broken: bool = False
    """The gate itself could not do its work: too much without a score, nothing measured, results lost."""
    value: float | None = None
    bounds: Bounds | None = None
    n_scored: int = 0
    n_total: int = 0
    n_clusters: int | None = None
    more: int | None = None
    """About how many more questions would settle it."""
    p: float | None = None
    p_holm: float | None = None
    comparison: Comparison | None = None

    @property
    def warning(self) -> str | None:
        """What a run is warned of where this gate can't tell."""
        return undecided(self.rule.text, self.reason) if self.outcome == "UNDECIDED" else None

    def record(self) -> GateRecord:
        """As a report has it."""
        bounds, rule = self.bounds, self.rule
        return GateRecord(
            gate=rule.text,
            metric=rule.quantity,
            system=rule.system,
            subset={name: tuple(values) for name, values in rule.subset},
            rule=rule.kind,
            statistic=rule.statistic,
            threshold=rule.threshold.text if rule.threshold else None,
            verdict=self.outcome,
            broken=self.broken,
            reason=self.reason,
            value=_float(self.value),
            low=_float(bounds.low) if bounds else None,
            high=_float(bounds.high) if bounds else None,
            confidence=rule.confidence,
            method=bounds.method if bounds else None,
            n_scored=self.n_scored,
            n_total=self.n_total,
            n_clusters=self.n_clusters,
            more_questions=self.more,
            p=_float(self.p),
            p_holm=_float(self.p_holm),
            comparison=self.comparison.record() if self.comparison else None,
        )


def _float(value: float | None) -> float | None:
    return None if value is None else float(value)  # numpy's can't cross to another process


def undecided(gate: str, reason: str) -> str:
    """The words of :attr:`Verdict.warning`."""
    return f"gate {gate}: undecided: {reason}"


EXIT_GATE_BROKEN = 9
"""No gate failed, but one could not do its work: too many questions without a score, nothing measured."""
EXIT_UNDECIDED = 10
"""No gate failed, but one can't tell, and ``gating.undecided`` is "fail"."""
EXIT_UNSCORED = 8
"""Nothing failed, but judge, service or embedder did."""
EXIT_NO_TESTS = 5
EXIT_USAGE = 4
_FAILED = 1
BETTER_THAN_FAILED = (0, EXIT_NO_TESTS, EXIT_UNSCORED)
"""Tests that failed, Ctrl-C and usage errors say more than any gate can."""


def exit_code_of(verdicts: Sequence[Verdict], given: int, *, undecided_fails: bool) -> int:
    """Of a run that would have ended with ``given``, which stays where something worse than its gates is known."""
    if given not in BETTER_THAN_FAILED:
        return given
    outcomes = {verdict.outcome for verdict in verdicts}
    if "FAIL" in outcomes:
        return _FAILED
    # A shard without tests has no broken gate: the merge decides over all of them.
    if given == EXIT_NO_TESTS:
        return given
    if any(verdict.broken for verdict in verdicts):
        return EXIT_GATE_BROKEN
    return EXIT_UNDECIDED if "UNDECIDED" in outcomes and undecided_fails and given == 0 else given


@dataclass(frozen=True, slots=True)
class Conditions:
    """What holds for all gates of a run."""

    max_unscored: float = 0.05
    """Share of the questions (0..1) that may be without a score."""
    max_unpaired: float = MAX_UNPAIRED
    """Share of the questions (0..1) that may be scored in one of two runs only."""
    clusters: bool = True
    complete: bool = True
    """False where results were lost or the run ended early."""
    baseline: Baseline | None = None
    no_baseline: str = "there is no baseline to compare with: give --ragbench-baseline FILE or a branch"
    """Why ``baseline`` is None."""
    new: Baseline | None = None
    """This run, as the baseline of a later one."""
    not_chosen: tuple[str, ...] = ()
    """Test files that ask for metrics and were left out of the run."""


def evaluate(
    rules: Sequence[Rule], observed: Observations, conditions: Conditions | None = None
) -> list[Verdict]:
    """One verdict a rule, in their order; Holm's correction is across the regression rules."""
    return evaluate_each([(rules, observed, conditions or Conditions())])


def evaluate_each(parts: Iterable[tuple[Sequence[Rule], Observations, Conditions]]) -> list[Verdict]:
    """The same for several systems, each with its own rules; Holm's correction is across all of them."""
    return _corrected(
        [_verdict(rule, observed, conditions) for rules, observed, conditions in parts for rule in rules]
    )


def _verdict(rule: Rule, observed: Observations, conditions: Conditions) -> Verdict:
    # Merged reports and later comparisons know the scores only, so the run goes by them, too.
    scale = observed.scales.get(rule.quantity, rule.scale)
    if scale is None:
        reason = f"tests of {rule.quantity} differ in its range, or in which way is better: its scores have no mean"
        return Verdict(rule, "UNDECIDED", reason, broken=True)
    if rule.statistic != "pass_rate" and rule.quantity in observed.scales:
        if rule.threshold is not None and scale.direction != rule.scale.direction:
            reason = (
                f"of {rule.quantity}, as the tests ask for it, {scale.direction} is better: the gate points the "
                "wrong way"
            )
            return Verdict(rule, "UNDECIDED", reason, broken=True)
        rule = replace(rule, scale=scale)  # what the scores say: an option may have turned the metric
    left_out = observed.n_deselected
    if rule.quantity == "cost":
        verdict = _cost(rule, observed)
    else:
        sample = observed.sample(rule)
        left_out = sum(why == DESELECTED for why in sample.unscored.values())
        if rule.kind == "baseline":
            verdict = _paired(rule, sample, observed, conditions)
        else:
            verdict = _absolute(rule, sample, observed, conditions)
    # A part that misses the gate is reason enough to fail; a part that meets it says nothing of the rest.
    if verdict.outcome == "PASS" and (why := _not_whole(rule, left_out, conditions)):
        reason = f"{why}, so it can't pass; so far: {verdict.reason}"
        return replace(verdict, outcome="UNDECIDED", broken=True, reason=reason)
    return verdict


def _not_whole(rule: Rule, deselected: int, conditions: Conditions) -> str:
    """Why the run is not the one that the rule is about; empty where it is."""
    if not conditions.complete:
        return "the run is not complete"
    if deselected:
        return f"the run is partial ({deselected} question{'s' * (deselected != 1)} deselected)"
    # A gate over a named part has its own denominator: what was collected of that part.
    if conditions.not_chosen and not rule.subset:
        named = ", ".join(conditions.not_chosen[:3]) + (" ..." if len(conditions.not_chosen) > 3 else "")
        return f"the run is partial (not chosen: {named})"
    return ""


def _absolute(rule: Rule, sample: Sample, observed: Observations, conditions: Conditions) -> Verdict:
    counts: dict[str, Any] = {"n_scored": sample.n_scored, "n_total": sample.n_total}
    # No share of these may be missing, so the allowance for judge errors does not apply.
    if rule.kind == "must_pass" and sample.n_total:
        return _must_pass(rule, sample, counts)
    if broken := _broken(rule, sample, sample.unscored, conditions):
        value = _value(rule, sample) if sample.values else None
        return Verdict(rule, "UNDECIDED", broken, broken=True, value=value, **counts)
    if rule.kind == "plain":
        return _plain(rule, sample, counts)
    keys = list(sample.values)
    clusters = observed.clusters(keys) if conditions.clusters else None
    return _with_bounds(rule, sample, keys, clusters, counts)


def _broken(rule: Rule, sample: Sample, missing: Mapping[Key, str], conditions: Conditions) -> str:
    """Why the scores can't carry a verdict at all; empty where they can. ``missing``: question -> why it has none."""
    if not sample.n_total:
        what = "question that must pass" if rule.kind == "must_pass" else f"score of {rule.name}"
        return f"the run has no {what}, so there is nothing to decide on"
    # Leaving out a few scores is harmless; leaving out many lets a broken judge pass a bad system.
    share = len(missing) / sample.n_total
    if not sample.n_scored or share > conditions.max_unscored + TOLERANCE:
        return (
            f"{len(missing)} of {sample.n_total} questions have no score ({_why_missing(missing)}); more "
            f"than {conditions.max_unscored:.0%} is too many to decide without them"
            f"{on_no_claims(rule.quantity) if 'no_claims' in missing.values() else ''}"
        )
    return ""


def _why_missing(missing: Mapping[Key, str]) -> str:
    """``3 skipped, 1 timeout``."""
    reasons = Counter(missing.values())
    return ", ".join(f"{count} {_said(reason)}" for reason, count in sorted(reasons.items()))


def _said(reason: str, *, hint: bool = True) -> str:
    if reason == NOT_REACHED:
        return "whose test failed before" + ("; assert_quality scores all metrics" if hint else "")
    return reason


# --- rules on one run ---------------------------------------------------------------------------


def _with_bounds(
    rule: Rule, sample: Sample, keys: Sequence[Key], clusters: list[str] | None, counts: dict[str, Any]
) -> Verdict:
    if rule.threshold is None:  # parse_rule gives one to each rule of this kind
        raise AssertionError(rule.text)
    values, wanted = [sample.values[key] for key in keys], rule.threshold
    counts["n_clusters"] = len(set(clusters)) if clusters else None
    value = _value(rule, sample)
    limit = rule.limit
    if share := _percentile_of(rule.statistic):
        # "p10 >= t" says that at least 90 % of the scores are at least t.
        values = [float(wanted.met(each)) for each in values]
        limit = 1 - share if rule.higher else share
        low, high = 0.0, 1.0
    else:
        low, high = rule.scale.low, rule.scale.high
    # One bound for every bounded score holds at any n, with ties and at the ends of the range.
    bounds = mean_bounds(values, clusters=clusters, confidence=rule.confidence, low=low, high=high)
    good, bad = (bounds.low, bounds.high) if rule.higher else (bounds.high, bounds.low)
    met = bounds.low >= limit - TOLERANCE if share else wanted.met(good)
    found = Verdict(rule, "PASS", "", value=value, bounds=bounds, **counts)
    head = f"{_mean_said(rule, value)} over {_questions(counts['n_scored'])}{_unscored_said(sample)}"
    if met:
        return replace(found, reason=f"{head}: {_bounded_said(rule, bounds, share)[0]}")
    # A release rule asks for evidence: short of it, the outcome is FAIL whether or not the truth is below.
    if rule.kind == "sure" and not wanted.met(bad):
        return replace(found, outcome="FAIL", reason=f"{head}: {_bounded_said(rule, bounds, share)[1]}")
    more = more_questions(values, limit, clusters=clusters, confidence=rule.confidence, low=low, high=high)
    if rule.kind == "confident":
        return replace(
            found, outcome="FAIL", more=more, reason=f"{head}: {_headroom(rule, bounds, limit, share)}"
        )
    between = f"the truth may lie anywhere from {bounds.low:.3f} to {bounds.high:.3f}"
    return replace(found, outcome="UNDECIDED", more=more, reason=f"{head}: {between}; {advice(more)}")


def _percentile_of(statistic: str) -> float | None:
    if statistic == "median":
        return 0.5
    return float(statistic[1:]) / 100 if statistic[0] == "p" and statistic[1].isdigit() else None


def _value(rule: Rule, sample: Sample) -> float:
    """The statistic of the scores."""
    values = list(sample.values.values())
    if share := _percentile_of(rule.statistic):
        return percentile(values, share)
    if rule.statistic in ("min", "max"):
        return min(values) if rule.statistic == "min" else max(values)
    return math.fsum(values) / len(values)


def _mean_said(rule: Rule, value: float) -> str:
    name = rule.statistic if rule.quantity not in ("pass_rate", "error_rate") else "share"
    name = "share that passed" if rule.statistic == "pass_rate" else name
    return f"{name} {rule.threshold.shown(value) if rule.threshold else f'{value:.3f}'}"


def _unscored_said(sample: Sample) -> str:
    missing = len(sample.unscored)
    return (
        f" ({missing} of {sample.n_total} left out, without a score: {_why_missing(sample.unscored)})"
        if missing
        else ""
    )


def _bounded_said(rule: Rule, bounds: Bounds, share: float | None) -> tuple[str, str]:
    """What is known where a gate passes, and where it fails."""
    sure = f"with {bounds.confidence:.0%} confidence"
    if share:  # without a confidence it is taken as it is, so it fails by its headroom alone
        return f"{sure} at least {bounds.low:.1%} of all meet {rule.limit:g}", ""
    low, high = f"{sure} at least {bounds.low:.3f}", f"{sure} at most {bounds.high:.3f}"
    return (low, high) if rule.higher else (high, low)


def _headroom(rule: Rule, bounds: Bounds, limit: float, share: float | None) -> str:
    known = bounds.low if rule.higher or share else bounds.high
    gap = abs(known - limit)
    side = "at least" if rule.higher or share else "at most"
    what = (
        f"{known:.1%} of all can be vouched for" if share else f"only {side} {known:.3f} can be vouched for"
    )
    return f"with {bounds.confidence:.0%} confidence {what}, {gap:.3f} short"


def _questions(count: int) -> str:
    return f"{count} question{'s' * (count != 1)}"


def _plain(rule: Rule, sample: Sample, counts: dict[str, Any]) -> Verdict:
    value = _value(rule, sample)
    passed = rule.threshold is not None and rule.threshold.met(value)
    head = f"{_mean_said(rule, value)} over {_questions(counts['n_scored'])}{_unscored_said(sample)}"
    reason = f"{head}, taken as it is, without regard to chance"
    return Verdict(rule, "PASS" if passed else "FAIL", reason, value=value, **counts)


def _cost(rule: Rule, observed: Observations) -> Verdict:
    if observed.unpriced or not observed.costs:
        named = ", ".join(sorted(observed.unpriced)) or "any call"
        reason = f"no price is known for {named}, so the cost of the run can't be told"
        return Verdict(rule, "UNDECIDED", reason, broken=bool(observed.unpriced))
    value = math.fsum(observed.costs)
    passed = rule.threshold is not None and rule.threshold.met(value)
    return Verdict(rule, "PASS" if passed else "FAIL", f"the judge took {dollars(value)}", value=value)


def _must_pass(rule: Rule, sample: Sample, counts: dict[str, Any]) -> Verdict:
    """Each of them passes; one that was not run, or has no score, has not passed."""
    failed = [key[0] for key, value in sample.values.items() if value < 1]
    unscored = [f"{key[0]} ({_said(why, hint=False)})" for key, why in sample.unscored.items()]
    value = 1 - (len(failed) + len(unscored)) / sample.n_total
    if not (failed or unscored):
        several = len(sample.values) != 1
        reason = (
            f"all {len(sample.values)} questions that must pass do"
            if several
            else "the question that must pass does"
        )
        return Verdict(rule, "PASS", reason, value=value, **counts)
    parts = [f"{len(failed)} of {sample.n_total} questions that must pass did not: {_few(failed)}"] * bool(
        failed
    )
    parts += [f"{len(unscored)} of {sample.n_total} have no verdict: {_few(unscored)}"] * bool(unscored)
    return Verdict(rule, "FAIL", "; ".join(parts), value=value, **counts)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")


# --- rules against a baseline -------------------------------------------------------------------


def _paired(rule: Rule, sample: Sample, observed: Observations, conditions: Conditions) -> Verdict:
    counts: dict[str, Any] = {"n_scored": sample.n_scored, "n_total": sample.n_total}
    value = _value(rule, sample) if sample.values else None
    if conditions.baseline is None:
        reason = conditions.no_baseline
        return Verdict(rule, "UNDECIDED", reason, broken=True, value=value, **counts)
    new = conditions.new or Baseline(observed)
    found = compare(rule, new, conditions.baseline, max_unpaired=conditions.max_unpaired)
    # A refusal without claims in both runs is the same in both, and not missing.
    missing = {key: why for key, why in sample.unscored.items() if key not in found.equal}
    if broken := _broken(rule, sample, missing, conditions):
        return Verdict(rule, "UNDECIDED", broken, broken=True, value=value, **counts)
    if not found.pairs:
        reason = (
            f"no question with {rule.quantity} is in both runs: {found.differences_said or 'nothing to pair'}"
        )
        return Verdict(rule, "UNDECIDED", reason, broken=True, value=value, comparison=found, **counts)
    verdict = Verdict(rule, "PASS", found.said, value=value, p=found.p, comparison=found, **counts)
    if found.differences:
        reason = f"{found.said}, but the runs are not comparable: {found.differences_said}"
        return replace(verdict, outcome="UNDECIDED", reason=reason)
    # Four sign flips out of four have p = .0625: no test could call that significant.
    if found.drop > rule.margin + TOLERANCE and found.n_changed < FEWEST:
        reason = f"{found.said}; with fewer than {FEWEST} changed questions chance can't be ruled out"
        return replace(verdict, outcome="UNDECIDED", reason=reason)
    return verdict


def _corrected(verdicts: list[Verdict]) -> list[Verdict]:
    """Holm across the regression rules, then FAIL where the drop is too large to be chance."""
    # Also those that are undecided for other reasons: leaving them out would make Holm too lenient.
    tested = [place for place, verdict in enumerate(verdicts) if verdict.p is not None]
    adjusted = holm([verdicts[place].p or 0.0 for place in tested])
    result = list(verdicts)
    for place, p in zip(tested, adjusted, strict=True):
        verdict = replace(verdicts[place], p_holm=p)
        comparison = verdict.comparison
        if verdict.outcome == "PASS" and comparison is not None:
            dropped = comparison.drop > verdict.rule.margin + TOLERANCE
            if dropped and p < LEVEL:
                verdict = replace(
                    verdict, outcome="FAIL", reason=f"{comparison.said}, and chance can't explain it"
                )
            elif dropped:
                reason = f"{comparison.said}, which chance may explain"
                verdict = replace(verdict, reason=reason)
            # A one-sided p near 1 beside "better" reads like a contradiction.
            if comparison.drop > 0 and comparison.n_changed:
                among = f" among {len(tested)} such rules" if len(tested) > 1 else ""
                few = comparison.n_changed < FEWEST
                said = comparison.chance if few else f"{p_said(p)}{among}"
                verdict = replace(verdict, reason=f"{verdict.reason}; {said}")
        result[place] = verdict
    return result


__all__ = ["Conditions", "Verdict", "evaluate"]
