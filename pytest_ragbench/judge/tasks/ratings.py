"""Tasks that want a grade on a scale of whole numbers, or a yes or no to a criterion of the test's author."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic

from pydantic import Field, create_model

from pytest_ragbench.judge.base import R, Task
from pytest_ragbench.judge.reading.fields import IntegerScale, Text, YesNo, grade_on
from pytest_ragbench.judge.tasks.numbered import Reply
from pytest_ragbench.text import detect_language


class RatingReply(Reply):
    reason: Text = Field(default="", description="One short sentence.")
    rating: int


# A model takes milliseconds to build, and a scale is used for every sample of a metric.
@lru_cache(maxsize=64)
def rating_reply(scale: IntegerScale) -> type[RatingReply]:
    """The reply whose rating lies on ``scale``; anything else is invalid."""
    field_type = grade_on(scale.low, scale.high, scale.step)
    model: type[RatingReply] = create_model(
        "RatingReply", __base__=RatingReply, rating=(field_type, Field(description=f"on the scale {scale}"))
    )
    return model


@dataclass(frozen=True)
class _TextsTask(Task[R], Generic[R]):
    """A judgement of some texts; ``texts`` is the data by label."""

    texts: tuple[tuple[str, str | tuple[str, ...]], ...]

    @property
    def lang(self) -> str:
        found = dict(self.texts)
        return detect_language(" ".join(str(found.get(label, "")) for label in ("question", "answer")))

    def data(self) -> Mapping[str, Any]:
        return dict(self.texts)


@dataclass(frozen=True)
class _RatingTask(_TextsTask[RatingReply]):
    """A rating on a scale."""

    scale: IntegerScale = field(default=IntegerScale(0, 2), kw_only=True)

    @property
    def reply_type(self) -> type[RatingReply]:
        return rating_reply(self.scale)

    def options(self) -> Mapping[str, Any]:
        grades = ", ".join(str(grade) for grade in self.scale.grades)
        return {"grades": grades, "low": self.scale.low, "high": self.scale.high}


@dataclass(frozen=True)
class RateAccuracy(_RatingTask):
    """How well does the answer agree with the reference?"""

    name = "rate_accuracy"


@dataclass(frozen=True)
class ConfirmAccuracy(_RatingTask):
    """The same, by a second examiner who sees the first one's rating and reason."""

    first: int = field(default=0, kw_only=True)
    reason: str = field(default="", kw_only=True)

    name = "confirm_accuracy"

    def data(self) -> Mapping[str, Any]:
        # The first examiner's reason is written by a model, so it is fenced like all untrusted texts.
        return {**super().data(), "remark": self.reason}

    def options(self) -> Mapping[str, Any]:
        return {**super().options(), "first": self.first}


@dataclass(frozen=True)
class RateContextRelevance(_RatingTask):
    """How much of what the question asks for do the chunks hold?"""

    name = "rate_context_relevance"


@dataclass(frozen=True)
class RateGroundedness(_RatingTask):
    """How much of the answer do the chunks support?"""

    name = "rate_groundedness"


class AspectReply(Reply):
    reason: Text = Field(default="", description="One short sentence.")
    verdict: YesNo = Field(description="true: the criterion is met; false: it is not.")


@dataclass(frozen=True)
class CheckAspect(_TextsTask[AspectReply]):
    """Is a criterion, written by the test's author, met?"""

    definition: str

    name = "check_aspect"
    reply_type = AspectReply

    def options(self) -> Mapping[str, Any]:
        return {"definition": self.definition.strip()}


@dataclass(frozen=True)
class RateRubric(_TextsTask[RatingReply]):
    """Which grade of a rubric, written by the test's author, does the answer deserve?"""

    rubric: tuple[tuple[int, str], ...]

    name = "rate_rubric"

    @property
    def reply_type(self) -> type[RatingReply]:
        return RatingReply

    def options(self) -> Mapping[str, Any]:
        return {"rubric": "\n".join(f"{grade} - {text.strip()}" for grade, text in self.rubric)}

    def reply_schema(self) -> dict[str, Any]:
        schema = super().reply_schema()
        # A range would allow grades that the rubric does not describe.
        rating = {"type": "integer", "enum": [grade for grade, _ in self.rubric]}
        return {**schema, "properties": {**schema["properties"], "rating": rating}}

    def read(self, payload: Mapping[str, Any]) -> RatingReply:
        """The grade must be one of the rubric's, which need not be evenly spaced."""
        grades = [grade for grade, _ in self.rubric]
        rating = IntegerScale(grades[0], grades[-1]).read(payload.get("rating"))
        if rating not in grades:
            raise ValueError(f"rating: {rating} is not a grade of the rubric ({', '.join(map(str, grades))})")
        return super().read({**payload, "rating": rating})
