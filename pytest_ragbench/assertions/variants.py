"""Metamorphic tests: what must not change an answer, and a helper that asserts that it did not."""

from __future__ import annotations

import random
from typing import Any

from pytest_ragbench.assertions.samples import assert_metric
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Score
from pytest_ragbench.scoring import ThresholdLike
from pytest_ragbench.scoring.helper_spec import HelperSpec, helper
from pytest_ragbench.text import is_blank


def shuffled_contexts(sample: RagSample, seed: int = 0) -> RagSample:
    """The sample with its chunks (ids and scores with them) in another order, and no answer.

    Raises
    ------
    UsageError
        It has fewer than two chunks.
    """
    contexts = _contexts(sample)
    if len(contexts) < 2:
        raise UsageError(f"sample {sample.label} has {len(contexts)} chunks: there is no other order")
    order = list(range(len(contexts)))
    # Of two chunks every other shuffle changes nothing.
    while order == sorted(order):
        random.Random(seed).shuffle(order)  # noqa: S311 - no secret
        seed += 1
    return _with(sample, order, contexts)


def with_distractor(sample: RagSample, text: str, at: int = 0) -> RagSample:
    """The sample with a chunk that has nothing to do with the question at place ``at``, and no answer.

    Raises
    ------
    UsageError
        It has no chunks, or ``at`` lies outside of them.
    """
    contexts = _contexts(sample)
    if not 0 <= at <= len(contexts):
        raise UsageError(f"at must lie in 0..{len(contexts)}, got {at}")
    chunks = [*contexts[:at], text, *contexts[at:]]
    # The old answer was given to other chunks, so it has to be asked for again.
    changes: dict[str, Any] = {"contexts": chunks, "context_scores": None, "answer": None}
    if sample.context_ids is not None:
        changes["context_ids"] = [*sample.context_ids[:at], "distractor", *sample.context_ids[at:]]
    return sample.with_(**changes)


@helper(
    HelperSpec(
        name="assert_same_meaning",
        metric="semantic_similarity",
        metric_from="metric",
        given_in="variant",
        makes_sample=True,
        not_options=("original",),
    )
)
def assert_same_meaning(
    original: RagSample, variant: RagSample, threshold: ThresholdLike = ">=0.8", *, metric: str = "semantic_similarity",
    **options: Any,
) -> Score:  # fmt: skip
    """Assert that the answer to a variant means what the answer to the original means.

    Parameters
    ----------
    original, variant
        Two answered samples: the question and its paraphrase, or the same with other chunks.
    threshold, metric, options
        The variant's answer is scored against the original's as its reference, by any metric that needs an
        answer and a reference: ``"semantic_similarity"`` (an embedder), ``"answer_correctness"`` (a judge).

    Raises
    ------
    QualityFailure
        It means something else.
    UsageError
        One of the two has no answer.
    """
    __tracebackhide__ = True
    if is_blank(original.answer):
        raise UsageError(f"sample {original.label} has no answer to compare with")
    # Thresholds in the variant's row are meant for other tests.
    pair = variant.with_(reference=original.answer, question=original.question, thresholds={})
    return assert_metric(metric, pair, threshold, **options)


def _contexts(sample: RagSample) -> list[str]:
    if sample.contexts is None:
        raise UsageError(f"sample {sample.label} has no chunks")
    return list(sample.contexts)


def _with(sample: RagSample, order: list[int], contexts: list[str]) -> RagSample:
    changes: dict[str, Any] = {"contexts": [contexts[place] for place in order], "answer": None}
    for name in ("context_ids", "context_scores"):
        column = getattr(sample, name)
        if column is not None:
            changes[name] = [column[place] for place in order]
    return sample.with_(**changes)


__all__ = ["assert_same_meaning", "shuffled_contexts", "with_distractor"]
