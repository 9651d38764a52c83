"""Replies with status 200 that say themselves that they failed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pytest_ragbench.rag.names import WRAPPERS, get

_MAX_DEPTH = 3
_MESSAGES = (
    "message", "msg", "error_msg", "error_message", "errmsg", "err_msg", "status_msg", "status_message", "detail",
    "details", "error_description", "description", "reason", "title", "text",
)  # fmt: skip
_SUCCESS = ("success", "ok", "succeeded", "successful", "is_success", "is_ok")
_FAILED = ("is_error", "has_error", "failed", "is_failed")
# Whatever is under these is an error; 0, 200 and words for success say that there was none.
_ERROR_CODES = ("error_code", "errcode", "err_code", "error_no", "errno", "err_no")
_CODES = (
    "code",
    "status_code",
    "status",
    "http_status",
    "http_code",
    "ret_code",
    "result_code",
    "return_code",
)
_NO = frozenset({"false", "no", "0", "n", "off", "fail", "failed", "failure", "error"})
_FINE = frozenset(
    {"", "0", "00", "000", "0000", "00000", "200", "ok", "success", "successful", "succeeded", "succeed", "done",
     "completed", "complete", "finished", "none", "null", "no_error", "noerror", "false", "成功", "успешно", "正常"}
)  # fmt: skip
_FAILURE = re.compile(
    r"(?:^|[\W_])(?:err(?:or)?|fail(?:ed|ure)?|exception|timed?[ _-]?out|unavailable|denied|unauthori[sz]ed|forbidden"
    r"|not[ _-]found|exceeded|aborted|cancell?ed|invalid|internal[ _-]server[ _-]error|ko)(?:$|[\W_])",
    re.IGNORECASE,
)
_DOUBTFUL = re.compile(
    r" is (?=.*[a-z])(?!.*(?:err|fail|exception|false|true|\bno\b|\boff\b))", re.IGNORECASE
)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong. ``certain``: whatever else the reply holds is not an answer."""

    message: str
    certain: bool = False


def failure_in(reply: Any) -> Failure | None:
    """What a reply says went wrong, itself or the object that it wraps; None where it says nothing of the kind."""
    for depth, each in _layers(reply, 0):
        if (failure := _of_one(each)) is not None:
            # What is wrapped may be a step that failed beside an answer.
            return failure if depth == 0 else replace(failure, certain=False)
    return None


def _layers(value: Any, depth: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if not isinstance(value, Mapping) or depth > _MAX_DEPTH:
        return
    yield depth, value
    for name in WRAPPERS:
        yield from _layers(get(value, name), depth + 1)


def _of_one(reply: Mapping[str, Any]) -> Failure | None:
    for name in ("error", "errors", "exception", "fault"):
        found = get(reply, name)
        if _is_error(found):
            return Failure(_said(found if isinstance(found, Mapping) else reply, str(found)))
    failing = _failing(reply)
    if failing is None:
        return None
    # Words such as "not_found" stand beside an answer as well: that nothing was found.
    certain = not _DOUBTFUL.search(failing)
    return Failure(_said(reply, failing), certain=certain)


def _is_error(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() not in _FINE
    if isinstance(value, bool):
        return False  # true is looked at beside what else the reply says
    if isinstance(value, Mapping):
        told = [value.get(name) for name in ("code", "message", "msg", "detail", "type")]
        return bool(value) and (all(each is None for each in told) or any(map(_is_error, told)))
    return bool(value) and value != 200


def _failing(reply: Mapping[str, Any]) -> str | None:
    """The key and value by which a reply says that it failed."""
    for name in _SUCCESS:
        if _is_no(found := get(reply, name)):
            return f"{name} is {_shown(found)}"
    for name in ("error", *_FAILED):
        found = get(reply, name)
        if found is True or (isinstance(found, str) and name != "error" and found.casefold() == "true"):
            return f"{name} is true"
    for name in _ERROR_CODES:
        found = get(reply, name)
        if found is not None and not isinstance(found, bool) and str(found).strip().casefold() not in _FINE:
            return f"{name} is {_shown(found)}"
    for name in _CODES:
        if _is_failing_code(found := get(reply, name)):
            return f"{name} is {_shown(found)}"
    for name in ("type", "event", "state", "object"):
        found = get(reply, name)
        if isinstance(found, str) and found.casefold() in ("error", "failed", "failure"):
            return f"{name} is {found}"
    return None


def _is_no(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() in _NO
    return isinstance(value, (bool, int)) and value == 0


def _is_failing_code(value: Any) -> bool:
    if isinstance(value, str):
        word = value.strip()
        if re.fullmatch(r"-?\d+", word):
            value = int(word[:12])
        else:
            spaced = _CAMEL.sub(" ", word)
            return len(word) <= 60 and word.casefold() not in _FINE and _FAILURE.search(spaced) is not None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    # Services number their own errors: 40001, 50012, -1. Others count what they like in a code below 400.
    return 400 <= value < 600 or 40_000 <= value < 60_000 or value < 0


def _said(reply: Mapping[str, Any], otherwise: str) -> str:
    told = (get(reply, name) for name in _MESSAGES)
    message = next((text for text in told if isinstance(text, str) and text.strip()), None)
    return (message or otherwise)[:200]


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:60]


def without_status(reply: Mapping[str, Any], text: str) -> str | None:
    """The text found in a reply, where it is the answer; None where it is a message about the reply.

    A message is about the reply where it just says "ok", or the data that it comes with is empty. Data that is a
    string is the answer then.
    """
    for _, each in _layers(reply, 0):
        if get(each, "message") != text:
            continue
        data = [get(each, name) for name in WRAPPERS if name in each]
        says_ok = text.strip().rstrip(".!").casefold() in _FINE
        if says_ok or any(value in (None, "", [], {}) for value in data):
            return next((value for value in data if isinstance(value, str) and value.strip()), None)
    return text
