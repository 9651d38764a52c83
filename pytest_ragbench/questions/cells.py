"""The value of one cell, by field: strict wherever guessing could change what is tested."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from pytest_ragbench.languages import catalog
from pytest_ragbench.model.errors import QuestionFileError
from pytest_ragbench.model.scores import plain
from pytest_ragbench.questions.columns import QuestionWords
from pytest_ragbench.questions.contexts import literal, parse_contexts

# Line ends first: ids in one cell of a spreadsheet are often a list with a line each.
_SEPARATORS = ("\n", ";", "|", ",")


def text(value: Any) -> str | None:
    """A string as written; numbers as the file has them. None stays None."""
    if value is None or isinstance(value, str):
        return _whole(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _number(value)
    raise QuestionFileError(f"must be text, got {_shown(value)}; if it is meant as text, put it in quotes")


def reference(value: Any) -> str | None:
    """A string, or a list of one (``ground_truths`` of early RAGAS)."""
    if isinstance(value, list):
        if len(value) != 1:
            raise QuestionFileError(f"must be one string, got a list of {len(value)}")
        return text(value[0])
    return text(value)


def name(value: Any) -> str | None:
    """A short string (id, language, session), stripped; blank counts as not given."""
    found = text(value)
    return (found.strip() or None) if found is not None else None


def flag(value: Any) -> bool | None:
    """Yes or no, as 1 and 0 or in the words of any known language; anything else is an error."""
    if value is None or isinstance(value, bool):
        return value
    written = _number(value) if isinstance(value, (int, float)) else value
    words = [each.rules(QuestionWords) for each in catalog()]
    if isinstance(written, str):
        word = written.strip().casefold()
        if not word:
            return None
        for spoken in words:
            if word in spoken.yes or word in spoken.no:
                return word in spoken.yes
    pairs = ["1/0", *(f"{spoken.yes[0]}/{spoken.no[0]}" for spoken in words if spoken.yes and spoken.no)]
    raise QuestionFileError(f"must be true or false ({', '.join(pairs)}), got {_shown(value)}")


def contexts(value: Any) -> tuple[str, ...] | None:
    """A list of strings, or a cell for :func:`parse_contexts`."""
    if value is None:
        return None
    if isinstance(value, str):
        value = parse_contexts(value)
    if not isinstance(value, list):
        raise QuestionFileError(f"must be a list of strings, got {_shown(value)}")
    for number, item in enumerate(value):
        if not isinstance(item, str):
            raise QuestionFileError(f"item {number} must be a string, got {_shown(item)}")
        _whole(item)
    return tuple(value)


def id_list(value: Any) -> tuple[str, ...] | None:
    """Ids: a list, the text of a list, or ids separated by line ends, ``;``, ``|`` or ``,``."""
    return None if value is None else tuple(_items(value))


def relevance(value: Any) -> dict[str, float] | None:
    """Ids with grades: ``{id: grade}`` or its text, or ids as in :func:`id_list`, of grade 1 each."""
    if value is None:
        return None
    if isinstance(value, str) and value.strip().startswith("{"):
        value = _written(value)
    if not isinstance(value, Mapping):
        return dict.fromkeys(_items(value), 1.0)
    # A grade may be any finite number: qrels use -1 and 0 for documents judged not relevant.
    grades: dict[str, float] = {}
    for key, grade in value.items():
        try:
            number = math.nan if isinstance(grade, bool) else float(grade)
        except (TypeError, ValueError):
            number = math.nan
        if not math.isfinite(number):
            raise QuestionFileError(f"the grade of {key!r} must be a finite number, got {_shown(grade)}")
        grades[str(key).strip()] = number
    return grades


def url_list(value: Any) -> tuple[str, ...] | None:
    """URLs: a list or its text, or URLs separated by white space, ``;``, ``|`` or ``,``."""
    if isinstance(value, str) and not value.strip().startswith("["):
        # A URL may hold the other separators, so they only count where the next URL starts behind them.
        parts = re.split(r"[;|,]?\s+|[;|,](?=[a-zA-Z][\w+.-]*://|/)", value.strip())
        return tuple(part for part in parts if part)
    return None if value is None else tuple(_items(value))


def tags(value: Any) -> tuple[str, ...] | None:
    """Tags: a list or its text, or words separated by ``,`` or ``;``; repeats are dropped."""
    if value is None:
        return None
    if isinstance(value, str) and not value.strip().startswith("["):
        # Spreadsheets in Japanese and Chinese have full-width separators.
        value = re.sub(r"[;\n、，；]", ",", value)
    return tuple(dict.fromkeys(_items(value, (",",))))


def thresholds(value: Any) -> dict[str, str] | None:
    """``{metric: threshold}``, or its JSON."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        value = _written(value) if value.strip().startswith("{") else value
    if not isinstance(value, Mapping):
        raise QuestionFileError(
            f'must be an object as {{"faithfulness": ">=0.8"}}, got {_shown(value)}; '
            "or name the column threshold_faithfulness"
        )
    # As written: a threshold's range is checked later, where the metric is known.
    found = {str(metric).strip(): name(limit) for metric, limit in value.items()}
    return {metric: limit for metric, limit in found.items() if limit is not None}


def metadata(value: Any) -> dict[str, Any] | None:
    """Any object, or its JSON."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str) and value.strip().startswith("{"):
        value = _written(value)
    if not isinstance(value, Mapping):
        raise QuestionFileError(f"must be an object, got {_shown(value)}")
    found: dict[str, Any] = plain(value)
    return found


READ: dict[str, Callable[[Any], Any]] = {
    "id": name,
    "question": text,
    "answer": text,
    "reference": reference,
    "contexts": contexts,
    "reference_contexts": contexts,
    "context_ids": id_list,
    "relevant_ids": relevance,
    "context_urls": url_list,
    "relevant_urls": url_list,
    "lang": name,
    "must_pass": flag,
    "should_abstain": flag,
    "answerable": flag,
    "thresholds": thresholds,
    "tags": tags,
    "session": name,
    "cluster": name,
    "metadata": metadata,
}
"""Field -> how its cell is read. Raises QuestionFileError without file and line, which the mapper adds."""


def _items(value: Any, separators: tuple[str, ...] = _SEPARATORS) -> list[str]:
    if isinstance(value, str):
        content = value.strip()
        if content.startswith("[") and content.endswith("]"):
            value = _written(content)
        else:
            # Only the first separator that occurs splits: "a, b; c" is "a, b" and "c".
            mark = next((mark for mark in separators if mark in content), None)
            parts = content.split(mark) if mark else [content]
            return [part.strip() for part in parts if part.strip()]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, (list, tuple)):
        raise QuestionFileError(f"must be a list of ids or tags, got {_shown(value)}")
    found = []
    for number, item in enumerate(value):
        word = name(item) if not isinstance(item, (list, Mapping)) else None
        if word is None:
            raise QuestionFileError(f"item {number} must be a string, got {_shown(item)}")
        found.append(word)
    return found


def _written(value: str) -> Any:
    """The list or object whose text, in JSON or Python, is in a cell."""
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        # Python would join 'a' 'b' (as numpy writes arrays) into one string, so a missing comma is refused.
        joins = re.search(r"""['"]\s+['"]""", value)
    if not joins and (found := literal(value.strip())) is not None:
        return found
    raise QuestionFileError(f"can't be read as a list or object: {value[:60]!r}")


def _number(value: float) -> str:
    """A number as its file wrote it, where the reader kept that."""
    written: str | None = getattr(value, "text", None)
    return written if written is not None else str(value)


def _whole(value: str | None) -> str | None:
    if value is not None:
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise QuestionFileError(
                "holds half of a surrogate pair (\\ud800 ...), which is not a character"
            ) from None
    return value


def _shown(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", bool: "true or false", type(None): "null"}
    return f"{kinds.get(type(value), type(value).__name__)} ({value!r:.60})"
