"""``ragbench metrics``: what there is to measure."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pytest_ragbench.cli.shared import emit, json_option, table
from pytest_ragbench.metrics.purposes import PURPOSES, purpose_of, purposes_for
from pytest_ragbench.metrics.registry import TIERS, all_metrics, find
from pytest_ragbench.model.errors import UsageError

if TYPE_CHECKING:
    from pytest_ragbench.metrics.registry import Metric


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in all_metrics() if name.startswith(incomplete)]


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=_complete)
@click.option(
    "--tier", help="Only those of a tier: embedding, retrieval, generation, end_to_end, judge, dialogue ..."
)
@click.option(
    "--reference-free",
    is_flag=True,
    help="Only those that need no right answer, chunks or ids beside the reply.",
)
@click.option("--no-judge", is_flag=True, help="Only those that ask no judge.")
@click.option(
    "--for", "problem", metavar="WORDS", help='Only those for a problem: "wrong answers", hallucinations ...'
)
@click.option(
    "--have",
    metavar="FIELDS",
    help="Only those that need no more of a sample than these: question,answer,contexts ...",
)
@json_option
def command(
    names: tuple[str, ...],
    tier: str | None,
    reference_free: bool,
    no_judge: bool,
    problem: str | None,
    have: str | None,
    as_json: bool,
) -> None:
    """List the metrics by what they tell: what each needs, its range and its good direction.

    Those to begin with come first. Named ones are shown with all they have; a cut-off is part of the name.

    \b
      ragbench metrics
      ragbench metrics --for "wrong answers" --have question,answer,reference
      ragbench metrics faithfulness ndcg@10
      ragbench metrics --tier retrieval --json
    """
    if tier is not None and tier not in TIERS:
        raise UsageError(f"unknown tier {tier!r}; tiers: {', '.join(TIERS)}")
    if names and problem is not None:
        raise UsageError("give names of metrics, or --for, not both")
    found = {name: find(name) for name in names} if names else _by_purpose(problem)
    fields = _fields(have) if have is not None else None
    chosen = {
        name: metric
        for name, metric in found.items()
        if tier in (None, metric.tier)
        and not (reference_free and not is_reference_free(metric))
        and not (no_judge and metric.tasks)
        and (fields is None or (metric.of == "sample" and fields.issuperset(metric.needs)))
    }
    rows = {name: described(metric) for name, metric in chosen.items()}
    for name, row in rows.items():
        purpose = purpose_of(name.partition("@")[0])
        row["purpose"] = purpose.question if purpose else None
    emit(
        {"metrics": [{"name": name, **row} for name, row in rows.items()]},
        _text(rows, bool(names)),
        as_json=as_json,
    )


def _by_purpose(problem: str | None) -> dict[str, Metric]:
    known = all_metrics()
    purposes = PURPOSES if problem is None else purposes_for(problem)
    ordered = {name: known[name] for purpose in purposes for name in purpose.metrics if name in known}
    return ordered if problem is not None else ordered | known


def _fields(have: str) -> set[str]:
    fields = {field.strip() for field in have.split(",") if field.strip()}
    known = {need for metric in all_metrics().values() for need in metric.needs}
    if unknown := sorted(fields - known):
        raise UsageError(f"--have: no metric needs {unknown[0]!r}; fields: {', '.join(sorted(known))}")
    return fields


def is_reference_free(metric: Metric) -> bool:
    """Whether question, answer and retrieved chunks are enough: fit for production logs."""
    return metric.of == "sample" and set(metric.needs) <= {"question", "answer", "contexts"}


def described(metric: Metric) -> dict[str, Any]:
    """What the registry knows, as plain data. ``low`` and ``high`` are None where there is no bound."""
    return {
        "tier": metric.tier,
        "needs": list(metric.needs),
        "judge": bool(metric.tasks),
        "embedder": metric.embedder,
        "reference_free": is_reference_free(metric),
        "of": metric.of,
        # JSON has no infinity.
        "low": metric.low if math.isfinite(metric.low) else None,
        "high": metric.high if math.isfinite(metric.high) else None,
        "direction": metric.direction,
        "bands": dict(metric.bands),
        "options": _options(metric),
        "summary": metric.summary,
    }


def _options(metric: Metric) -> list[str]:
    # The formula's own signature, so that the list can't be out of date.
    parameters = inspect.signature(metric.compute).parameters.values()
    return [each.name for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY]


def _text(rows: dict[str, dict[str, Any]], in_full: bool) -> str:
    if not rows:
        return "no metric is like that"
    if in_full:
        return "\n\n".join(_full(name, row) for name, row in rows.items())
    lines = [
        [
            name, row["tier"], _range(row), row["direction"],
            " ".join(part for part, asked in (("judge", row["judge"]), ("embedder", row["embedder"])) if asked) or "-",
            "a set" if row["of"] == "set" and not row["needs"] else ", ".join(row["needs"]),
        ]
        for name, row in rows.items()
    ]  # fmt: skip
    header, *printed = table(["metric", "tier", "range", "better", "asks", "needs"], lines).splitlines()
    shown = [header]
    purposes = [row["purpose"] or "Of your own" for row in rows.values()]
    for place, (purpose, line) in enumerate(zip(purposes, printed, strict=True)):
        if place == 0 or purpose != purposes[place - 1]:
            shown += ["", purpose]
        shown.append(line)
    return "\n".join(shown)


def _full(name: str, row: dict[str, Any]) -> str:
    side = "from" if row["direction"] == "higher" else "up to"
    bands = ", ".join(f"{band} {side} {limit:g}" for band, limit in row["bands"].items()) or "none"
    asked = [part for part in ("judge", "embedder") if row[part]]
    lines = [
        name,
        f"  {row['summary']}",
        *([f"  for      {row['purpose']}"] if row["purpose"] else []),
        f"  tier     {row['tier']}",
        f"  needs    {', '.join(row['needs']) or 'nothing of a sample'}"
        + (" (computed over a set)" if row["of"] == "set" else ""),
        f"  asks     {' and '.join(asked) or 'nobody'}",
        f"  range    {_range(row)}, {row['direction']} is better",
        f"  bands    {bands}",
        f"  options  {', '.join(row['options']) or 'none'}",
    ]
    return "\n".join(lines)


def _range(row: dict[str, Any]) -> str:
    low = "-inf" if row["low"] is None else f"{row['low']:g}"
    high = "inf" if row["high"] is None else f"{row['high']:g}"
    return f"{low}..{high}"
