"""Steps that judged metrics share: split an answer into claims, verify claims, put verdicts into evidence."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import Any, Literal

from pytest_ragbench.judge.tasks import Fineness, SplitClaims, SupportVerdict, VerifyClaims
from pytest_ragbench.metrics.formulas import verdicts
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding
from pytest_ragbench.text import is_blank

Side = Literal["chunks", "reference", "answer"]
"""What claims are held against."""


async def split(
    tools: Tools, text: str, question: str, atomicity: Fineness = "high", coverage: Fineness = "high"
) -> tuple[str, ...]:
    """The claims in ``text``. One call; for a reference it is the same in every metric, and stored."""
    return (await split_in_parts(tools, text, question, atomicity, coverage))[0]


async def split_in_parts(
    tools: Tools, text: str, question: str, atomicity: Fineness = "high", coverage: Fineness = "high"
) -> tuple[tuple[str, ...], list[Finding]]:
    """The claims in ``text``; and findings for the parts that claim nothing, where the judge says which they are."""
    reply = await tools.ask(SplitClaims(text, question, atomicity, coverage))
    # A blank claim can't be verified, and would count in the denominator.
    claims = tuple(claim for claim in reply.claims if not is_blank(claim))
    return claims, [Finding(part, None, f"{kind}, not a claim") for part, kind in reply.left_out]


async def verify(
    tools: Tools, claims: Sequence[str], texts: Sequence[str], question: str, against: Side = "chunks"
) -> list[Finding]:
    """Whether the texts, taken together, support each claim. No call where there are no claims or texts."""
    if not claims:
        return []
    if all(map(is_blank, texts)):
        # Nothing supports nothing: no judge is needed to say so.
        return [Finding(claim, False, "nothing was retrieved") for claim in claims]
    reply = await tools.ask(VerifyClaims(tuple(claims), tuple(texts), question, against))
    return [
        Finding(claim, _holds(verdict, tools), verdict.reason, verdict.chunk, verdict.probability)
        for claim, verdict in zip(claims, reply.in_order(), strict=True)
    ]


def _holds(verdict: SupportVerdict, tools: Tools) -> bool:
    # A judge that grades on its own doesn't know from where on the metric counts a yes.
    if verdict.probability is None or not tools.graded:
        return verdict.verdict
    return verdict.probability >= tools.yes_from


def verdicts_of(findings: Sequence[Finding]) -> list[bool]:
    """As the formulas take them; a finding that only informs counts as a no."""
    return [bool(finding.ok) for finding in findings]


def share_of(findings: Sequence[Finding], *, graded: bool, what: str = "claims") -> float:
    """Share of the findings that hold; of graded ones, the mean of P(yes)."""
    # Only where all have a P(yes): a mean over some would be that of other claims.
    if graded and findings and all(finding.value is not None for finding in findings):
        return fmean(finding.value or 0.0 for finding in findings)
    return verdicts.share(verdicts_of(findings), what)


def unsure_of(findings: Sequence[Finding]) -> dict[str, Any]:
    """Details on claims that the judge can't tell, and the score if none of them held and if all did; {} without."""
    unsure = [finding.value or 0.0 for finding in findings if finding.unsure]
    if not unsure:
        return {}
    sure = sum(finding.value or 0.0 for finding in findings if not finding.unsure)
    count = len(findings)
    return {"n_unsure": len(unsure), "lowest": sure / count, "highest": (sure + len(unsure)) / count}


def first_fault(findings: Sequence[Finding], otherwise: str = "not supported") -> str:
    """The reason beside the first failed finding, with its text where there is no reason."""
    # Not None: such lines only inform.
    faults = [finding for finding in findings if finding.ok is False]
    if not faults:
        return ""
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return (faults[0].reason or f"{otherwise}: {faults[0].text}") + more


def check_number(metric: str, name: str, value: Any, low: float, high: float) -> None:
    """Refuse an option that isn't a number in low..high, before any call. A bool doesn't count as one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise UsageError(f"{metric}: {name} must lie in {low:g}..{high:g}, got {value!r}")


def no_reference_claims(metric: str) -> UndefinedScore:
    """To be raised where a recall has nothing to be a share of."""
    return UndefinedScore(
        f"{metric} is undefined: the reference has no claims to compare with", code="no_reference_claims"
    )


def contexts_of(sample: RagSample) -> tuple[str, ...]:
    """The retrieved chunks, best first; none where the sample never had any."""
    return tuple(sample.contexts or ())


def head(text: str, limit: int = 120) -> str:
    """The beginning of ``text``, for one line of evidence."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


NOBODY = RagSample("")
"""In place of a sample, where a score is that of a set."""
