"""What the trials of a run come to: by metric, by kind, and for the gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_ragbench.clean import one_line
from pytest_ragbench.gates.baseline import Baseline
from pytest_ragbench.gates.observations import Key, Observations
from pytest_ragbench.gates.rules import Rule
from pytest_ragbench.gates.verdicts import Conditions, evaluate
from pytest_ragbench.model.report import (
    MutatedGateRecord,
    MutatedMetricRecord,
    MutationKindRecord,
    MutationsRecord,
    SurvivorRecord,
)
from pytest_ragbench.mutation.rules import KINDS
from pytest_ragbench.mutation.running import Trial
from pytest_ragbench.report.layout import aligned
from pytest_ragbench.statistics.bounds import TWO_SIDED, share_bounds

_SURVIVORS_SHOWN = 2
"""Of each kind and metric."""


def outcome(
    trials: Sequence[Trial],
    rules: Sequence[Rule] = (),
    observed: Observations | None = None,
    conditions: Conditions | None = None,
) -> MutationsRecord:
    """All of it: ``mutations`` of the report.

    Parameters
    ----------
    trials
        Of any number of metrics.
    rules, observed, conditions
        The gates, what they saw of the run, and what held for them: each is decided again for a run in which
        every question has the fault.
    """
    by_metric: dict[str, list[Trial]] = {}
    for trial in trials:
        by_metric.setdefault(trial.metric, []).append(trial)
    gates = () if observed is None else against_gates(trials, rules, observed, conditions or Conditions())
    return MutationsRecord(
        metrics=tuple(_of_metric(name, own) for name, own in by_metric.items()), gates=tuple(gates)
    )


def _of_metric(name: str, trials: Sequence[Trial]) -> MutatedMetricRecord:
    return MutatedMetricRecord(
        metric=name,
        originals=len({trial.key for trial in trials}),
        caught=failed_share(trials, good=False),
        wrongly_failed=failed_share(trials, good=True),
        kinds=tuple(_of_kind(kind, own) for kind in KINDS if (own := [t for t in trials if t.kind == kind])),
        survivors=tuple(_survivor(trial) for trial in trials if trial.survived),
    )


def failed_share(trials: Sequence[Trial], *, good: bool) -> float | None:
    """Share of the bad variants that failed, or of the ``good`` ones, wrongly; None where none was judged."""
    failed = [not trial.passed for trial in trials if trial.good is good and trial.passed is not None]
    return sum(failed) / len(failed) if failed else None


def _of_kind(kind: str, trials: Sequence[Trial]) -> MutationKindRecord:
    """How many were judged, and the share that was judged rightly, with a 95 % interval (Clopper-Pearson)."""
    # A variant without a score says nothing of the judge: counted, and in no share.
    n = sum(trial.passed is not None for trial in trials)
    right = n - sum(trial.survived for trial in trials)
    record = MutationKindRecord(kind=kind, good=KINDS[kind], n=n, n_unscored=len(trials) - n, right=right)
    if not n:
        return record
    bounds = share_bounds(right, n, TWO_SIDED)
    return replace(record, share=right / n, low=bounds.low, high=bounds.high)


def _survivor(trial: Trial) -> SurvivorRecord:
    return SurvivorRecord(
        kind=trial.kind, good=trial.good, id=trial.key[0], change=trial.change, question=trial.question,
        answer=trial.answer, value=trial.value, threshold=trial.threshold, reason=trial.reason,
    )  # fmt: skip


def against_gates(
    trials: Sequence[Trial], rules: Sequence[Rule], observed: Observations, conditions: Conditions
) -> Iterator[MutatedGateRecord]:
    """What each gate says of a run in which every question that a fault could be put into has it.

    A gate against a baseline is held against the run itself, where there is no other.
    """
    before = conditions.baseline or Baseline(observed)
    for kind, good in KINDS.items():
        values: Mapping[tuple[str, Key], tuple[float, bool]] = {
            (trial.metric, trial.key): (trial.value, trial.passed)
            for trial in trials
            if trial.kind == kind and trial.value is not None and trial.passed is not None
        }
        touched = {metric for metric, _ in values}
        # No variant of this kind was judged, so gates would only repeat the run's verdict.
        if not touched:
            continue
        faulty = observed.with_values(values)
        # Other gates see nothing of the fault: their verdict is that of the run.
        asked = [rule for rule in rules if rule.quantity in touched | {"pass_rate", "must_pass"}]
        held = replace(conditions, baseline=before, new=Baseline(faulty))
        for verdict in evaluate(asked, faulty, held):
            own = verdict.rule.quantity
            changed = {key for metric, key in values if own == metric or own not in touched}
            yield MutatedGateRecord(
                gate=verdict.rule.text, kind=kind, good=good, n_changed=len(changed), n_total=verdict.n_total,
                verdict=verdict.outcome, reason=verdict.reason,
            )  # fmt: skip


def text(found: MutationsRecord, columns: int = 200) -> list[str]:
    """Lines for people."""
    lines = [line for each in found.metrics for line in _metric_lines(each, columns)]
    return [*lines, *_gate_lines(found.gates)]


def _metric_lines(found: MutatedMetricRecord, columns: int) -> Iterator[str]:
    yield f"{found.metric}: variants of {found.originals} answers that passed"
    rows = [["variant", "right if it", "share (95 %)", "right", "unscored"]]
    for kind in found.kinds:
        share = "-" if kind.share is None else f"{kind.share:.2f} ({kind.low:.2f} to {kind.high:.2f})"
        wanted = "still passes" if kind.good else "is caught"
        rows.append([kind.kind, wanted, share, f"{kind.right}/{kind.n}", str(kind.n_unscored or "-")])
    left = ("variant", "right if it", "share (95 %)")
    drop = ("unscored", "right if it")
    yield from (f"  {x}" for x in aligned(rows, left=left, drop=drop, shrink="variant", columns=columns - 2))
    shares = {"bad variants caught": found.caught, "good ones wrongly failed": found.wrongly_failed}
    if said := [f"{name}: {share:.2f}" for name, share in shares.items() if share is not None]:
        yield f"  {', '.join(said)}"
    if found.survivors:
        yield "  judged wrongly:"
    seen = Counter[str]()
    for one in found.survivors:
        seen[one.kind] += 1
        if seen[one.kind] <= _SURVIVORS_SHOWN:
            what = "failed, but is as good as before" if one.good else "passed, but is wrong"
            said = [one_line(one.id, 60), one_line(one.change, 100), one_line(one.answer or "", 160)]
            yield f"    {one.kind:<16} {what}   {'   '.join(said)}"
    if rest := sum(max(0, count - _SURVIVORS_SHOWN) for count in seen.values()):
        yield f"    ... and {rest} more (JSON has all)"


def _gate_lines(gates: Sequence[MutatedGateRecord]) -> Iterator[str]:
    """One for each gate and verdict, with the kinds that get it; a ``!`` marks what should not be."""
    if gates:
        yield "gates, if every question that can be changed so were (changed/all):"
    together: dict[tuple[str, str, bool], list[str]] = {}
    for gate in gates:
        kinds = together.setdefault((gate.gate, gate.verdict, gate.good), [])
        kinds.append(f"{gate.kind} {gate.n_changed}/{gate.n_total}")
    for (name, verdict, good), kinds in sorted(together.items()):
        mark = "  " if (verdict == "FAIL") != good else "! "
        yield f"  {mark}{verdict:<10} {name}   {'still good: ' if good else ''}{', '.join(kinds)}"
