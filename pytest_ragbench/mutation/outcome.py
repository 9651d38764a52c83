"""What the trials of a run come to: by metric, by kind, and for the gates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_ragbench.clean import one_line
from pytest_ragbench.gates.baseline import Baseline
from pytest_ragbench.gates.observations import Key, Observations
from pytest_ragbench.gates.rules import Rule
from pytest_ragbench.gates.verdicts import Conditions, evaluate
from pytest_ragbench.mutation.rules import KINDS
from pytest_ragbench.mutation.running import Trial, caught, summary
from pytest_ragbench.report.layout import aligned

_SURVIVORS = 2
"""So many of each kind are shown for each metric."""


def outcome(
    trials: Sequence[Trial],
    rules: Sequence[Rule] = (),
    observed: Observations | None = None,
    conditions: Conditions | None = None,
) -> dict[str, Any]:
    """All of it, for JSON: ``mutations`` of the report.

    Parameters
    ----------
    trials
        Of any number of metrics.
    rules, observed, conditions
        The gates, what they saw of the run, and what held for them: each is decided again for a run in which
        every question has the fault.
    """
    names = list(dict.fromkeys(trial.metric for trial in trials))
    metrics = [_of_metric(name, [trial for trial in trials if trial.metric == name]) for name in names]
    gates = [] if observed is None else against_gates(trials, rules, observed, conditions or Conditions())
    return {"metrics": metrics, "gates": gates}


def _of_metric(name: str, trials: Sequence[Trial]) -> dict[str, Any]:
    return {
        "metric": name,
        "originals": len({trial.key for trial in trials}),
        "caught": caught(trials),
        "wrongly_failed": caught(trials, good=True),
        "kinds": summary(trials),
        "survivors": [_survivor(trial) for trial in trials if trial.survived],
    }


def _survivor(trial: Trial) -> dict[str, Any]:
    return {
        "kind": trial.kind,
        "good": trial.good,
        "id": trial.key[0],
        "change": trial.change,
        "question": trial.question,
        "answer": trial.answer,
        "value": trial.value,
        "threshold": trial.threshold,
        "reason": trial.reason,
    }


def against_gates(
    trials: Sequence[Trial], rules: Sequence[Rule], observed: Observations, conditions: Conditions
) -> list[dict[str, Any]]:
    """What each gate says of a run in which every question that a fault could be put into has it.

    A gate against a baseline is held against the run itself, where there is no other.
    """
    found = []
    before = conditions.baseline or Baseline(observed)
    for kind, good in KINDS.items():
        of_kind = [trial for trial in trials if trial.kind == kind and trial.passed is not None]
        if not of_kind:
            continue
        values: Mapping[tuple[str, Key], tuple[float, bool]] = {
            (trial.metric, trial.key): (trial.value, trial.passed)
            for trial in of_kind
            if trial.value is not None and trial.passed is not None
        }
        touched = {trial.metric for trial in of_kind}
        faulty = observed.with_values(values)
        asked = [rule for rule in rules if rule.quantity in touched | {"pass_rate", "must_pass"}]
        held = Conditions(
            conditions.max_unscored, conditions.clusters, conditions.complete, before, Baseline(faulty)
        )
        for verdict in evaluate(asked, faulty, held):
            own = verdict.rule.quantity
            changed = {key for metric, key in values if own == metric or own not in touched}
            found.append(
                {
                    "gate": verdict.rule.text,
                    "kind": kind,
                    "good": good,
                    "n_changed": len(changed),
                    "n_total": verdict.n_total,
                    "verdict": verdict.outcome,
                    "reason": verdict.reason,
                }
            )
    return found


def _gate_lines(gates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One for each gate and verdict, with the kinds that get it; a ``!`` marks what should not be."""
    if gates:
        yield "gates, if every question that can be changed so were (changed/all):"
    together: dict[tuple[str, str, bool], list[str]] = {}
    for gate in gates:
        kinds = together.setdefault((gate["gate"], gate["verdict"], gate["good"]), [])
        kinds.append(f"{gate['kind']} {gate['n_changed']}/{gate['n_total']}")
    for (name, verdict, good), kinds in sorted(together.items()):
        mark = "  " if (verdict == "FAIL") != good else "! "
        yield f"  {mark}{verdict:<10} {name}   {'still good: ' if good else ''}{', '.join(kinds)}"


def text(summary: Mapping[str, Any], columns: int = 200) -> list[str]:
    """Lines for people."""
    lines: list[str] = []
    for each in summary["metrics"]:
        lines.append(f"{each['metric']}: variants of {each['originals']} answers that passed")
        rows = [["variant", "right if it", "share (95 %)", "right", "unscored"]]
        for row in each["kinds"]:
            share = f"{row['share']:.2f} ({row['low']:.2f} to {row['high']:.2f})" if row["n"] else "-"
            verdict = "still passes" if row["good"] else "is caught"
            rows.append(
                [row["kind"], verdict, share, f"{row['right']}/{row['n']}", str(row["n_unscored"] or "-")]
            )
        left = ("variant", "right if it", "share (95 %)")
        table = aligned(
            rows, left=left, drop=("unscored", "right if it"), shrink="variant", columns=columns - 2
        )
        lines += [f"  {line}" for line in table]
        shares = []
        if each["caught"] is not None:
            shares.append(f"bad variants caught: {each['caught']:.2f}")
        if each["wrongly_failed"] is not None:
            shares.append(f"good ones wrongly failed: {each['wrongly_failed']:.2f}")
        lines += [f"  {', '.join(shares)}"] if shares else []
        survivors = each["survivors"]
        lines += ["  judged wrongly:"] if survivors else []
        seen = Counter[str]()
        for one in survivors:
            seen[one["kind"]] += 1
            if seen[one["kind"]] > _SURVIVORS:
                continue
            what = "failed, but is as good as before" if one["good"] else "passed, but is wrong"
            lines.append(
                f"    {one['kind']:<16} {what}   {one_line(one['id'], 60)}   {one_line(one['change'], 100)}   "
                f"{one_line(one['answer'] or '', 160)}"
            )
        if rest := sum(max(0, count - _SURVIVORS) for count in seen.values()):
            lines.append(f"    ... and {rest} more (JSON has all)")
    lines += list(_gate_lines(summary["gates"]))
    return lines
