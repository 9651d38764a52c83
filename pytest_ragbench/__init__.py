"""Quality assertions for RAG systems, as pytest tests.

Public names are imported on first use, so that importing the package (pytest does, in every run)
costs nothing. Editors and type checkers read ``__init__.pyi``.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pytest_ragbench.version import VERSION

__version__ = VERSION

NAMES_BY_MODULE = {
    "assertions.expectations": "assert_expected",
    "assertions.samples": (
        "aassert_metric aassert_quality ascore assert_abstains assert_metric assert_quality assert_rouge "
        "assert_search_rag score"
    ),
    "assertions.sets": "assert_over assert_retrieval score_over",
    "assertions.variants": "assert_same_meaning shuffled_contexts with_distractor",
    "calibration.asserting": "assert_judge_agreement",
    "embeddings.base": "Embedder",
    "embeddings.openai": "OpenAIEmbedder",
    "judge.base": "Judge",
    "judge.clients": "OpenAIJudge",
    "metrics.critics": "define_aspect define_rubric",
    "metrics.registry": "Metric metric",
    "metrics.tools": "Tools",
    "model.errors": (
        "EmbeddingError EndpointError JudgeError QualityFailure QuestionFileError RagbenchError "
        "UndefinedScore Unscored UsageError"
    ),
    "model.sample_sets": "RagSamples",
    "model.samples": "Question RagSample",
    "model.scores": "Finding Score Usage",
    "model.thresholds": "Threshold",
    "questions": "load_questions",
    "rag": "Retriever",
    "rag.trace_context": "traceparent",
    "scoring.requests": "ThresholdLike",
    "scoring.sets": "Items",
}
_MODULE_OF = {name: module for module, names in NAMES_BY_MODULE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _public_names()
    if name in _MODULE_OF:
        value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    elif name.startswith("assert_"):
        # One helper a metric, made from the registry: also of a user's metric, once that is registered.
        value = import_module(f"{__name__}.assertions.factory").made_helper(name)
    else:
        value = None
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_public_names()})


def _public_names() -> list[str]:
    made = import_module(f"{__name__}.assertions.factory").helper_names()
    return sorted({*_MODULE_OF, *made})
