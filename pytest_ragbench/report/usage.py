"""Calls, tokens and latencies: summed up by kind of call and by model, as records of a report, and in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import Any

from pytest_ragbench.model.report import CallSums, ModelUsage, SummaryRecord, UsageRecord
from pytest_ragbench.money import dollars
from pytest_ragbench.statistics.percentile import percentile

UsageSums = Mapping[str, Mapping[str, Any]]
"""``"judge"``, or ``"judge openai:gpt-4o"`` for one of its models -> name -> a number, or a list of seconds."""


def add_usage(total: dict[str, dict[str, Any]], new: UsageSums) -> None:
    """Add ``new`` to ``total`` in place."""
    for kind, entries in new.items():
        sums = total.setdefault(kind, {})
        for name, value in entries.items():
            # Latencies are kept one by one: percentiles of parts can't be added.
            if isinstance(value, (list, tuple)):
                sums.setdefault(name, []).extend(value)
            else:
                sums[name] = sums.get(name, 0) + value


def usage_records(usage: UsageSums) -> tuple[dict[str, UsageRecord], tuple[ModelUsage, ...]]:
    """The sums of each kind, and those of each model, as a report has them."""
    kinds: dict[str, UsageRecord] = {}
    models: list[ModelUsage] = []
    for name, sums in usage.items():
        # Kinds have no spaces, models may.
        kind, _, model = name.partition(" ")
        counted = {key: value for key, value in sums.items() if key in _counted()}
        if model:
            models.append(ModelUsage(kind=kind, model=model, **counted))
            continue
        latencies = sums.get("latencies") or ()
        kinds[kind] = UsageRecord(
            **counted,
            p50=percentile(latencies, 0.5) if latencies else None,
            p95=percentile(latencies, 0.95) if latencies else None,
            # Milliseconds are enough, and a long run has tens of thousands of them.
            latencies=tuple(round(seconds, 3) for seconds in latencies),
        )
    return kinds, tuple(models)


def sums_of(summary: SummaryRecord | None) -> dict[str, dict[str, Any]]:
    """What :func:`usage_records` made the records of a report from."""
    if summary is None:
        return {}
    found = {
        kind: {**_sums(record), "latencies": list(record.latencies)} for kind, record in summary.calls.items()
    }
    return found | {f"{each.kind} {each.model}": _sums(each) for each in summary.models}


def _sums(record: CallSums) -> dict[str, Any]:
    told = {name: getattr(record, name) for name in _counted()}
    return {name: value for name, value in told.items() if value is not None}


@cache
def _counted() -> tuple[str, ...]:
    return tuple(each.name for each in fields(CallSums))


def call_lines(usage: UsageSums) -> list[str]:
    """``judge: 24 calls, 6 stored (saved 2,280 tokens), 9,120 tokens, p50 0.8 s, p95 2.1 s``, one line a
    kind; below it one line for each of its models where there are several; last what all cost together.
    """
    lines: list[str] = []
    kinds = [kind for kind in usage if " " not in kind]
    for kind in kinds:
        lines.append(f"{kind}: {_calls(usage[kind])}")
        models = [name for name in usage if name.startswith(f"{kind} ")]
        if len(models) > 1:
            lines += [f"  {name.split(' ', 1)[1]}: {_calls(usage[name])}" for name in models]
    # Of the kinds alone: their models are the same calls again.
    cost = sum(usage[kind].get("cost", 0.0) for kind in kinds)
    saved = sum(usage[kind].get("saved_cost", 0.0) for kind in kinds)
    unpriced = sum(usage[kind].get("unpriced", 0) for kind in kinds)
    if cost or saved:
        parts = [dollars(cost)]
        parts += [f"the store saved {dollars(saved)}"] if saved else []
        parts += [f"{unpriced:,} tokens of models without a known price not counted"] if unpriced else []
        lines.append(f"cost: {', '.join(parts)}")
    return lines


def _calls(entries: Mapping[str, Any]) -> str:
    calls, stored, failed = (int(entries.get(name, 0)) for name in ("calls", "stored", "failed"))
    tokens = int(entries.get("prompt_tokens", 0)) + int(entries.get("completion_tokens", 0))
    saved, cost = int(entries.get("saved_tokens", 0)), entries.get("cost", 0.0)
    parts = [f"{calls} call{'s' * (calls != 1)}"]
    if stored:
        parts.append(f"{stored} stored (saved {saved:,} tokens)" if saved else f"{stored} stored")
    # A request may take several calls, or none while its service is known to be down.
    parts += [f"{failed} request{'s' * (failed != 1)} failed"] if failed else []
    parts += [f"{tokens:,} tokens"] if tokens else []
    parts += [dollars(cost)] if cost else []
    latencies = entries.get("latencies", [])
    if latencies:
        parts.append(f"p50 {percentile(latencies, 0.5):.2f} s, p95 {percentile(latencies, 0.95):.2f} s")
    return ", ".join(parts)
