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
    )
    from pytest_ragbench.assertions import (
        assert_abstains as assert_abstains,
    )
    from pytest_ragbench.assertions import (
        assert_answer_relevancy as assert_answer_relevancy,
    )
    from pytest_ragbench.assertions import (
        assert_faithfulness as assert_faithfulness,
    )
    from pytest_ragbench.assertions import (
        assert_metric as assert_metric,
    )
    from pytest_ragbench.assertions import (
        assert_quality as assert_quality,
    )
    from pytest_ragbench.assertions import (
        assert_search_rag as assert_search_rag,
    )
    from pytest_ragbench.assertions import (
        assert_semantic_similarity as assert_semantic_similarity,
    )
    from pytest_ragbench.assertions import (
        score as score,
    )
    from pytest_ragbench.errors import (
        EmbeddingError as EmbeddingError,
    )
    from pytest_ragbench.errors import (
        EndpointError as EndpointError,
    )
    from pytest_ragbench.errors import (
        JudgeError as JudgeError,
    )
    from pytest_ragbench.errors import (
        QualityFailure as QualityFailure,
    )
    from pytest_ragbench.errors import (
        QuestionFileError as QuestionFileError,
    )
    from pytest_ragbench.errors import (
        RagbenchError as RagbenchError,
    )
    from pytest_ragbench.errors import (
        UndefinedScore as UndefinedScore,
    )
    from pytest_ragbench.errors import (
        Unscored as Unscored,
    )
    from pytest_ragbench.errors import (
        UsageError as UsageError,
    )
    from pytest_ragbench.questions import load_questions as load_questions
    from pytest_ragbench.samples import Question as Question
    from pytest_ragbench.samples import RagSample as RagSample
    from pytest_ragbench.scores import Finding as Finding
    from pytest_ragbench.scores import Score as Score
    from pytest_ragbench.scores import Usage as Usage
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
