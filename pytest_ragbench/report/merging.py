"""Reports of the shards of one run, as the report that one run would have written."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench.gates.verdicts import undecided
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.report import SCHEMA, VERSION
from pytest_ragbench.report.few_values import FewValues
from pytest_ragbench.report.opinions import Opinions
from pytest_ragbench.report.summary import Summary

if TYPE_CHECKING:
    from pytest_ragbench.gates.rules import Rule
    from pytest_ragbench.settings import GatingSettings

_OK, _FAILED, _INTERRUPTED, _INTERNAL, _USAGE, _NO_TESTS, _UNSCORED = 0, 1, 2, 3, 4, 5, 8
_OF_GATES = (_FAILED, 9, 10)
_QUANTILES = ("p50", "p95")


@dataclass(frozen=True)
class Shard:
    """One report, and the name to call it by."""

    name: str
    report: Mapping[str, Any]


def read_shards(paths: Sequence[Path]) -> list[Shard]:
    """The reports in the files, checked.

    Raises
    ------
    UsageError
        A file is no report, or is given twice.
    """
    from pytest_ragbench.report.reading import read_report

    shards: list[Shard] = []
    for path in paths:
        read_report(path)
        shards.append(Shard(str(path), json.loads(path.read_text(encoding="utf-8"))))
    runs: dict[str, str] = {}
    for shard in shards:
        run = shard.report["run"]["id"]
        if run in runs:
            raise UsageError(f"{shard.name} and {runs[run]} are reports of the same run")
        runs[run] = shard.name
    return shards


def merge(
    shards: Sequence[Shard], *, newest: bool = False, expected: int | None = None, mixed: bool = False
) -> dict[str, Any]:
    """One report of all results, in the order of ``shards``.

    Parameters
    ----------
    newest
        Of a test that several shards ran, take the result of the one that began last.
    expected
        So many shards there should be; with fewer the report is not complete.
    mixed
        Warn of shards of different commits, judges or versions of ragbench instead of refusing them.

    Raises
    ------
    UsageError
        Several shards ran the same test, and ``newest`` is not set; or what they tell is not of one thing,
        and ``mixed`` is not set.
    """
    from pytest_ragbench import __version__

    apart = list(_apart(shards))
    if apart and not mixed:
        raise UsageError("; ".join([*apart, "merge shards of one run, or take these together with --mixed"]))
    results = _results(shards, newest)
    summary, opinions, few = Summary(), Opinions(), FewValues()
    for record in results:
        summary.add_record(record)
        opinions.add(record)
        few.add(record)
    for shard in shards:
        summary.add_books(_books(shard.report.get("summary") or {}))
    missing = expected is not None and len(shards) < expected
    warnings = [text for shard in shards for text in _own_warnings(shard)]
    warnings += [text for text, matters in few.lines() if matters]
    warnings += [*apart, *_differences(shards)]
    if missing:
        warnings.append(f"{len(shards)} of {expected} shards are here; the results of the others are missing")
    complete = not missing and all(shard.report.get("complete") is True for shard in shards)
    first = min((shard.report["run"] for shard in shards), key=lambda run: float(run["started"]))
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "run": {
            **first,
            "id": uuid.uuid4().hex,
            "ragbench": __version__,
            "shards": [shard.name for shard in shards],
        },
        "results": results,
        "complete": complete,
        "exit_code": _exit_code(shards, results, complete),
        "finished": max((shard.report.get("finished") or 0.0 for shard in shards), default=0.0),
        "summary": summary.to_dict(summary.bands()),
        "lost": sorted({name for shard in shards for name in shard.report.get("lost") or ()}),
        "warnings": list(dict.fromkeys(warnings)),
        "gates": [],
        **(opinions.to_dict() if opinions else {}),
        **_preflight(shards),
    }


def summary_of(report: Mapping[str, Any]) -> Summary:
    """The sums of a report, to be shown."""
    summary = Summary()
    for record in report["results"]:
        summary.add_record(record)
    summary.add_books(_books(report["summary"]))
    return summary


def decide(
    report: dict[str, Any],
    rules: Sequence[Rule],
    gating: GatingSettings,
    baseline: str | None,
    history: Path | None = None,
) -> list[str]:
    """Hold a merged report against gates and put their verdicts and exit code into it; returns lines to show."""
    from pytest_ragbench.gates.baseline import baseline_of, compare_all, read_baseline
    from pytest_ragbench.gates.observations import Observations
    from pytest_ragbench.gates.verdicts import Conditions, evaluate, exit_code_of
    from pytest_ragbench.report.reading import report_from

    old = read_baseline(baseline, history=history) if baseline is not None else None
    observed = Observations(report["results"])
    new = baseline_of(report_from(report, name="these shards"), name="these shards")
    conditions = Conditions(
        max_unscored=gating.max_unscored,
        clusters=gating.clusters,
        complete=report["complete"],
        baseline=old,
        new=new,
    )
    verdicts = evaluate(rules, observed, conditions)
    report["gates"] = [verdict.to_dict() for verdict in verdicts]
    lines = [f"{verdict.outcome:<10} {verdict.rule.text}   {verdict.reason}" for verdict in verdicts]
    if old is not None:
        comparisons = compare_all(new, old)
        told = [{"metric": each.metric, **each.to_dict()} for each in comparisons]
        report["baseline"] = {"name": old.name, "metrics": told}
        lines += [
            f"compared with {old.name}",
            *(f"  {line}" for each in comparisons for line in each.lines()),
        ]
    report["warnings"] += [text for verdict in verdicts if (text := verdict.warning)]
    if report["exit_code"] in (_OK, _UNSCORED, _NO_TESTS):
        report["exit_code"] = exit_code_of(
            verdicts, report["exit_code"], undecided_fails=gating.undecided == "fail"
        )
    return lines


def _results(shards: Sequence[Shard], newest: bool) -> list[Mapping[str, Any]]:
    """In the order of the shards; a test may have several in one: of its setup and of its teardown."""
    found: dict[str, tuple[str, list[Mapping[str, Any]]]] = {}
    for shard in sorted(shards, key=lambda each: each.report["run"]["started"]) if newest else shards:
        for record in shard.report["results"]:
            test = record["test"]
            if test not in found or (newest and found[test][0] != shard.name):
                found[test] = (shard.name, [])
            if found[test][0] != shard.name:
                raise UsageError(
                    f"{test} was run in {found[test][0]} and in {shard.name}; split the tests so that each is run "
                    f"once, or take the later results with --newest"
                )
            found[test][1].append(record)
    return [record for _, records in found.values() for record in records]


def _preflight(shards: Sequence[Shard]) -> dict[str, Any]:
    """That of the shards, where the judge said the same in all."""
    found = [shard.report.get("preflight") or {} for shard in shards]
    same = len({each.get("fingerprint") for each in found}) == 1
    return {"preflight": found[0]} if same and found[0] else {}


def _books(summary: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Calls by kind and by model, as they were before they were summed up."""
    books: dict[str, dict[str, Any]] = {}
    for kind, entries in (summary.get("calls") or {}).items():
        books[kind] = {
            name: value for name, value in entries.items() if name not in _QUANTILES and value is not None
        }
    for entries in summary.get("models") or ():
        name = f"{entries['kind']} {entries['model']}"
        books[name] = {key: value for key, value in entries.items() if key not in ("kind", "model")}
    return books


def _own_warnings(shard: Shard) -> Iterable[str]:
    """What it warned of, but for what is told anew of all results: its gates, and scores of few values."""
    few = FewValues()
    for record in shard.report["results"]:
        few.add(record)
    told = {text for text, _ in few.lines()}
    told |= {
        undecided(gate["gate"], gate["reason"]) for gate in shard.report.get("gates") or () if "gate" in gate
    }
    return [text for text in shard.report.get("warnings") or () if text not in told]


def _apart(shards: Sequence[Shard]) -> Iterable[str]:
    """Why the results are not those of one thing."""
    runs = [shard.report["run"] for shard in shards]
    prompts = [run.get("prompts") or {} for run in runs]
    tasks = [task for task in prompts[0] if len({each.get(task) for each in prompts}) > 1]
    told = {
        "on different commits": [str((run.get("git") or {}).get("commit") or "unknown")[:12] for run in runs],
        "with different judges or embedders": [_judges(str(run.get("settings", ""))) for run in runs],
        "with different versions of ragbench": [str(run.get("ragbench", "unknown")) for run in runs],
        "with different prompts": [
            ", ".join(f"{task} {each.get(task, 'unknown')}" for task in tasks) for each in prompts
        ],
    }
    asked = [_asked(shard) for shard in shards]
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
    """The judges that gave its scores; several where one stood in for another."""
    scores = (score for record in shard.report["results"] for score in record["scores"])
    return {judge for score in scores if (judge := score.get("judge"))}


def _judges(settings: str) -> str:
    """``judge J, embedder E`` of ``judge J, embedder E, service URL, store S``: where each shard has a service
    of its own, its address may differ.
    """
    return re.split(r", (?:service|store) ", settings, maxsplit=1)[0]


def _differences(shards: Sequence[Shard]) -> Iterable[str]:
    """In what shards of one run should not differ, but may."""
    runs = [shard.report["run"] for shard in shards]
    if len({_judges(str(run.get("settings", ""))) for run in runs}) == 1:
        values = list(dict.fromkeys(str(run.get("settings", "")) for run in runs))
        if len(values) > 1:
            yield f"the shards differ in settings: {' | '.join(values)}"
    pythons = list(dict.fromkeys(str(run.get("python", "")) for run in runs))
    if len(pythons) > 1:
        yield f"the shards differ in python: {' | '.join(pythons)}"
    said = {(shard.report.get("preflight") or {}).get("fingerprint") for shard in shards}
    if len(said) > 1:
        yield "the judge said different things in the preflights of the shards: none of them is in the report"
    if any(shard.report.get("mutations") for shard in shards):
        yield "what became of worse answers (--ragbench-mutate) is not merged: see the reports of the shards"


def _exit_code(shards: Sequence[Shard], results: Sequence[Mapping[str, Any]], complete: bool) -> int:
    """What one run of all these tests would have ended with, before its gates."""
    codes = {_without_gates(shard) for shard in shards}
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
    code = shard.report.get("exit_code")
    if code is None:
        return _INTERRUPTED
    if not shard.report.get("gates") or code not in _OF_GATES:
        return int(code)
    kinds = {record["kind"] for record in shard.report["results"] if record["outcome"] in ("failed", "error")}
    if kinds & {None, "quality"}:
        return _FAILED
    return _USAGE if "usage" in kinds else _UNSCORED if kinds else _OK
