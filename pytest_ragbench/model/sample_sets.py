"""The samples of a question file, those included that could not be had."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from pytest_ragbench.model.errors import BudgetError, EndpointError
from pytest_ragbench.model.samples import Question, RagSample


class RagSamples(Sequence[RagSample]):
    """The samples of a question file, in its order.

    A question whose request failed keeps its place: taking it (by index or in a loop) raises its
    EndpointError, so that no check silently covers fewer questions than the file has.
    ``answered`` and ``failed`` tell the two apart.
    """

    def __init__(
        self, questions: Sequence[Question], found: Sequence[RagSample | EndpointError | BudgetError]
    ) -> None:
        self.questions = tuple(questions)
        self._found = tuple(found)

    @property
    def answered(self) -> list[RagSample]:
        """Those that there are, in the order of the file."""
        return [found for found in self._found if isinstance(found, RagSample)]

    @property
    def failed(self) -> dict[str, EndpointError | BudgetError]:
        """Question id -> what happened."""
        return {
            question.id: found
            for question, found in zip(self.questions, self._found, strict=True)
            if not isinstance(found, RagSample)
        }

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> RagSample: ...
    @overload
    def __getitem__(self, index: slice) -> RagSamples: ...
    def __getitem__(self, index: int | slice) -> RagSample | RagSamples:
        if isinstance(index, slice):
            return RagSamples(self.questions[index], self._found[index])
        return self._taken(self._found[index])

    def __iter__(self) -> Iterator[RagSample]:
        return (self._taken(found) for found in self._found)

    @staticmethod
    def _taken(found: RagSample | EndpointError | BudgetError) -> RagSample:
        if not isinstance(found, RagSample):
            # Raised at each access: on one exception tracebacks would pile up.
            raise found.with_traceback(None)
        return found

    def __repr__(self) -> str:
        return f"<RagSamples: {len(self.answered)} answered, {len(self.failed)} failed>"
