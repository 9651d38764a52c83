"""Quality assertions for RAG systems, as pytest tests.

Public names are imported on first use, so that importing the package (pytest does, in every run)
costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "RagSample": "samples",
    "Question": "samples",
    "Score": "scores",
    "Finding": "scores",
    "Usage": "scores",
    "Threshold": "thresholds",
    "score": "assertions",
    "ascore": "assertions",
    "assert_metric": "assertions",
    "assert_quality": "assertions",
    "assert_faithfulness": "assertions",
    "assert_answer_relevancy": "assertions",
    "assert_semantic_similarity": "assertions",
    "assert_search_rag": "assertions",
    "assert_abstains": "assertions",
    "assert_retrieval": "aggregates",
    "load_questions": "questions",
    "QualityFailure": "errors",
    "RagbenchError": "errors",
    "UsageError": "errors",
    "QuestionFileError": "errors",
    "Unscored": "errors",
    "UndefinedScore": "errors",
    "JudgeError": "errors",
    "EndpointError": "errors",
    "EmbeddingError": "errors",
}

if TYPE_CHECKING:
    from pytest_ragbench.aggregates import assert_retrieval as assert_retrieval
    from pytest_ragbench.assertions import (
        ascore as ascore,
        assert_abstains as assert_abstains,
        assert_answer_relevancy as assert_answer_relevancy,
        assert_faithfulness as assert_faithfulness,
        assert_metric as assert_metric,
        assert_quality as assert_quality,
        assert_search_rag as assert_search_rag,
        assert_semantic_similarity as assert_semantic_similarity,
        score as score,
    )
    from pytest_ragbench.errors import (
        EmbeddingError as EmbeddingError,
        EndpointError as EndpointError,
        JudgeError as JudgeError,
        QualityFailure as QualityFailure,
        QuestionFileError as QuestionFileError,
        RagbenchError as RagbenchError,
        UndefinedScore as UndefinedScore,
        Unscored as Unscored,
        UsageError as UsageError,
    )
    from pytest_ragbench.questions import load_questions as load_questions
    from pytest_ragbench.samples import Question as Question, RagSample as RagSample
    from pytest_ragbench.scores import Finding as Finding, Score as Score, Usage as Usage
    from pytest_ragbench.thresholds import Threshold as Threshold

__all__ = sorted(_HOME)  # noqa: PLE0605 - a list of the names above, and of nothing else


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
