"""Labels files: what people say of a judge's verdicts (docs/calibration.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_ragbench.gates.rules import ScaleOf, registered_scale
from pytest_ragbench.model.errors import UsageError

ABOUT = ("run", "test", "question_id", "metric", "evidence", "claim")
"""Fields that say together which verdict a label is on: of two labels on the same one the later holds."""


class Label(BaseModel):
    """One verdict of a judge, and the person's own."""

    # People and later versions may write more columns.
    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    question_id: str | None
    metric: str
    claim: str | None
    verdict: bool | None
    """None where the judge has given none, now that it was asked again."""
    human_verdict: bool
    question: str | None = None
    answer: str | None = None
    contexts: tuple[str, ...] | None = None
    remark: str = ""
    reason: str = ""
    """The judge's own."""
    reference: str | None = None
    evidence: int | None = None
    value: float | None = None
    threshold: str | None = None
    judge: str | None = None
    lang: str | None = None
    test: str | None = None
    run: str | None = None

    @property
    def about(self) -> tuple[str | int | None, ...]:
        """Which verdict it is on; see :data:`ABOUT`."""
        return tuple(getattr(self, name) for name in ABOUT)

    @property
    def name(self) -> str:
        """How messages call it."""
        return f"{self.question_id or (self.question or '')[:40]} {self.metric}"


def read_labels(path: Path) -> list[Label]:
    """The labels of a file; of two lines on the same verdict the later one holds.

    Raises
    ------
    UsageError
        No such file, a line that is not a label (named), no label at all.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")  # a string may hold U+2028
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"labels {path}: can't be read: {error}") from None
    found: dict[tuple[Any, ...], Label] = {}
    for number, line in enumerate(lines, 1):
        if line.strip():
            label = label_of(line, f"{path}:{number}")
            # Written by hand it may name neither: then no other line can mean the same.
            found[label.about if label.question_id is not None or label.test else (number,)] = label
    if not found:
        raise UsageError(f"labels {path}: there is no label in it")
    return list(found.values())


def higher_is_better(labels: Sequence[Label], scale_of: ScaleOf = registered_scale) -> bool | None:
    """Whether a higher score of the labels' metric is better: as reports say or as it is registered, else as their
    thresholds point. None where neither tells.
    """
    if all(label.claim is not None for label in labels):
        return True  # the value of a claim is how probable it is
    try:
        return scale_of(labels[0].metric).direction == "higher"
    except UsageError:
        ends = {label.threshold.strip()[0] for label in labels if label.threshold and label.threshold.strip()}
        return None if not ends or not ends <= {"<", ">"} or len(ends) > 1 else ends == {">"}


def label_of(line: str, where: str) -> Label:
    """The label of one line; ``where`` it is, for messages.

    Raises
    ------
    UsageError
        It is none, or says two things.
    """
    try:
        row = json.loads(line)
        if not isinstance(row, Mapping):
            raise UsageError(f"{where}: a label is an object, got {type(row).__name__}")
        label = Label.model_validate(
            # Tools write null where nobody has written anything.
            {**row, "remark": row.get("remark") or "", "reason": row.get("reason") or ""}
        )
    except ValidationError as error:
        problem = error.errors()[0]
        raise UsageError(f"{where}: {'.'.join(map(str, problem['loc']))}: {problem['msg']}") from None
    except ValueError as error:
        raise UsageError(f"{where}: no JSON: {error}") from None
    said = row.get("label")
    if label.verdict is None:
        raise UsageError(f"{where}: verdict: true or false is wanted")
    # Said twice, the two may contradict each other: then nobody knows which is meant.
    if said is not None and said != ("right" if label.verdict == label.human_verdict else "wrong"):
        raise UsageError(
            f"{where}: label is {said!r}, but verdict is {label.verdict} and human_verdict {label.human_verdict}"
        )
    return label
