"""A run held against an earlier one, question by question."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_ragbench.gates.observations import Key, Observations, Sample
from pytest_ragbench.gates.rules import Rule
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import ComparisonRecord, MetricComparison, MovedRecord, RunReport
from pytest_ragbench.model.thresholds import Scale
from pytest_ragbench.statistics.paired import LEVEL, fisher, mcnemar, sign_flip

_SAME = 1e-9


@dataclass(frozen=True)
class Baseline:
    """The scores of a run, and what they were made with."""

    observed: Observations
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Task -> version of its prompt; empty where the report does not tell."""
    preflight: str | None = None
    """What the judge said of the anchors, as a fingerprint; None where there were none."""
    name: str = "this run"


def baseline_of(report: RunReport, *, name: str) -> Baseline:
    """The baseline in a report that has been read."""
    observed = Observations((*report.results, *report.missing))
    preflight = report.preflight.fingerprint if report.preflight else None
    return Baseline(observed, report.run.prompts, preflight, name)


@dataclass(frozen=True)
class Comparison:
    """One metric in two runs. Differences are new - old."""

    metric: str
    higher: bool
    pairs: Mapping[Key, tuple[float, float]]
    """Question -> (old, new)."""
    p: float
    method: str
    differences: tuple[str, ...]
    """What makes the runs incomparable."""
    notes: tuple[str, ...]
    broken: tuple[str, ...]
    """Questions that met the threshold of their test, and don't now."""
    mended: tuple[str, ...]

    @property
    def mean(self) -> float:
        """The mean difference."""
        return math.fsum(new - old for old, new in self.pairs.values()) / max(len(self.pairs), 1)

    @property
    def drop(self) -> float:
        """By how much the new run is worse; negative where it is better."""
        return -self.mean if self.higher else self.mean

    @property
    def n_changed(self) -> int:
        """Questions whose score is not what it was."""
        return sum(abs(new - old) > _SAME for old, new in self.pairs.values())

    def moved(self, most: int = 5) -> list[tuple[str, float, float]]:
        """(question, old, new) of those that moved most, the worse ones first."""
        sign = 1 if self.higher else -1
        moved = [(key[0], old, new) for key, (old, new) in self.pairs.items() if abs(new - old) > _SAME]
        largest = sorted(moved, key=lambda entry: -abs(entry[2] - entry[1]))[:most]
        return sorted(largest, key=lambda entry: sign * (entry[2] - entry[1]))

    @property
    def said(self) -> str:
        """One sentence's beginning."""
        old = math.fsum(old for old, _ in self.pairs.values()) / max(len(self.pairs), 1)
        new = old + self.mean
        counted = f"over {len(self.pairs)} questions, {self.n_changed} of them changed"
        if self.n_changed == 0:
            return f"the same as the baseline, {new:.3f} {counted}"
        way = "better" if self.drop < 0 else "worse"
        return f"{new:.3f} after {old:.3f}, {abs(self.mean):.3f} {way}, {counted}"

    @property
    def differences_said(self) -> str:
        return "; ".join(self.differences)

    def lines(self) -> Iterator[str]:
        """What a person wants to see: the difference, what moved most, what broke and what was mended."""
        yield f"{self.metric}: {self.said}" + (f"; p {self.p:.3f} ({self.method})" if self.n_changed else "")
        for text in (*self.differences, *self.notes):
            yield f"  {text}"
        for name, old, new in self.moved():
            yield f"  {'better' if (new > old) == self.higher else 'worse '} {old:.2f} -> {new:.2f}  {name}"
        for word, names in (("newly broken", self.broken), ("newly mended", self.mended)):
            if names:
                yield f"  {word}: {', '.join(names[:10])}" + (" ..." if len(names) > 10 else "")

    def record(self) -> ComparisonRecord:
        """As a report has it."""
        return ComparisonRecord(
            n_pairs=len(self.pairs),
            n_changed=self.n_changed,
            mean_difference=self.mean if self.pairs else None,
            p=float(self.p) if self.pairs else None,
            method=self.method,
            incomparable=self.differences,
            notes=self.notes,
            moved=tuple(MovedRecord(question=name, old=old, new=new) for name, old, new in self.moved(10)),
            broken=self.broken,
            mended=self.mended,
        )

    def metric_record(self) -> MetricComparison:
        """The same, with the name of the metric."""
        told = self.record()
        return MetricComparison(metric=self.metric, **{name: getattr(told, name) for name in told.__slots__})


def compare(rule: Rule, new: Baseline, old: Baseline) -> Comparison:
    """The metric (and subset) of a rule in two runs, paired by question id; a question whose id changed is
    found by its text.
    """
    ours, theirs = new.observed.sample(rule), old.observed.sample(rule)
    pairing = _Pairing(set(ours.values) | set(ours.unscored), set(theirs.values) | set(theirs.unscored))
    pairs = {
        mine: (theirs.values[its], ours.values[mine])
        for mine, its in pairing.same.items()
        if its in theirs.values and mine in ours.values
    }
    signed = [(now - before) * (1 if rule.higher else -1) for before, now in pairs.values()]
    binary = {rule.scale.low, rule.scale.high}
    if all(value in binary for pair in pairs.values() for value in pair):
        down, up = sum(each < -_SAME for each in signed), sum(each > _SAME for each in signed)
        p, method = mcnemar(down, up), "McNemar"
    else:
        p, method = sign_flip(signed), "sign flips"
    judged = [(ours.passed.get(mine), theirs.passed.get(its), mine[0]) for mine, its in pairing.same.items()]
    return Comparison(
        metric=rule.name,
        higher=rule.higher,
        pairs=pairs,
        p=p,
        method=method,
        differences=(*pairing.differences(), *_made_otherwise(rule, new, old, ours, theirs)),
        notes=(*pairing.notes(), *_votes_lost(pairing.same, ours, theirs)),
        broken=tuple(name for now, before, name in judged if now is False and before is True),
        mended=tuple(name for now, before, name in judged if now is True and before is False),
    )


def compare_all(new: Baseline, old: Baseline) -> list[Comparison]:
    """Every metric that both runs have, by name."""
    metrics = {entry.metric for entry in new.observed.entries} & {
        entry.metric for entry in old.observed.entries
    }
    return [compare(Rule(name, name, "baseline", _scale(name)), new, old) for name in sorted(metrics)]


def _scale(metric: str) -> Scale:
    """The metric's scale; for one that is not registered here, that of a share."""
    from pytest_ragbench.metrics.registry import find

    try:
        return find(metric).scale
    except UsageError:
        return Scale(metric)


class _Pairing:
    """Which question of one run is which of the other."""

    def __init__(self, ours: set[Key], theirs: set[Key]) -> None:
        self.same: dict[Key, Key] = {key: key for key in sorted(ours & theirs)}
        rest, others = sorted(ours - theirs), sorted(theirs - ours)
        # Scores of whole sets know no text: the id alone has to do.
        self.renamed = self._match(rest, others, lambda key: key[1])
        self.same |= self.renamed
        bare = self._match(rest, others, lambda key: key[0], either_bare=True)
        self.same |= bare
        self.reworded = self._match(rest, others, lambda key: key[0])
        self.added, self.dropped = rest, others

    @staticmethod
    def _match(ours: list[Key], theirs: list[Key], by: Any, *, either_bare: bool = False) -> dict[Key, Key]:
        """Pairs with the same, non-empty ``by``, taken out of both lists."""
        found: dict[Key, Key] = {}
        for key in list(ours):
            for other in theirs:
                if by(key) and by(key) == by(other) and (not either_bare or not (key[1] and other[1])):
                    found[key] = other
                    ours.remove(key)
                    theirs.remove(other)
                    break
        return found

    def differences(self) -> list[str]:
        said = [
            (self.added, "added"),
            (self.dropped, "dropped"),
            (list(self.reworded), "reworded"),
        ]
        return [_named(keys, word) for keys, word in said if keys]

    def notes(self) -> list[str]:
        return [_named(list(self.renamed), "renamed")] if self.renamed else []


def _votes_lost(same: Mapping[Key, Key], ours: Sample, theirs: Sample) -> Iterator[str]:
    """What the votes say of each question that fewer of them pass than before."""
    for mine, its in same.items():
        if mine not in ours.votes or its not in theirs.votes:
            continue
        (now, of), (before, out_of) = ours.votes[mine], theirs.votes[its]
        if now * out_of >= before * of:
            continue
        p = fisher((before, out_of), (now, of))
        why = "and chance is no excuse" if p < LEVEL - _SAME else "which chance may explain"
        yield f"{mine[0]}: {before} of {out_of} votes passed, {now} of {of} do now, {why}; p {p:.3f} (Fisher)"


def _named(keys: list[Key], word: str) -> str:
    names = ", ".join(key[0] for key in keys[:3]) + (" ..." if len(keys) > 3 else "")
    return f"{len(keys)} question{'s' * (len(keys) != 1)} {word} ({names})"


def _made_otherwise(rule: Rule, new: Baseline, old: Baseline, ours: Sample, theirs: Sample) -> list[str]:
    """What the scores were made with, as far as it differs."""
    found = []
    for what, now, before in (
        ("judge", ours.judges, theirs.judges),
        ("embedder", ours.embedders, theirs.embedders),
    ):
        if now != before and (now or before) and ours.values and theirs.values:
            found.append(f"the {what} was {_listed(before)} and is {_listed(now)}")
    if new.prompts and old.prompts and ours.judges:
        tasks = _tasks(rule) or set(new.prompts) | set(old.prompts)
        changed = sorted(task for task in tasks if new.prompts.get(task) != old.prompts.get(task))
        if changed:
            found.append(f"the judge's prompt changed ({', '.join(changed)})")
    if new.preflight and old.preflight and new.preflight != old.preflight and ours.judges:
        found.append("the judge's verdicts on the anchors changed")
    return found


def _listed(names: set[str]) -> str:
    return " and ".join(sorted(names)) or "none"


def _tasks(rule: Rule) -> set[str]:
    """The judge tasks that a metric asks; empty where it isn't registered."""
    from pytest_ragbench.metrics.registry import find

    name = "search_rag" if rule.quantity.startswith("search_rag_") else rule.quantity
    try:
        return {part for task in find(name).tasks for part in task.split("|")}
    except UsageError:
        return set()
