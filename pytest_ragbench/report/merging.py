"""Reports of the shards of one run, as the report that one run would have written."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_ragbench.gates.deciding import RunGates
from pytest_ragbench.gates.verdicts import undecided
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import RunReport
from pytest_ragbench.model.tests import TestRecord
from pytest_ragbench.report.few_values import FewValues
from pytest_ragbench.report.reading import read_report
from pytest_ragbench.report.summary import Summary
from pytest_ragbench.report.totals import Totals
from pytest_ragbench.report.usage import sums_of
from pytest_ragbench.version import VERSION

_OK, _FAILED, _INTERRUPTED, _INTERNAL, _USAGE, _NO_TESTS, _UNSCORED = 0, 1, 2, 3, 4, 5, 8
_OF_GATES = (_FAILED, 9, 10)


@dataclass(frozen=True)
class Shard:
    """One report, and the name to call it by."""

    name: str
    report: RunReport


def read_shards(paths: Sequence[Path]) -> list[Shard]:
    """The reports in the files.

    Raises
    ------
    UsageError
        A file isn't a report, or is given twice.
    """
    shards: list[Shard] = []
    runs: dict[str, str] = {}
    for path in paths:
        shard = Shard(str(path), read_report(path))
        run = shard.report.run.id
        if run in runs:
            raise UsageError(f"{shard.name} and {runs[run]} are reports of the same run")
        runs[run] = shard.name
        shards.append(shard)
    return shards


def merge(
    shards: Sequence[Shard],
    *,
    newest: bool = False,
    expected: int | None = None,
    mixed: bool = False,
    gates: RunGates | None = None,
) -> RunReport:
    """One report of all results, in the order of ``shards``.

    Parameters
    ----------
    newest
        Of a test that several shards ran, take the result of the one that began last.
    expected
        So many shards there should be; with fewer the report is not complete.
    mixed
        Warn of shards of different commits, judges or versions of ragbench instead of refusing them.
    gates
        What the results are held against.

    Raises
    ------
    UsageError
        Several shards ran the same test, and ``newest`` is not set; or what they tell is not of one thing,
        and ``mixed`` is not set.
    """
    # Before anything is merged: verdicts over two judges or commits would mean nothing.
    apart = list(_apart(shards))
    if apart and not mixed:
        raise UsageError("; ".join([*apart, "merge shards of one run, or take these together with --mixed"]))
    results = _results(shards, newest)
    missing = expected is not None and len(shards) < expected
    complete = not missing and all(shard.report.complete for shard in shards)
    # The run began when its first shard did, whatever the order of the files.
    first = min((shard.report.run for shard in shards), key=lambda run: run.started)
    warnings = [text for shard in shards for text in _own_warnings(shard)]
    warnings += [*apart, *_differences(shards)]
    if missing:
        warnings.append(f"{len(shards)} of {expected} shards are here; the results of the others are missing")
    merged = RunReport(
        run=replace(
            first,
            id=uuid.uuid4().hex,
            ragbench=VERSION,
            shards=tuple(shard.name for shard in shards),
        ),
        results=tuple(results),
        complete=complete,
        exit_code=_exit_code(shards, results, complete),
        finished=max((shard.report.finished or 0.0 for shard in shards), default=0.0),
        lost=tuple(sorted({name for shard in shards for name in shard.report.lost})),
        missing=tuple(_missing(shards, results)),
        not_chosen=tuple(_not_chosen(shards)),
        warnings=tuple(warnings),
    )
    fingerprints = {shard.report.preflight and shard.report.preflight.fingerprint for shard in shards}
    if len(fingerprints) == 1:  # the judge said the same in all
        merged.preflight = shards[0].report.preflight
    totals = Totals()
    for shard in shards:
        totals.add_usage(sums_of(shard.report.summary))
    consumers: list[Totals | RunGates] = [totals] if gates is None else [totals, gates]
    for consumer in consumers:
        for result in results:
            consumer.add(result)
        consumer.finish(merged)
    merged.summary = merged.summary or totals.summary.record()
    # Each shard may have warned of the same thing.
    merged.warnings = tuple(dict.fromkeys(merged.warnings))
    return merged


def summary_of(report: RunReport) -> Summary:
    """The sums of a report, to be shown."""
    summary = Summary()
    for result in report.results:
        summary.add(result)
    summary.add_usage(sums_of(report.summary))
    return summary


def _results(shards: Sequence[Shard], newest: bool) -> list[TestRecord]:
    """In the order of the shards; a test may have several in one: of its setup and of its teardown."""
    found: dict[str, tuple[str, list[TestRecord]]] = {}
    for shard in sorted(shards, key=lambda each: each.report.run.started) if newest else shards:
        for result in shard.report.results:
            test = result.test
            if test not in found or (newest and found[test][0] != shard.name):
                found[test] = (shard.name, [])
            if found[test][0] != shard.name:
                raise UsageError(
                    f"{test} was run in {found[test][0]} and in {shard.name}; split the tests so that each is run "
                    f"once, or take the later results with --newest"
                )
            found[test][1].append(result)
    return [result for _, results in found.values() for result in results]


def _missing(shards: Sequence[Shard], results: Sequence[TestRecord]) -> Iterable[TestRecord]:
    """What no shard ran: deselected in one, a test is run by another. Where it crashed, that is told."""
    run = {result.test for result in results}
    found: dict[str, TestRecord] = {}
    for test in (test for shard in shards for test in shard.report.missing):
        if test.test not in run and (test.test not in found or found[test.test].outcome == "deselected"):
            found[test.test] = test
    return found.values()


def _not_chosen(shards: Sequence[Shard]) -> Iterable[str]:
    """Test files that no shard was told to run."""
    tests = {test.test for shard in shards for test in (*shard.report.results, *shard.report.missing)}
    run = {test.partition("::")[0] for test in tests}
    return sorted({file for shard in shards for file in shard.report.not_chosen} - run)


def _own_warnings(shard: Shard) -> Iterator[str]:
    """What it warned of, but for what is told anew of all results: its gates, and scores of few values."""
    few = FewValues()
    for result in shard.report.results:
        few.add(result)
    # Consumers tell these again, over all results.
    told = {text for text, _ in few.lines()}
    told |= {undecided(gate.gate, gate.reason) for gate in shard.report.gates}
    return (text for text in shard.report.warnings if text not in told)


def _apart(shards: Sequence[Shard]) -> Iterable[str]:
    """Why the results are not those of one thing."""
    runs = [shard.report.run for shard in shards]
    prompts = [run.prompts for run in runs]
    tasks = [task for task in prompts[0] if len({each.get(task) for each in prompts}) > 1]
    told = {
        "on different commits": [run.git.commit[:12] if run.git else "unknown" for run in runs],
        "with different judges or embedders": [_judges(run.settings) for run in runs],
        "with different versions of ragbench": [run.ragbench or "unknown" for run in runs],
        "with different prompts": [
            ", ".join(f"{task} {each.get(task, 'unknown')}" for task in tasks) for each in prompts
        ],
    }
    asked = [_asked(shard) for shard in shards]
    # One judge standing in for another shows as overlapping sets; disjoint ones are two configurations.
    if any(not one & other for one in asked for other in asked if one and other):
        told["with different judges"] = [", ".join(sorted(each)) or "none" for each in asked]
    for what, values in told.items():
        names: dict[str, list[str]] = {}
        for shard, value in zip(shards, values, strict=True):
            names.setdefault(value, []).append(shard.name)
        if len(names) > 1:
            parts = [f"{value} ({', '.join(files)})" for value, files in names.items()]
            yield f"the shards ran {what}: {' | '.join(parts)}"


def _asked(shard: Shard) -> set[str]:
    """The judges that were configured for its scores; of an earlier version's report, those that gave them."""
    scores = [score for result in shard.report.results for score in result.scores]
    judges = (score.setup.judge if score.setup is not None else score.judge for score in scores)
    return {judge for judge in judges if judge}


def _judges(settings: str) -> str:
    """``judge J, embedder E`` of ``judge J, embedder E, service URL, store S``: where each shard has a service
    of its own, its address may differ.
    """
    return re.split(r", (?:service|store) ", settings, maxsplit=1)[0]


def _differences(shards: Sequence[Shard]) -> Iterable[str]:
    """In what shards of one run should not differ, but may."""
    runs = [shard.report.run for shard in shards]
    if len({_judges(run.settings) for run in runs}) == 1:
        values = list(dict.fromkeys(run.settings for run in runs))
        if len(values) > 1:
            yield f"the shards differ in settings: {' | '.join(values)}"
    pythons = list(dict.fromkeys(run.python for run in runs))
    if len(pythons) > 1:
        yield f"the shards differ in python: {' | '.join(pythons)}"
    said = {shard.report.preflight and shard.report.preflight.fingerprint for shard in shards}
    if len(said) > 1:
        yield "the judge said different things in the preflights of the shards: none of them is in the report"
    if any(shard.report.mutations for shard in shards):
        yield "what became of worse answers (--ragbench-mutate) is not merged: see the reports of the shards"


def _exit_code(shards: Sequence[Shard], results: Sequence[TestRecord], complete: bool) -> int:
    """What one run of all these tests would have ended with, before its gates."""
    codes = {_without_gates(shard) for shard in shards}
    # The worst code of any shard, as a single run would have ended with it.
    for worst in (_INTERNAL, _INTERRUPTED, _FAILED):
        if worst in codes:
            return worst
    if _USAGE in codes:
        return _USAGE
    others = codes - {_OK, _NO_TESTS, _UNSCORED}
    if others:
        return max(others)
    if not complete:
        return _INTERNAL  # results are missing, and nothing else is known to be wrong
    if _UNSCORED in codes:
        return _UNSCORED
    return _OK if results else _NO_TESTS


def _without_gates(shard: Shard) -> int:
    """A shard's exit code; where its own gates may have made it, that of its tests."""
    code = shard.report.exit_code
    if code is None:
        return _INTERRUPTED
    if not shard.report.gates or code not in _OF_GATES:
        return code
    # Exit code 1 may be that of a failed gate alone: the tests' own outcomes tell.
    kinds = {result.kind for result in shard.report.results if result.outcome in ("failed", "error")}
    if kinds & {None, "quality"}:
        return _FAILED
    return _USAGE if "usage" in kinds else _UNSCORED if kinds else _OK
