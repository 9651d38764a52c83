"""Metrics of the whole service: a question in, an answer out."""

from __future__ import annotations

from pytest_ragbench.judge.tasks import GradeSearchRag
from pytest_ragbench.metrics.registry import metric
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score


@metric(
    "search_rag",
    tier="end_to_end",
    needs=("question", "answer", "contexts"),
    tasks=("grade_search_rag",),
)
async def search_rag(sample: RagSample, tools: Tools) -> Score:
    """How well the answer answers the question and rests on the chunks: the lower of the two grades, in 0..1.

    One judge call. ``details`` holds both grades, ``answer_correctness`` (which does not compare with a
    reference) and ``groundedness``. A pair of grades of this package, without a published
    formula.
    """
    reply = await tools.ask(
        GradeSearchRag(sample.question, sample.answer or "", tuple(sample.contexts or ()))
    )
    grades = {"answer_correctness": reply.answer_correctness, "groundedness": reply.groundedness}
    # A grounded answer to another question is as useless as a good one that is made up.
    lower = min(grades, key=grades.__getitem__)
    said = reply.error_message or _default_reason(lower)
    # With two full grades nothing is wrong, whatever a judge remarks.
    faultless = grades[lower] >= 1.0
    return tools.score(
        sample,
        grades[lower],
        reason="" if faultless else said,
        error_message="" if faultless else reply.error_message,
        **grades,
    )


def _default_reason(lower: str) -> str:
    """For a low grade without a message: the judge isn't told the threshold, so it may find nothing to say."""
    # True of any grade below 1: whether that is low is for the threshold to say.
    return f"{lower} is the lower grade (the judge gave no message)"
