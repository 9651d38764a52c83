"""What can go wrong, sorted by whose fault it is.

==========================  ====================================  ==============
class                       whose fault                           pytest outcome
==========================  ====================================  ==============
:class:`QualityFailure`     the RAG system: a score missed its    FAILED
                            threshold
:class:`UsageError`         the test: no reference, an unreadable ERROR
                            threshold, a broken question file
:class:`Unscored`           nobody who is under test: judge,      ERROR
                            endpoint or embedder failed, or the
                            metric is undefined for this sample
==========================  ====================================  ==============

None of the last two is an :class:`AssertionError`: an outage can never be read as a bad answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class RagbenchError(Exception):
    """Base class of all errors of this package, except :class:`QualityFailure`."""


class QualityFailure(AssertionError):
    """A score missed its threshold.

    ``str()`` gives the whole failure text; its first line can stand alone.
    ``scores`` holds the :class:`~pytest_ragbench.model.scores.Score` of each metric that missed (one, or
    several for ``assert_quality``).
    """

    def __init__(self, message: str, scores: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.scores = tuple(scores)


class UsageError(RagbenchError):
    """The test, its data or its configuration is wrong. Raised before any call is paid for."""


class QuestionFileError(UsageError):
    """A question file can't be used; the message names the file and, where there is one, the line."""


class Unscored(RagbenchError):
    """There is no score, and the system under test is not to blame.

    Parameters
    ----------
    message
        One line that says what happened and what to do.
    code
        A short, stable reason: ``"timeout"``, ``"verdict_count_mismatch"``, ``"no_claims"`` ...
    raw
        What came back, unshortened, where something did.
    """

    def __init__(self, message: str, *, code: str = "error", raw: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.raw = raw
        self.trace_id: str | None = None
        """Of a question that got no answer: that of the service's trace, where it keeps one."""


class JudgeError(Unscored):
    """The judge could not be reached, refused, or replied with something that is not a verdict."""


class EndpointError(Unscored):
    """The RAG service could not be reached, or replied with something that is not an answer."""


class EmbeddingError(Unscored):
    """The embedder failed, or returned a vector that can't be compared (zero, NaN, other length)."""


class BudgetError(Unscored):
    """The call was not made, because the run's budget is used up."""


class UndefinedScore(Unscored):
    """The metric has no value for this sample: no claims, no relevant ids, a single cluster ..."""


def cause_of(message: str) -> str:
    """What an error's message says first: the same text for all that fail for one cause, however often it was tried.

    Messages about outages put the cause before the first ``"; "`` or ``" (after"``, and what differs behind it.
    """
    first = message.partition("\n")[0].rstrip(":")
    return first.partition("; ")[0].partition(" (after ")[0]


def with_details(message: str, details: str) -> str:
    """``message`` and more details, which leave its cause as it is."""
    return f"{message}; {details}"


# Tracebacks and reports name an exception by its module: the one to import it from.
for _error in [RagbenchError, *RagbenchError.__subclasses__(), *Unscored.__subclasses__(), QuestionFileError]:
    _error.__module__ = "pytest_ragbench"
QualityFailure.__module__ = "pytest_ragbench"
