"""Metrics of conversations and of a question cache, computed over a set of samples.

The samples of a session are its turns, in order. Cache hit rate and context preservation describe the users
more than the system. All three are defined here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_ragbench.clean import counted
from pytest_ragbench.judge.base import in_language
from pytest_ragbench.judge.tasks import CheckConsistency
from pytest_ragbench.metrics import formulas
from pytest_ragbench.metrics.registry import metric
from pytest_ragbench.metrics.steps import NOBODY, check_number, head
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.text import is_blank


def _sessions(samples: Sequence[RagSample]) -> dict[str, list[RagSample]]:
    found: dict[str, list[RagSample]] = {}
    for sample in samples:
        # In the order of the file, which is that of the conversation.
        found.setdefault(str(sample.session), []).append(sample)
    return found


def _adapt_cache(samples: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    cache = options.get("cache")
    if isinstance(cache, str) or (cache is not None and not all(isinstance(text, str) for text in cache)):
        raise UsageError("cache_hit_rate: cache must be a list of questions")
    check_number("cache_hit_rate", "cutoff", options.get("cutoff", 0.85), -1, 1)
    return {}


@metric(
    "cache_hit_rate",
    tier="dialogue",
    of="set",
    needs=("question",),
    embedder=True,
    bands={"excellent": 0.5, "good": 0.1},
    adapt=_adapt_cache,
)
async def cache_hit_rate(
    samples: Sequence[RagSample],
    tools: Tools,
    *,
    cache: Sequence[str] | None = None,
    cutoff: float = 0.85,
) -> Score:
    """Share of the questions that a cached question comes close to (cosine strictly above ``cutoff``).

    Parameters
    ----------
    cache
        The cached questions; by default all questions of the set. A question is never compared with itself,
        or each would be a hit; an empty cache gives 0.
    cutoff
        The cosine that a hit must exceed, in -1..1.
    """
    asked = [sample.question for sample in samples]
    stored = asked if cache is None else list(cache)
    # Each question is in the default cache itself; it must not hit itself.
    same = list(range(len(asked))) if cache is None else [_place(text, stored) for text in asked]
    # Equal questions are embedded once.
    distinct = list(dict.fromkeys([*asked, *stored]))
    vectors = dict(zip(distinct, await tools.embed(distinct), strict=True))
    best = formulas.best_cosines_to_cache(
        [vectors[text] for text in asked], [vectors[text] for text in stored], same
    )
    value = formulas.cache_hit_rate(best, cutoff)
    findings = [
        Finding(text, cosine is not None and cosine > cutoff + 1e-9, value=cosine)
        for text, cosine in zip(asked, best, strict=True)
    ]
    hits = sum(bool(finding.ok) for finding in findings)
    return tools.score(
        NOBODY, value, reason=f"{counted(hits, 'hit')} among {counted(len(asked), 'question')}, {len(stored)} cached",
        evidence=findings, evidence_title="questions", n_items=len(asked), n_cached=len(stored),
        cutoff=cutoff,
    )  # fmt: skip


def _place(text: str, stored: Sequence[str]) -> int | None:
    # Word for word in the given cache, a question must not hit itself.
    return stored.index(text) if text in stored else None


@metric(
    "context_preservation",
    tier="dialogue",
    of="set",
    needs=("question", "session"),
    embedder=True,
    low=-1.0,
    bands={"excellent": 0.7, "good": 0.3},
)
async def context_preservation(samples: Sequence[RagSample], tools: Tools, *, pooled: bool = False) -> Score:
    """How far users stay on their topic: mean cosine of neighbouring questions of a session, range -1..1.

    The mean is taken within each session, then over sessions; ``pooled=True`` takes it over all neighbours of
    all sessions at once, so that long sessions weigh more. Sessions of one question are left out and counted.
    """
    sessions = _sessions(samples)
    matrix = iter(await tools.embed([turn.question for turns in sessions.values() for turn in turns]))
    rows = [[next(matrix) for _ in turns] for turns in sessions.values()]
    found = formulas.context_preservation(rows, pooled=pooled)
    findings = [
        Finding(name, None, counted(len(turns), "question"), value=mean)
        for (name, turns), mean in zip(sessions.items(), found.per_session, strict=True)
    ]
    return tools.score(
        NOBODY, found.value, reason=f"{len(sessions)} sessions, {found.n_left_out} of one question left out",
        evidence=findings, evidence_title="sessions", n_items=len(samples), n_sessions=len(sessions),
        n_left_out=found.n_left_out,
    )  # fmt: skip


def _consistency(turns: Sequence[RagSample]) -> CheckConsistency:
    questions, answers = zip(*((turn.question, turn.answer or "") for turn in turns), strict=True)
    return CheckConsistency(questions, answers)


@metric(
    "multi_turn_consistency",
    tier="dialogue",
    of="set",
    needs=("question", "answer", "session"),
    tasks=("check_consistency",),
)
async def multi_turn_consistency(samples: Sequence[RagSample], tools: Tools) -> Score:
    """Share of the later answers of a session that contradict no earlier one, averaged over sessions.

    Of a session with answers a_1 ... a_n: ``1/(n-1) · #{i > 1 : a_i contradicts no a_j, j < i}``, range
    0..1. Two answers contradict each other where they can't both be true of the same thing. More detail,
    another subject or "I don't know" contradicts nothing; an open correction does. Blank answers are left
    out. One judge call for each session; sessions with fewer than two answers are left out and counted.
    """
    sessions = {
        name: [turn for turn in turns if not is_blank(turn.answer)]
        for name, turns in _sessions(samples).items()
    }
    # One answer can't contradict an earlier one.
    asked = {name: turns for name, turns in sessions.items() if len(turns) > 1}
    if not asked:
        raise UndefinedScore(
            "multi_turn_consistency is undefined: no session has two answers", code="one_answer"
        )
    replies = await asyncio.gather(
        *(tools.ask(in_language(_consistency(turns), turns[0].lang)) for turns in asked.values())
    )
    findings, values = [], []
    for (name, turns), reply in zip(asked.items(), replies, strict=True):
        verdicts = reply.in_order()
        # Within each session first: a long one must not outweigh the others.
        values.append(sum(verdict.verdict for verdict in verdicts) / len(verdicts))
        for number, (turn, verdict) in enumerate(zip(turns[1:], verdicts, strict=True), 2):
            against = f"contradicts answer {verdict.turn}: " if verdict.turn and not verdict.verdict else ""
            title = f"{name}, answer {number}: {head(turn.answer or '')}"
            findings.append(Finding(title, verdict.verdict, f"{against}{verdict.reason}"))
    left_out = len(sessions) - len(asked)
    faults = [finding for finding in findings if not finding.ok]
    return tools.score(
        NOBODY, sum(values) / len(values), reason=faults[0].reason if faults else "", evidence=findings,
        evidence_title="answers", n_items=len(samples), n_sessions=len(sessions), n_left_out=left_out,
        per_session=dict(zip(asked, values, strict=True)),
    )  # fmt: skip
