"""The scores of a run, question by question, from the ``results`` of a report (or as they come in)."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_ragbench.gates.rules import TIMES, Rule
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.tests import QuestionRecord, SampleRecord, ScoreRecord, SetupRecord, TestRecord
from pytest_ragbench.model.thresholds import Scale
from pytest_ragbench.statistics.clusters import by_cluster
from pytest_ragbench.text import detect_language

Key = tuple[str, str]
"""Id of a question and fingerprint of its text: ids are unique within a file only."""

_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{32}")


def fingerprint(text: str) -> str:
    """What stands for a question's text where the text itself is not kept; of a fingerprint, itself."""
    if not text or _FINGERPRINT.fullmatch(text):
        return text
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}"


NOT_REACHED = "not reached"
"""The test ended before it came to this metric."""
DESELECTED = "deselected"
NOT_RUN: Mapping[str, str] = {
    "skipped": "skipped",
    "xfailed": "xfailed",
    "deselected": DESELECTED,
    "crashed": "crashed",
    "not_run": "never ran",
    "error": "ended by an error of the test's own",
}
"""Outcome of a test -> why it scored nothing, where neither judge, service nor embedder is to blame."""
OTHERS = "*"
"""Among the metrics of a test: there may be others, which its source does not tell."""
NOT_MEASURED = "not measured"
"""Its tests have other metrics."""


@dataclass(slots=True)
class Asked:
    """What the gates need to know of a question."""

    id: str
    text: str
    lang: str | None = None
    tags: tuple[str, ...] = ()
    file: str | None = None
    session: str | None = None
    must_pass: bool = False
    cluster: str | None = None
    relevant: tuple[str, ...] = ()
    times: Mapping[str, float] = field(default_factory=dict)
    """Seconds by the names of :data:`TIMES`."""
    fresh: bool = False
    """They were measured in this run."""

    @property
    def language(self) -> str:
        """As given, else told from the text."""
        if self.lang is None:
            self.lang = detect_language(self.text)
        return self.lang


@dataclass(frozen=True, slots=True)
class Entry:
    """One score of one question, or why there is none."""

    key: Key
    metric: str
    tier: str
    test: str
    value: float | None = None
    passed: bool | None = None
    error: str | None = None
    undefined: bool = False
    """Nothing failed: the metric has no value for such an answer."""
    setup: SetupRecord | None = None
    judge: str | None = None
    embedder: str | None = None
    votes: tuple[int, int] | None = None
    """Of how many votes how many passed, where there were several."""


@dataclass(frozen=True, slots=True)
class _Asking:
    """How a test function asks for a metric."""

    tier: str
    alone: bool
    """One score for a whole test, whatever the number of its questions: of a dialogue, say."""


@dataclass(frozen=True, slots=True)
class _Ended:
    """A test that did not run to its end."""

    test: str
    keys: tuple[Key, ...]
    why: str
    metrics: tuple[str, ...]
    """What its source asks for; empty where that is not known."""
    scored: frozenset[str]


@dataclass
class Sample:
    """What a rule is about: one value a question (the mean, where it was scored more than once)."""

    values: dict[Key, float] = field(default_factory=dict)
    passed: dict[Key, bool] = field(default_factory=dict)
    unscored: dict[Key, str] = field(default_factory=dict)
    """Question -> why it has no score."""
    undefined: set[Key] = field(default_factory=set)
    """Of those without a score: where the metric is undefined (no claims in a refusal), and nothing failed."""
    setups: dict[Key, list[SetupRecord]] = field(default_factory=lambda: defaultdict(list))
    """Question -> what its scores were to be measured with, where the report says so."""
    votes: dict[Key, tuple[int, int]] = field(default_factory=dict)
    """Question -> (passes, votes), where it was judged several times."""
    judges: set[str] = field(default_factory=set)
    """Who answered: of a panel or a cascade those that did."""
    embedders: set[str] = field(default_factory=set)

    def note_makers(self, entry: Entry) -> None:
        """Take in what a score was made with."""
        if entry.judge:
            self.judges.add(entry.judge)
        if entry.embedder:
            self.embedders.add(entry.embedder)
        if entry.setup is not None and entry.setup not in self.setups[entry.key]:
            self.setups[entry.key].append(entry.setup)

    @property
    def n_scored(self) -> int:
        return len(self.values)

    @property
    def n_total(self) -> int:
        return len(self.values) + len(self.unscored)


class Observations:
    """Takes the results of a run one by one."""

    def __init__(self, results: Iterable[TestRecord] = ()) -> None:
        self.asked: dict[Key, Asked] = {}
        self.entries: list[Entry] = []
        self.costs: list[float] = []
        self.unpriced: set[str] = set()
        """Judges whose calls have no known price."""
        self.scales: dict[str, Scale | None] = {}
        """Metric -> its scale, as the results say; None where they contradict each other."""
        self.unnamed: set[Key] = set()
        """Samples without an id."""
        self._ended: list[_Ended] = []
        self._known: dict[str, dict[str, _Asking]] = defaultdict(dict)
        """Test function -> what its tests ask for, as far as any of them came to it."""
        for result in results:
            self.add(result)

    def add(self, result: TestRecord) -> None:
        """Take in one result of a report, or one of the tests that are missing from it."""
        test = result.test.partition("[")[0]
        # One for each result: the counter must start anew where a rerun comes to the same samples.
        unnamed = _Unnamed(result.test)
        keys = [self._ask(sample, unnamed) for sample in result.samples]
        others = [self._ask(question, unnamed) for question in result.questions]
        labels = {key[0]: key for key in (*keys, *others)}
        own: Key = (keys or others or [(result.question_id or result.test, "")])[0]
        found: list[Entry] = []
        for score in result.scores:
            if score.setup is not None:
                scale = score.setup.scale(score.metric)
                # Options may turn a metric; two directions in one run leave no mean to speak of.
                known = self.scales.setdefault(score.metric, scale)
                self.scales[score.metric] = scale if known == scale else None
            place = score.sample
            key = keys[place] if place is not None and place < len(keys) else own
            entries = list(self._entries(score, key, labels, test))
            alone = score.sample is None and [entry.key for entry in entries] == [own]
            for entry in entries:
                self._known[test][entry.metric] = _Asking(entry.tier, alone)
            found += entries
        self.entries += found
        self._add_cost(result.scores)
        # Also a test that passed its own assertions may have ended by an outage of ours.
        if result.kind or result.outcome not in ("passed", "xpassed"):
            why = result.kind if result.kind not in (None, "quality") else None
            self._ended.append(
                _Ended(
                    test,
                    tuple(dict.fromkeys((*keys, *others))) or (own,),
                    why or NOT_RUN.get(result.outcome, NOT_REACHED),
                    result.metrics,
                    frozenset(entry.metric for entry in found),
                )
            )

    def all_entries(self) -> Iterator[Entry]:
        """Also for what a test that did not run to its end did not come to: the metrics that its source names,
        or else those that others of it have.
        """
        yield from self.entries
        for ended in self._ended:
            others = self._known.get(ended.test, {})
            asked = {name: others.get(name) for name in ended.metrics if name != OTHERS}
            # Where the source is silent, the other parametrizations of the function tell what it asks.
            if not asked or OTHERS in ended.metrics:
                asked = {**asked, **others} or {"": None}
            for metric, asking in asked.items():
                if metric in ended.scored:
                    continue
                tier = asking.tier if asking is not None else _tier(metric)
                for key in ended.keys[:1] if asking is not None and asking.alone else ended.keys:
                    yield Entry(key, metric, tier, ended.test, error=ended.why)

    @property
    def n_deselected(self) -> int:
        """Tests that were chosen away."""
        return sum(ended.why == DESELECTED for ended in self._ended)

    @property
    def metrics(self) -> set[str]:
        return {entry.metric for entry in self.entries}

    def why_without(self, key: Key) -> str | None:
        """Why a question that was asked may have no score: how its test ended; None where it was not asked."""
        # By id or text: a request that failed knows only the one or the other.
        for ended in self._ended:
            if any(each[0] == key[0] or (key[1] and each[1] == key[1]) for each in ended.keys):
                return ended.why
        return NOT_MEASURED if key in self.asked else None

    def sample(self, rule: Rule) -> Sample:
        """What ``rule`` is about."""
        if rule.quantity in TIMES:
            return self._times(rule)
        named = None if rule.quantity in ("pass_rate", "must_pass", "error_rate") else rule.quantity
        chosen = [
            entry
            for entry in self.all_entries()
            if (named is None or entry.metric == named) and self._in_subset(rule, entry.key, entry)
        ]
        if rule.quantity == "must_pass":
            chosen = [entry for entry in chosen if (asked := self.asked.get(entry.key)) and asked.must_pass]
        if rule.quantity in ("pass_rate", "must_pass") or rule.statistic == "pass_rate":
            return _passes(chosen)
        if rule.quantity == "error_rate":
            return _errors(chosen)
        return _values(chosen)

    def with_values(self, values: Mapping[tuple[str, Key], tuple[float, bool]]) -> Observations:
        """A copy in which these questions have other scores: (metric, question) -> (score, whether it passed)."""
        found = Observations()
        # A sample without an id may be told apart by its test here, and is not in the variants made of it.
        by_text = {(metric, key[1]): value for (metric, key), value in values.items() if key[1]}
        found.asked, found._ended, found._known = self.asked, self._ended, self._known
        found.scales = self.scales
        found.costs, found.unpriced = self.costs, self.unpriced
        found.entries = [
            replace(entry, value=changed[0], passed=changed[1], error=None, undefined=False, votes=None)
            if (changed := values.get((entry.metric, entry.key), by_text.get((entry.metric, entry.key[1]))))
            is not None
            else entry
            for entry in self.entries
        ]
        return found

    def clusters(self, keys: Iterable[Key]) -> list[str] | None:
        """One for each question: its cluster column, or the relevant documents that it shares; None where
        each question stands for itself.
        """
        ties: dict[str, list[Any]] = {}
        for place, key in enumerate(keys):
            asked = self.asked.get(key)
            # The column is the user's own word, so it wins over shared documents.
            if asked is not None and asked.cluster is not None:
                ties[str(place)] = [("cluster", asked.cluster)]
            else:
                ties[str(place)] = [("document", each) for each in asked.relevant] if asked else []
        names = by_cluster(ties)
        return list(names.values()) if len(set(names.values())) < len(names) else None

    # Inside

    def _ask(self, question: SampleRecord | QuestionRecord, unnamed: _Unnamed) -> Key:
        text = question.question
        key = (question.id if question.id is not None else unnamed.label(text), fingerprint(text))
        if question.id is None:
            self.unnamed.add(key)
        known = self.asked.get(key)
        if known is None:
            grades = question.relevant_ids or {}
            known = self.asked[key] = Asked(
                key[0],
                text,
                lang=question.lang,
                tags=question.tags,
                file=question.file,
                session=question.session,
                must_pass=question.must_pass,
                cluster=question.cluster,
                relevant=tuple(name for name, grade in grades.items() if grade > 0),
            )
        # A latency from the store is that of an earlier run, so one measured now replaces it.
        fresh = not question.cached
        if question.latency is not None and (not known.times or (fresh and not known.fresh)):
            times = {name: getattr(question, name) for name in TIMES}
            known.times = {name: seconds for name, seconds in times.items() if seconds is not None}
            known.fresh = fresh
        return key

    def _entries(self, score: ScoreRecord, key: Key, labels: Mapping[str, Key], test: str) -> Iterator[Entry]:
        metric, tier, details, whole_set = score.metric, score.tier, score.details, score.sample is None
        common: dict[str, Any] = {"judge": score.judge, "embedder": score.embedder, "setup": score.setup}
        # Question by question: the mean of a set would count as a single score.
        if whole_set and isinstance(details.get("values"), Mapping):
            for label, value in details["values"].items():
                yield Entry(labels.get(label, (label, "")), metric, tier, test, _finite(value), **common)
            unscored, undefined = details.get("unscored"), details.get("undefined") or ()
            for label, code in unscored.items() if isinstance(unscored, Mapping) else ():
                key = labels.get(label, (label, ""))
                yield Entry(key, metric, tier, test, error=str(code), undefined=label in undefined, **common)
            return
        value, error = _finite(score.value), None
        if value is None:
            error = (score.error.code or score.error.type) if score.error is not None else "no score"
            common["undefined"] = score.error is not None and score.error.type == "UndefinedScore"
        # No value for a set means none for any of its questions.
        if whole_set and value is None and labels:
            for each in labels.values():
                yield Entry(each, metric, tier, test, error=error, **common)
            return
        votes, passed = details.get("votes"), details.get("votes_passed")
        cast = (passed, len(votes)) if isinstance(votes, Sequence) and isinstance(passed, int) else None
        yield Entry(key, metric, tier, test, value, score.passed, error, **common, votes=cast)

    def _add_cost(self, scores: Sequence[ScoreRecord]) -> None:
        paid = set()
        for score in scores:
            # Grades that came from one call each carry all of what it took.
            bill = (score.sample, score.judge, score.duration, score.usage)
            if not score.usage.calls or bill in paid:
                continue
            paid.add(bill)
            if score.usage.cost is None:
                self.unpriced.add(str(score.judge or score.embedder))
            else:
                self.costs.append(score.usage.cost)

    def _times(self, rule: Rule) -> Sample:
        found = Sample()
        for key, asked in self.asked.items():
            if rule.quantity in asked.times and self._in_subset(rule, key, None):
                found.values[key] = asked.times[rule.quantity]
        # Without any time nothing was measured, which is said as that and not as missing questions.
        for ended in self._ended if found.values else ():
            for key in ended.keys:
                if key not in found.values and self._in_subset(rule, key, None):
                    found.unscored[key] = ended.why
        return found

    def _in_subset(self, rule: Rule, key: Key, entry: Entry | None) -> bool:
        return all(self._has(name, values, key, entry) for name, values in rule.subset)

    def _has(self, name: str, values: tuple[str, ...], key: Key, entry: Entry | None) -> bool:
        asked = self.asked.get(key) or Asked(*key)
        match name:
            case "tag":
                return bool(set(values) & set(asked.tags))
            case "lang":
                return asked.language in values
            case "file":
                # Reports come from other platforms, too.
                path = (asked.file or "").replace("\\", "/")
                return any(path == value or path.endswith(f"/{value}") for value in values)
            case "session":
                return asked.session in values
            case "tier":
                return entry is not None and entry.tier in values
            case "metric":
                return entry is not None and entry.metric in values
            case _:
                return entry is not None and any(value in entry.test for value in values)


def by_system(results: Iterable[TestRecord]) -> dict[str | None, Observations]:
    """The observations of each system that results name, apart from those of tests that ask none by name (None)."""
    found: dict[str | None, Observations] = {}
    for result in results:
        found.setdefault(result.system, Observations()).add(result)
    return found


def _tier(metric: str) -> str:
    """Of a metric that has no score in the run; empty where it isn't registered."""
    from pytest_ragbench.metrics.registry import find

    try:
        return find(metric).tier if metric else ""
    except UsageError:
        return ""


class _Unnamed:
    """Labels of the samples of one result that have no id: two of one text are two samples, unless they are of the
    same place, which several tests or reruns come to.
    """

    def __init__(self, test: str) -> None:
        _, bracket, given = test.partition("[")
        self._place = f" {bracket}{given}" if bracket else ""
        self._seen: Counter[str] = Counter()

    def label(self, text: str) -> str:
        self._seen[text] += 1
        again = f" #{self._seen[text]}" if self._seen[text] > 1 else ""
        return f"{text[:40]!r}{self._place}{again}"


def _finite(value: Any) -> float | None:
    # JSON of other tools may hold true, NaN or a string where a score belongs.
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _values(entries: Sequence[Entry]) -> Sample:
    """The mean of what a question scored; without a score is a question that has none at all."""
    found, sums = Sample(), defaultdict[Key, list[float]](list)
    failed: set[Key] = set()
    for entry in entries:
        if entry.value is not None:
            sums[entry.key].append(entry.value)
            if entry.passed is not None:
                found.passed[entry.key] = found.passed.get(entry.key, True) and entry.passed
        else:
            found.unscored.setdefault(entry.key, entry.error or "no score")
            (found.undefined.add if entry.undefined else failed.add)(entry.key)
        if entry.votes is not None:
            passed, cast = found.votes.get(entry.key, (0, 0))
            found.votes[entry.key] = passed + entry.votes[0], cast + entry.votes[1]
        found.note_makers(entry)
    # One failed call is enough to make it missing: asked again, it may have a score.
    found.undefined -= failed
    for key, values in sums.items():
        found.values[key] = sum(values) / len(values)
        found.unscored.pop(key, None)
        found.undefined.discard(key)
    return found


def _passes(entries: Sequence[Entry]) -> Sample:
    """1 for a question of which all that was asserted holds, 0 where anything failed; of a metric that a test asserted
    several times (reruns, repeats), each time is a vote, and their share counts.
    """
    found = Sample()
    votes: dict[Key, dict[tuple[str, str], list[bool]]] = defaultdict(lambda: defaultdict(list))
    for entry in entries:
        found.note_makers(entry)
        if entry.passed is not None:
            votes[entry.key][entry.test, entry.metric].append(entry.passed)
        elif entry.value is None:
            found.unscored.setdefault(entry.key, entry.error or "no score")
    for key, asserted in votes.items():
        # All assertions have to hold, so the weakest one speaks for the question.
        share = min(sum(each) / len(each) for each in asserted.values())
        found.passed[key] = share == 1
        if share == 0:
            found.unscored.pop(key, None)  # what else is missing there can't mend it
        if key not in found.unscored:
            found.values[key] = share
    return found


def _errors(entries: Sequence[Entry]) -> Sample:
    """1 for a question that anything is missing of through a fault of judge, service or embedder."""
    found, not_run = Sample(), frozenset(NOT_RUN.values())
    for entry in entries:
        if entry.error in not_run:
            if entry.key not in found.values:
                found.unscored[entry.key] = entry.error or ""
            continue
        found.unscored.pop(entry.key, None)
        bad = entry.value is None and entry.error != NOT_REACHED
        found.values[entry.key] = max(found.values.get(entry.key, 0.0), float(bad))
    return found
