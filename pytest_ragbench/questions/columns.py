"""The names that people and tools give the columns of a question file, and the fields that they mean.

Names are compared without case, spaces, underscores, hyphens and dots, so ``userInput``, ``user_input`` and
``User Input`` are the same name.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher, get_close_matches
from functools import cache, lru_cache
from typing import Any, ClassVar

from pytest_ragbench.languages import catalog

FIELDS = (
    "id", "question", "answer", "reference", "contexts", "reference_contexts", "context_ids", "relevant_ids",
    "context_urls", "relevant_urls", "lang", "must_pass", "should_abstain", "thresholds", "tags", "session", "cluster",
)  # fmt: skip
"""The fields of a Question that a column can be mapped to; ``metadata.NAME`` is possible, too."""


@dataclass(frozen=True)
class QuestionWords:
    """``questions.toml`` of a language: its names of columns, and how a cell says yes or no."""

    topic: ClassVar[str] = "questions"

    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field -> names. Also ``answerable``, the opposite of should_abstain, and ``metadata``."""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


@cache
def known_names() -> Mapping[str, tuple[str, ...]]:
    """Field -> its names in all languages, English first."""
    spoken = [each.rules(QuestionWords).columns for each in catalog()]
    known = (*FIELDS, "answerable", "metadata")
    return {field: tuple(name for one in spoken for name in one.get(field, ())) for field in known}


_INPUTS = {"vars", "inputs", "input"}  # promptfoo, LangSmith
_OUTPUTS = {"outputs", "output"}
_REFERENCE_OUTPUTS = {"referenceoutputs", "referenceoutput", "expectations"}  # the last of MLflow
_OPENED = _INPUTS | _OUTPUTS | _REFERENCE_OUTPUTS
# Next to these names of DeepEval, ``context`` is the ideal context; elsewhere it is what was retrieved.
_DEEPEVAL = {"retrievalcontext", "actualoutput", "expectedoutput"}
_SAVED_BY_DEEPEVAL = {"input", "expectedoutput", "sourcefile", "toolscalled"}
# Unrelated names that are spelt much like ours.
# Common names that are one or two letters away from a known one.
_NOT_MISSPELT = {"content", "contents", "document", "contest", "references_url", "label"}
_OUTPUT = re.compile(r"\[[^\]]+\] .*", re.DOTALL)
"""``[provider] prompt``: the header of the outputs in a CSV by promptfoo."""


@lru_cache(maxsize=4096)  # the same few names in every row
def normal(name: str) -> str:
    """A column name without case, spaces and separators."""
    return re.sub(r"[\s_.\-\u200b\ufeff]+", "", unicodedata.normalize("NFKC", name).casefold())


@cache
def _field_of() -> Mapping[str, str]:
    return {normal(name): target for target, spoken in known_names().items() for name in spoken}


@cache
def _threshold() -> re.Pattern[str]:
    """``threshold_faithfulness``: a name of the thresholds, a separator and a metric."""
    words = "|".join(sorted(map(re.escape, known_names()["thresholds"]), key=len, reverse=True))
    return re.compile(rf"(?:{words})[\s_.:\-]+(\S.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Resolution:
    """What each column of a row is, by the file's own names.

    ``fields`` maps a column to our field, ``thresholds.METRIC`` or ``metadata.NAME``;
    ``problems`` says what is wrong with the names.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


def flatten(cells: Mapping[str, Any], mapped: Mapping[str, str]) -> dict[str, Any]:
    """Cells with promptfoo's ``vars`` and LangSmith's ``inputs`` and ``outputs`` as columns: ``inputs.question``.

    Objects that the caller's mapping reaches into by a dotted name become columns, too. All other cells stay
    as they are: an answer that happens to be JSON is text.
    """
    roots = {name.partition(".")[0] for name in mapped.values() if "." in name}
    flat: dict[str, Any] = {}
    for name, value in cells.items():
        if isinstance(value, str) and value.startswith("{") and normal(name) in _OPENED:
            value = _opened(value)  # noqa: PLW2901 - LangSmith's CSV has its objects as JSON
        if isinstance(value, Mapping) and (normal(name) in _OPENED or name in roots):
            flat.update({f"{name}.{inner}": item for inner, item in value.items()})
        else:
            flat[name] = value
    return flat


def _opened(text: str) -> Any:
    """The object whose JSON is in a cell; the text itself where it isn't an object."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, dict) else text


def saved_by_deepeval(names: Sequence[str]) -> bool:
    """Whether these are the columns that ``EvaluationDataset.save_as`` of DeepEval writes."""
    return {normal(name) for name in names} >= _SAVED_BY_DEEPEVAL


def has_question(names: Sequence[str], mapped: Mapping[str, str]) -> bool:
    """Whether one of the names is the question's."""
    wanted = mapped.get("question")
    stripped = [name.strip() for name in names]
    if wanted is not None:
        return _find(wanted, stripped) is not None
    return any(_known(name, stripped) == "question" for name in stripped)


def resolve(names: Sequence[str], mapped: Mapping[str, str]) -> Resolution:
    """What the columns are; the caller's mapping comes before the known names."""
    fields: dict[str, str] = {}
    problems: list[str] = []
    for ours, theirs in mapped.items():
        column = _find(theirs, names)
        if column is not None:
            fields[column] = ours
    taken = {*fields.values()}
    for name in names:
        if name in fields:
            continue
        target = _known(name, names)
        if target is None:
            likely = near_miss(name)
            if likely is not None:
                problems.append(
                    f"unknown column {name!r}: did you mean {likely!r}? "
                    f"Or map it: columns={{{_target(likely)!r}: {name!r}}}, "
                    f"or columns={{'metadata.{name}': {name!r}}} to keep it as it is"
                )
            target = f"metadata.{_inner(name)}"
        # What the caller maps explicitly decides; a second candidate by name is then only metadata.
        elif target in taken or (target == "answerable" and "should_abstain" in taken):
            target = f"metadata.{name}"
        fields[name] = target
    problems += _doubles(fields)
    return Resolution(fields, tuple(problems))


def _target(known: str) -> str:
    """The field of a name that :func:`near_miss` returned."""
    return _field_of().get(normal(known)) or f"thresholds.{known.partition('_')[2]}"


def _doubles(fields: Mapping[str, str]) -> Iterator[str]:
    """A message for each field that several columns claim."""
    claims: dict[str, list[str]] = {}
    for column, target in fields.items():
        claims.setdefault("should_abstain" if target == "answerable" else target, []).append(column)
    for target, columns in claims.items():
        if len(columns) > 1:
            shown = " and ".join(map(repr, columns))
            yield (
                f"columns {shown} both hold the {target}: remove one, "
                f"or say which it is: columns={{{target!r}: {columns[0]!r}}}"
            )


def _find(wanted: str, names: Sequence[str]) -> str | None:
    """The column that the caller named: exactly, or else by its normal form."""
    if wanted in names:
        return wanted
    return next((name for name in names if normal(name) == normal(wanted)), None)


def _known(name: str, names: Sequence[str]) -> str | None:
    """The field that a name means next to the others; None where it is unknown."""
    if name.startswith("__"):  # promptfoo's __expected and the like
        return None
    plain = normal(name)
    if _OUTPUT.fullmatch(name) and {"Status", "Score", "Named Scores"} <= set(names):
        return "answer" if sum(_OUTPUT.fullmatch(other) is not None for other in names) == 1 else None
    if plain == "context":
        return "reference_contexts" if _DEEPEVAL & {normal(other) for other in names} else "contexts"
    if plain in _field_of():
        return _field_of()[plain]
    if plain == "outputs" and _judged(names):  # a bare string in MLflow's tables
        return "answer"
    if plain == "expect":  # of *.rag.yaml tests
        return "metadata.expect"
    if match := _threshold().fullmatch(name.strip()):
        return f"thresholds.{match[1].strip()}"
    root, dot, inner = name.partition(".")
    return _nested(normal(root), inner, names) if dot else None


def _nested(root: str, inner: str, names: Sequence[str]) -> str | None:
    """The field of a name inside ``vars``, ``inputs``, ``outputs`` or ``reference_outputs``."""
    if root not in _INPUTS | _OUTPUTS | _REFERENCE_OUTPUTS:
        return None
    target = _known(inner, names)
    if target != "answer" or root in _INPUTS:
        return target
    # The outputs of a LangSmith example are the right ones, unless it has reference outputs as well.
    return "answer" if _judged(names) and root in _OUTPUTS else "reference"


def _judged(names: Sequence[str]) -> bool:
    """Whether the columns hold what the outputs should be, so that ``outputs`` is what they are."""
    return any(normal(other.partition(".")[0]) in _REFERENCE_OUTPUTS for other in names)


def _inner(name: str) -> str:
    root, dot, inner = name.partition(".")
    return inner if dot and normal(root) in _INPUTS | _OUTPUTS | _REFERENCE_OUTPUTS else name


@lru_cache(maxsize=4096)  # rows of JSON lines repeat their names
def near_miss(name: str) -> str | None:
    """The known name that an unknown one is most likely a misspelling of, or None.

    Compared word by word, because ``question_type`` and ``reference_url`` are other names than ``question`` and
    ``reference``, although they share most letters.
    """
    inner = _inner(name)
    if inner.startswith("__") or normal(inner) in _NOT_MISSPELT:
        return None
    words = _words(inner)
    # A misspelt metric behind the word is found later, where the metrics are known.
    if len(words) > 1 and _close(words[0], "threshold"):
        return f"threshold_{'_'.join(words[1:])}"
    known = [other for spoken in known_names().values() for other in spoken]
    alike = [other for other in known if _alike(words, _words(other))]
    joined = get_close_matches(normal(inner), [normal(other) for other in alike], n=1, cutoff=0.0)
    return next((other for other in alike if joined and normal(other) == joined[0]), None)


@lru_cache(maxsize=4096)  # the known names are compared with every unknown one
def _words(name: str) -> tuple[str, ...]:
    spaced = re.sub(r"(?<=[a-zа-яё0-9])(?=[A-ZА-ЯЁ])", " ", unicodedata.normalize("NFKC", name))
    return tuple(word for word in re.split(r"[\s_.\-]+", spaced.casefold()) if word)


def _alike(words: Sequence[str], others: Sequence[str]) -> bool:
    if len(words) == len(others):
        return all(map(_close, words, others))
    # Words may be run together, as in "groundtruht"; then one of the two names is a single word.
    if 1 not in (len(words), len(others)):
        return False
    if others and words and len(words) > len(others) and _close(words[0], others[0]):
        return False
    return len("".join(words)) >= 8 and _close("".join(words), "".join(others))


def _close(word: str, other: str) -> bool:
    if word == other or word.rstrip("s") == other.rstrip("s"):
        return True
    # Short words are too close to each other: "id" isn't a typo of "qid".
    if min(len(word), len(other)) < 4 or abs(len(word) - len(other)) > 2:
        return False
    return SequenceMatcher(None, word, other, autojunk=False).ratio() >= 0.8
