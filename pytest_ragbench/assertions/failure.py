"""The failure text: what is wrong in the first line, then the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_ragbench.clean import clean, one_line
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score
from pytest_ragbench.scoring.results import Result
from pytest_ragbench.text import is_blank

_LABEL_WIDTH = 11
# Characters: enough for an answer, and for the first sentence of a chunk.
_MAX_FIELD_CHARACTERS = 2000
_MAX_CHUNK_CHARACTERS = 160
_MARKS = {True: "✓", False: "✗", None: "·"}


def _headline(miss: Result, score: Score) -> str:
    """``faithfulness 0.50, wanted >=0.8: the 30-day window is in no chunk``: it stands alone in
    pytest's short summary and in JUnit, so it is kept to one line.
    """
    why = score.error_message or score.reason
    said = f": {one_line(why, 200)}" if why.strip() else ""
    shown = miss.threshold.shown(score.value) if miss.threshold else f"{score.value:.2f}"
    return f"{miss.part or miss.metric} {shown}, wanted {miss.threshold}{said}"


def failure_text(
    sample: RagSample, misses: Sequence[Result], notes: Sequence[str] = (), said: Sequence[str] = ()
) -> str:
    """All misses of one sample with their evidence; ``notes`` tell of metrics that have no score, ``said``
    of what was found without a metric.
    """
    scored = [(miss, miss.score) for miss in misses if miss.score is not None]
    # All misses in the first line: pytest's summary and JUnit show nothing else.
    first = [*(one_line(text, 300) for text in said), *(_headline(miss, score) for miss, score in scored)]
    lines = ["; ".join(first)]
    lines += [f"  no score: {one_line(note, 300)}" for note in notes]
    where = f"   ({sample.location})" if sample.location else ""
    lines += _field("question", sample.question + where)
    if sample.id is not None:
        lines += _field("id", sample.id)
    lines += _answer(sample)
    if sample.reference is not None:
        lines += _field("reference", sample.reference)
    for miss, score in scored:
        title = (
            score.evidence_title
            if len(misses) == 1
            else f"{score.evidence_title} ({miss.part or miss.metric})"
        )
        lines += _block(title, _findings(score.evidence))
    return "\n".join([*lines, *_block("chunks", chunk_lines(sample)), *_judges(score for _, score in scored)])


def evidence_text(results: Sequence[Result]) -> str:
    """What the scores of a test that passed rest on: one block for each sample."""
    lines: list[str] = []
    samples = {id(result.sample): result.sample for result in results}
    for sample in samples.values():
        if sample is not None:
            lines += _field("question", sample.question)
            lines += _answer(sample)
        own = [(each, each.score) for each in results if each.sample is sample and each.score is not None]
        for result, score in own:
            wanted = f", wanted {result.threshold}" if result.threshold else ""
            lines.append(f"  {result.metric} {score.value:.2f}{wanted}")
            lines += _block(score.evidence_title, _findings(score.evidence))
        if sample is not None:
            lines += _block("chunks", chunk_lines(sample))
        lines += _judges(score for _, score in own)
    return "\n".join(lines)


def _judges(scores: Iterable[Score]) -> list[str]:
    """Who judged; two grades of one call are said once."""
    # A dict, not a set: in the order of the scores.
    blocks = dict.fromkeys(tuple(_judge(score)) for score in scores)
    return [line for block in blocks for line in block]


def _answer(sample: RagSample) -> list[str]:
    if sample.answer is None:
        return []
    return _field("answer", "(empty)" if is_blank(sample.answer) else sample.answer)


def _field(label: str, text: str) -> list[str]:
    shown = clean(text)
    # With its length, so that nobody takes the beginning for the whole.
    if len(shown) > _MAX_FIELD_CHARACTERS:
        shown = f"{shown[:_MAX_FIELD_CHARACTERS]}… ({len(shown)} characters)"
    return _block(label, shown.splitlines() or [""])


def _block(label: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    if len(label) >= _LABEL_WIDTH:
        return [f"  {label}", *(f"  {'':{_LABEL_WIDTH}}{line}" for line in lines)]
    return [f"  {label if index == 0 else '':{_LABEL_WIDTH}}{line}" for index, line in enumerate(lines)]


def _findings(findings: Sequence[Finding]) -> list[str]:
    shown = sorted(findings, key=lambda finding: finding.ok is not False)[:30]  # what failed comes first
    lines = []
    for finding in shown:
        value = f" {finding.value:.2f}" if finding.value is not None else ""
        because = one_line(finding.reason, 200)
        # A judge often names the chunk in its reason: that is not said twice.
        if finding.chunk is not None and f"{finding.chunk}" not in because:
            because = f"chunk {finding.chunk}" + (f": {because}" if because else "")
        lines.append(
            f"{'?' if finding.unsure else _MARKS[finding.ok]}{value} {one_line(finding.text, 300)}"
            + (f"   {because}" if because else "")
        )
    if len(findings) > len(shown):
        lines.append(f"… and {len(findings) - len(shown)} more")
    return lines


def chunk_lines(sample: RagSample) -> list[str]:
    """The first ten chunks with rank, score and id, a line each; of a sample without chunks, why."""
    if sample.contexts is None:
        return ["(the service sent none)"]
    if not sample.contexts:
        return ["(none retrieved)"]
    lines = []
    for index, text in enumerate(sample.contexts[:10]):
        ranked = f" {sample.context_scores[index]:.2f}" if sample.context_scores else ""
        named = f" {one_line(sample.context_ids[index], 40)}" if sample.context_ids else ""
        lines.append(f"[{index + 1}]{ranked}{named} {one_line(text, _MAX_CHUNK_CHARACTERS)}")
    if len(sample.contexts) > 10:
        lines.append(f"… and {len(sample.contexts) - 10} more")
    return lines


def _judge(score: Score) -> list[str]:
    if score.judge is None:
        return _block("embedder", [clean(score.embedder)]) if score.embedder else []
    parts = [clean(score.judge), f"{score.votes} vote{'s' * (score.votes != 1)}"]
    parts.append("stored reply" if score.cached else f"{score.duration:.1f} s")
    if score.usage.tokens:
        parts.append(f"{score.usage.tokens} tokens")
    lines = [", ".join(parts)]
    if score.error_message:
        lines.append(f'error_message: "{one_line(score.error_message, 400)}"')
    if score.embedder:
        lines.append(f"embedder: {clean(score.embedder)}")
    return _block("judge", lines)
