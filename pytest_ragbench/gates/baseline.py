"""A run held against an earlier one, question by question."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pytest_ragbench.gates.observations import NOT_MEASURED, NOT_REACHED, Key, Observations, Sample, by_system
from pytest_ragbench.gates.rules import Rule, ScaleOf, registered_scale
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import ComparisonRecord, MetricComparison, MovedRecord, RunReport
from pytest_ragbench.model.tests import SetupRecord
from pytest_ragbench.model.thresholds import TOLERANCE, Scale
from pytest_ragbench.statistics.paired import FEWEST, LEVEL, fisher, mcnemar, sign_flip

MAX_UNPAIRED = 0.2
"""Share of the questions that may be in one of the two runs only."""


@dataclass(frozen=True)
class Baseline:
    """The scores of a run, and what they were made with."""

    observed: Observations
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Task -> version of its prompt; empty where the report does not tell."""
    preflight: str | None = None
    """What the judge said of the anchors, as a fingerprint; None where there were none."""
    name: str = "this run"
    systems: Mapping[str | None, Observations] = field(default_factory=dict)
    """In a run of several systems, what each of them came to; ``observed`` is then of all of them."""

    def of(self, system: str | None) -> Baseline | None:
        """What a system is held against: itself. None where it was not part of that run."""
        if not self.systems:
            return self if system is None else None
        observed = self.systems.get(system)
        return None if observed is None else replace(self, observed=observed, systems={})

    def lacks(self, system: str | None) -> str:
        """Why there is nothing to hold a system against."""
        has = ", ".join(name for name in self.systems if name) or "no system by name"
        return f"{self.name} is of {has}, and not of {system or 'a run of one system'}"


def baseline_of(report: RunReport, *, name: str) -> Baseline:
    """The baseline in a report that has been read."""
    results = (*report.results, *report.missing)
    systems = by_system(results)
    preflight = report.preflight.fingerprint if report.preflight else None
    return Baseline(
        Observations(results), report.run.prompts, preflight, name, systems if set(systems) - {None} else {}
    )


def scales_of(*runs: Observations) -> ScaleOf:
    """How metrics range and which way is better: as the results say, else as they are registered in this process.

    Nothing is guessed: the function raises UsageError for a metric of which neither is known.
    """

    def scale_of(metric: str) -> Scale:
        # The new run first: where the two differ, the comparison says so.
        for run in runs:
            if scale := run.scales.get(metric):
                return scale
        try:
            return registered_scale(metric)
        except UsageError as error:
            # A misspelt name gets the registry's "did you mean" instead.
            if not any(metric in run.metrics for run in runs):
                raise
            raise UsageError(
                f"which way {metric} is better isn't in the report, which an earlier version wrote, and the metric "
                f"isn't registered here; write the report anew ({error})"
            ) from None

    return scale_of


@dataclass(frozen=True)
class Comparison:
    """One metric in two runs. Differences are new - old."""

    metric: str
    higher: bool | None
    """Whether more is better; None where nobody knows."""
    pairs: Mapping[Key, tuple[float, float]]
    """Question -> (old, new)."""
    equal: frozenset[Key] = frozenset()
    """Questions for which the metric is undefined in both runs, such as refusals without claims."""
    p: float | None = None
    """One-sided, that it is so much worse by chance."""
    p_better: float | None = None
    method: str = ""
    differences: tuple[str, ...] = ()
    """What makes the runs incomparable."""
    notes: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    """Questions that met the threshold of their test, and don't now."""
    mended: tuple[str, ...] = ()
    system: str | None = None
    """The one of several systems, in both runs."""

    @property
    def mean(self) -> float:
        """The mean difference."""
        return math.fsum(new - old for old, new in self.pairs.values()) / max(len(self.pairs), 1)

    @property
    def drop(self) -> float:
        """By how much the new run is worse; negative where it is better."""
        return self.mean if self.higher is False else -self.mean

    @property
    def n_changed(self) -> int:
        """Questions whose score is not what it was."""
        return sum(abs(new - old) > TOLERANCE for old, new in self.pairs.values())

    def moved(self, most: int = 5) -> list[tuple[str, float, float]]:
        """(question, old, new) of those that moved most, the worse ones first."""
        sign = -1 if self.higher is False else 1
        moved = [(key[0], old, new) for key, (old, new) in self.pairs.items() if abs(new - old) > TOLERANCE]
        # The largest moves either way, so that a few big gains can't hide behind many small losses.
        largest = sorted(moved, key=lambda entry: -abs(entry[2] - entry[1]))[:most]
        return sorted(largest, key=lambda entry: sign * (entry[2] - entry[1]))

    @property
    def said(self) -> str:
        """One sentence's beginning."""
        old, new = (
            math.fsum(pair[place] for pair in self.pairs.values()) / max(len(self.pairs), 1)
            for place in (0, 1)
        )
        n = len(self.pairs)
        counted = f"over {n} question{'s' * (n != 1)}, {self.n_changed} of them changed"
        counted += f", {len(self.equal)} more without a value in both" if self.equal else ""
        if self.n_changed == 0:
            return f"the same as the baseline, {new:.3f} {counted}"
        return f"{new:.3f} after {old:.3f}, {abs(self.mean):.3f} {self._way(self.mean)}, {counted}"

    def _way(self, difference: float) -> str:
        if self.higher is None:
            return "higher" if difference > 0 else "lower"
        return "better" if (difference > 0) == self.higher else "worse"

    @property
    def chance(self) -> str:
        """What chance has to do with the difference; empty where there is none."""
        # People ask about the change they see, whichever way it went.
        p = self.p_better if self.drop < 0 else self.p
        if not self.n_changed or p is None:
            return ""
        return "too few questions to tell" if self.n_changed < FEWEST else f"{p_said(p)} ({self.method})"

    @property
    def differences_said(self) -> str:
        return "; ".join(self.differences)

    def lines(self) -> Iterator[str]:
        """What a person wants to see: the difference, what moved most, what broke and what was mended."""
        name = f"{self.system}: {self.metric}" if self.system else self.metric
        yield f"{name}: {self.said}" + (f"; {self.chance}" if self.chance else "")
        for text in (*self.differences, *self.notes):
            yield f"  {text}"
        for name, old, new in self.moved():
            yield f"  {self._way(new - old):<6} {old:.2f} -> {new:.2f}  {name}"
        for word, names in (("newly broken", self.broken), ("newly mended", self.mended)):
            if names:
                yield f"  {word}: {_listed(names, 10)}"

    def record(self) -> ComparisonRecord:
        """As a report has it."""
        return ComparisonRecord(
            n_pairs=len(self.pairs),
            n_changed=self.n_changed,
            mean_difference=self.mean if self.pairs else None,
            p=float(self.p) if self.pairs and self.p is not None else None,
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
        return MetricComparison(
            metric=self.metric,
            system=self.system,
            **{name: getattr(told, name) for name in told.__slots__},
        )


def compare_all(new: Baseline, old: Baseline, *, max_unpaired: float = MAX_UNPAIRED) -> list[Comparison]:
    """Every metric that both runs have, by name."""
    scale_of = scales_of(new.observed, old.observed)
    found = []
    for name in sorted(new.observed.metrics & old.observed.metrics):
        # One metric that nobody knows must not keep the others from being compared.
        try:
            rule, known = Rule(name, name, "baseline", scale_of(name)), True
        except UsageError:
            rule, known = Rule(name, name, "baseline", Scale(name)), False
        found.append(compare(rule, new, old, max_unpaired=max_unpaired, way_is_known=known))
    return found


def compare(
    rule: Rule,
    new: Baseline,
    old: Baseline,
    *,
    max_unpaired: float = MAX_UNPAIRED,
    way_is_known: bool = True,
    called: tuple[str, str] = ("in the baseline", "now"),
) -> Comparison:
    """The metric (and subset) of a rule in two runs, over the questions that both have.

    Questions are paired by id; one whose id changed is found by its text.

    Parameters
    ----------
    max_unpaired
        Share (0..1) of all questions that may be in one run only, or scored in one only.
    way_is_known
        False: which way is better is in neither report. Then nothing is called better or worse.
    called
        How messages speak of the old run, and of the new one.
    """
    ours, theirs = new.observed.sample(rule), old.observed.sample(rule)
    # Unscored questions take part: "failed" has to be told from "added".
    pairing = _Pairing(rule.quantity, ours, theirs, new.observed, old.observed, called)
    pairs = {
        mine: (theirs.values[its], ours.values[mine])
        for mine, its in pairing.same.items()
        if its in theirs.values and mine in ours.values
    }
    signed = [(now - before) * (1 if rule.higher else -1) for before, now in pairs.values()]
    p, p_better, method = _tested(signed, pairs, rule.scale) if way_is_known else (None, None, "")
    unknown = f"which way {rule.quantity} is better is in neither report: an earlier version wrote them"
    alone, alone_said = pairing.alone()
    # Of all questions that either run scored, so that adding and dropping count alike.
    share = len(alone) / max(len(alone) + len(pairs) + len(pairing.equal), 1)
    too_many = share > max_unpaired + TOLERANCE
    differences = (
        [f"{alone_said}; more than {max_unpaired:.0%} are scored in one run only"] if too_many else []
    )
    notes = [alone_said] if alone and not too_many else []
    # Thresholds of the tests, not of the rule: what a developer sees turn red.
    judged = [(ours.passed.get(mine), theirs.passed.get(its), mine[0]) for mine, its in pairing.same.items()]
    return Comparison(
        metric=rule.name,
        higher=rule.higher if way_is_known else None,
        pairs=pairs,
        equal=pairing.equal,
        p=p,
        p_better=p_better,
        method=method,
        differences=(
            *([] if way_is_known else [unknown]),
            *differences,
            *_made_otherwise(rule, new, old, ours, theirs, {mine: pairing.same[mine] for mine in pairs}),
        ),
        notes=(*notes, *pairing.notes(), *_votes_lost(pairing.same, ours, theirs)),
        broken=tuple(name for now, before, name in judged if now is False and before is True),
        mended=tuple(name for now, before, name in judged if now is True and before is False),
    )


def _tested(
    signed: Sequence[float], pairs: Mapping[Key, tuple[float, float]], scale: Scale
) -> tuple[float, float, str]:
    """P of so much worse, and of so much better, by chance; and by which test."""
    # Of two values the sign test is exact and needs no resampling.
    if all(value in (scale.low, scale.high) for pair in pairs.values() for value in pair):
        down, up = sum(each < -TOLERANCE for each in signed), sum(each > TOLERANCE for each in signed)
        return mcnemar(down, up), mcnemar(up, down), "McNemar"
    return sign_flip(signed), sign_flip([-each for each in signed]), "sign flips"


class _Pairing:
    """Which question of one run is which of the other, and what became of those that have no partner."""

    def __init__(
        self,
        metric: str,
        ours: Sample,
        theirs: Sample,
        new: Observations,
        old: Observations,
        called: tuple[str, str],
    ) -> None:
        mine, its = set(ours.values) | set(ours.unscored), set(theirs.values) | set(theirs.unscored)
        self.same: dict[Key, Key] = {key: key for key in sorted(mine & its)}
        rest, others = sorted(mine - its), sorted(its - mine)
        # After the exact matches, or a question could take the partner of another with the same text.
        self.renamed = self._match(rest, others, lambda key: key[1])
        # Scores of whole sets, and requests that failed, know no text: the id alone has to do.
        self.same |= self.renamed | self._match(rest, others, lambda key: key[0], either_bare=True)
        self.reworded = self._match(rest, others, lambda key: key[0])
        self.equal = frozenset(
            key for key, other in self.same.items() if key in ours.undefined and other in theirs.undefined
        )
        self._metric, self._unnamed = metric, new.unnamed | old.unnamed
        self._groups: dict[str, list[Key]] = {}
        # In both without a score: counted as missing from the new run, and named there.
        for key, other in self.same.items():
            if key in self.equal:
                continue
            if key in ours.unscored and other in theirs.values:
                self._group(f"without a score {called[1]} ({_why(ours.unscored[key])})", key)
            elif key in ours.values and other in theirs.unscored:
                self._group(f"without a score {called[0]} ({_why(theirs.unscored[other])})", key)
        for keys, run, where, gone in (
            (rest, old, called[0], "added"),
            (others, new, called[1], "dropped"),
        ):
            for key in keys:
                why = run.why_without(key)
                self._group(f"without a score {where} ({_why(why)})" if why else gone, key)
        for key in self.reworded:
            self._group("reworded", key)

    def _group(self, what: str, key: Key) -> None:
        self._groups.setdefault(what, []).append(key)

    @staticmethod
    def _match(
        ours: list[Key], theirs: list[Key], by: Callable[[Key], str], *, either_bare: bool = False
    ) -> dict[Key, Key]:
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

    def alone(self) -> tuple[list[Key], str]:
        """Questions that can't be compared, and in words what became of them."""
        keys = [key for group in self._groups.values() for key in group]
        said = ", ".join(_named(group, what) for what, group in self._groups.items())
        hint = on_no_claims(self._metric) if "no_claims" in said else ""
        return keys, said + hint

    def notes(self) -> list[str]:
        renamed = [key for key in self.renamed if key not in self._unnamed]
        return [_named(renamed, "renamed")] if renamed else []


def p_said(p: float) -> str:
    """``p 0.016``, ``p < 0.001``."""
    return f"p {p:.3f}" if p >= 0.0005 else "p < 0.001"


def _why(reason: str) -> str:
    known = {
        NOT_REACHED: "their test ended before",
        NOT_MEASURED: "their tests have other metrics",
        "judge": "the judge failed",
        "endpoint": "the service failed",
        "embedding": "the embedder failed",
        "budget": "the budget was used up",
    }
    return known.get(reason, reason)


def on_no_claims(metric: str) -> str:
    """What can be done about answers without claims; empty for a metric that has no option for it."""
    if metric != "faithfulness":
        return ""
    return "; an answer without claims has no score unless the test gives it one: on_no_claims=1"


def _votes_lost(same: Mapping[Key, Key], ours: Sample, theirs: Sample) -> Iterator[str]:
    """What the votes say of each question that fewer of them pass than before."""
    for mine, its in same.items():
        if mine not in ours.votes or its not in theirs.votes:
            continue
        (now, of), (before, out_of) = ours.votes[mine], theirs.votes[its]
        # Shares compared without dividing: either side may have cast another number of votes.
        if now * out_of >= before * of:
            continue
        p = fisher((before, out_of), (now, of))
        why = "and chance can't explain it" if p < LEVEL - TOLERANCE else "which chance may explain"
        yield f"{mine[0]}: {before} of {out_of} votes passed, {now} of {of} do now, {why}; p {p:.3f} (Fisher)"


def _named(keys: Sequence[Key], word: str) -> str:
    return f"{len(keys)} question{'s' * (len(keys) != 1)} {word} ({_listed([key[0] for key in keys], 3)})"


def _listed(names: Sequence[str], most: int) -> str:
    return ", ".join(names[:most]) + (" ..." if len(names) > most else "")


# --- what the scores were made with --------------------------------------------------------------


def _made_otherwise(
    rule: Rule, new: Baseline, old: Baseline, ours: Sample, theirs: Sample, pairs: Mapping[Key, Key]
) -> Iterator[str]:
    """In what the scores of pairs were to be measured differently: what was configured counts, not who answered."""
    # Per pair, so that a judge of a question that was dropped does not count.
    setups = [(ours.setups.get(mine, []), theirs.setups.get(its, [])) for mine, its in pairs.items()]
    if all(now and before for now, before in setups):
        yield from _set_up_otherwise(setups)
    elif pairs:  # a report from before setups were kept: who answered is all it tells
        for what, names, known in (
            ("judge", ours.judges, theirs.judges),
            ("embedder", ours.embedders, theirs.embedders),
        ):
            if names != known:
                yield f"the {what} was {_both(known)} and is {_both(names)}"
    # Prompts and anchors matter to judged scores only.
    if not ours.judges:
        return
    if new.prompts and old.prompts:
        tasks = _tasks(rule, setups) or set(new.prompts) | set(old.prompts)
        changed = sorted(task for task in tasks if new.prompts.get(task) != old.prompts.get(task))
        if changed:
            yield f"the judge's prompt changed ({', '.join(changed)})"
    if new.preflight and old.preflight and new.preflight != old.preflight:
        yield "the judge's verdicts on the anchors changed"


_Setups = Sequence[tuple[Sequence[SetupRecord], Sequence[SetupRecord]]]
"""Of each pair: those of the new score (several where it is a mean), and those of the old one."""


def _set_up_otherwise(setups: _Setups) -> Iterator[str]:
    # An answer that is blank takes no judge: where one side has none, there is nothing to compare.
    for what in ("judge", "embedder"):
        found: list[tuple[set[str], set[str]]] = []
        for now, before in setups:
            # A question may be scored by several tests, each with a judge of its own.
            names = {name for each in now if (name := getattr(each, what))}
            known = {name for each in before if (name := getattr(each, what))}
            if names and known and names != known:
                found.append((names, known))
        if found:
            names, known = (set.union(*(each[place] for each in found)) for place in (0, 1))
            yield f"the {what} was {_both(known)} and is {_both(names)}"
    changed: dict[str, tuple[set[str], set[str]]] = {}
    for now, before in setups:
        told, knew = [_options(each) for each in now], [_options(each) for each in before]
        for name in sorted({name for each in (*told, *knew) for name in each}):
            is_now, was = ({each.get(name, "unset") for each in side} for side in (told, knew))
            if is_now != was:
                both = changed.setdefault(name, (set(), set()))
                both[0].update(is_now)
                both[1].update(was)
    for name, (is_now, was) in changed.items():
        yield f"{name} was {_both(was)} and is {_both(is_now)}"


def _options(setup: SetupRecord) -> dict[str, str]:
    """What else the value depends on, by its name in a sentence."""
    ends = (
        "-inf" if setup.low is None else f"{setup.low:g}",
        "inf" if setup.high is None else f"{setup.high:g}",
    )
    return {
        "what is better": setup.direction,
        "the range": "..".join(ends),
        **{f"the option {name}": value for name, value in setup.options.items()},
    }


def _both(names: set[str]) -> str:
    return " and ".join(sorted(names)) or "none"


def _tasks(rule: Rule, setups: _Setups) -> set[str]:
    """What the metric asks of the judge: as the reports say, else as it is registered; empty where neither knows."""
    from pytest_ragbench.metrics.registry import find

    # A metric of the user's own is registered in their process, not in that of `ragbench compare`.
    if told := {task for pair in setups for side in pair for setup in side for task in setup.tasks}:
        return told
    name = "search_rag" if rule.quantity.startswith("search_rag_") else rule.quantity
    try:
        return {part for task in find(name).tasks for part in task.split("|")}
    except UsageError:
        return set()
