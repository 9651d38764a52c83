"""What a service's error says: code, message and parameter, in whatever shape services and gateways send it.

Only what the error itself says counts. Gateways put another service's error inside their own, and some
services send the refused request back; the request's own words must not be taken for a complaint.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

_MAX_DEPTH = 8
# Keys of a chat request: an object that has one of them, within an error, is the request sent back.
_REQUEST_KEYS = frozenset({"messages", "response_format", "max_tokens", "max_completion_tokens", "prompt"})
_MESSAGES = ("message", "msg", "detail", "error_msg", "errmsg", "error_message", "errors", "reason", "title")
_ECHO = re.compile(
    r"""['"]?\b(?:messages|input_value|request_body|prompt)\b['"]?\s*[:=]
      | ['"]?\b(?:inputs?|request(?:\ body)?|body|payload|params|received|got)\b['"]?\s*[:=]?\s*[\[{]""",
    re.VERBOSE | re.IGNORECASE,
)
_INPUT_VALUE = re.compile(r"input_value=.*?input_type=\w+", re.DOTALL)
_STATUS_CODES = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "resource_exhausted": 429,
    "too_many_requests": 429,
    "overloaded_error": 503,
    "overloaded": 503,
    "service_unavailable": 503,
    "unavailable": 503,
    "internal_error": 500,
    "internal_server_error": 500,
    "server_error": 500,
    "timeout": 408,
}
_NO_MONEY_CODES = frozenset(
    {
        "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "exceeded_current_quota_error",
        "exceeded_current_quota", "insufficient_balance", "insufficient_balance_error", "insufficient_credits",
        "insufficient_user_quota", "insufficient_funds", "quota_exhausted", "credit_exhausted", "payment_required",
        "arrearage", "accountoverdueerror", "account_overdue", "1113",
    }
)  # fmt: skip
# Words about an account's money. A quota by the minute is also called quota, so that word alone says nothing.
_NO_MONEY = re.compile(
    r"insufficient (?:account )?(?:balance|funds|credits?)"
    r"|(?:credit |account )?balance (?:is |was )?(?:too low|not enough|insufficient|exhausted|used up)"
    r"|(?:out of|no|not enough|any|requires more|used all (?:\w+ )?(?:available )?) ?credits\b"
    r"|account .{0,80}?(?:suspended|overdue|in arrears|not in good standing|in good standing)"
    r"|check your account balance|(?:recharge|top[ -]up) (?:your|the) "
    r"|余额不足|余额已|欠费|请充值|недостаточно средств|баланс исчерпан|残高(?:が)?(?:不足|足り)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ServiceError:
    """A service's error, taken apart. ``message`` is what it says, without what it repeats of the request."""

    code: str = ""
    message: str = ""
    param: str = ""
    status: int | None = None
    """The HTTP status that the error itself names, for one that came with another."""

    @property
    def no_money(self) -> bool:
        """Whether the account has no quota left, which no waiting cures."""
        return (
            self.code.casefold() in _NO_MONEY_CODES
            or self.status == 402
            or _NO_MONEY.search(self.message) is not None
        )


def service_error(body: str) -> ServiceError:
    """The error in a reply's body; a body that is something else is the message."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return _read(body)
    return _read(value)


def read_error(value: Any, around: Mapping[str, Any] | None = None) -> ServiceError | None:
    """The error under a reply's key ``error``; None where that says that there was none.

    ``around``: the object with that key, which may name the status.
    """
    if isinstance(value, Mapping):
        told = [value.get(name) for name in ("code", "message", "type", "status", "metadata")]
        wrong = any(each not in _FINE for each in told)
    else:
        wrong = value.strip().casefold() not in _FINE if isinstance(value, str) else bool(value)
    return _completed(_read(value), around or {}) if wrong else None


def error_without_key(reply: Mapping[str, Any]) -> ServiceError | None:
    """The error that a reply is by itself: ``{"code": "429", "message": ...}``."""
    found = _read(reply)
    return found if found.status is not None or found.no_money else None


_FINE = (None, "", 0, 200, "0", "200", "ok", "success", "none", "null", "false")


def _read(value: Any, depth: int = 0) -> ServiceError:
    if isinstance(value, str):
        return _of_text(value, depth)
    if isinstance(value, list):
        return _of_list(value, depth)
    if not isinstance(value, Mapping):
        return ServiceError(message=str(value))
    inner = value.get("error")
    if depth < _MAX_DEPTH and isinstance(inner, (Mapping, list, str)) and inner:
        found = _read(inner, depth + 1)
        # Some tell the words beside: {"error": "Bad Request", "message": "temperature is not supported"}.
        beside = value.get("message")
        if isinstance(inner, str) and isinstance(beside, str):
            found = replace(found, message=f"{found.message}: {_without_echo(beside)}")
        return _completed(found, value)
    return _of_object(value, depth)


def _completed(found: ServiceError, around: Mapping[str, Any]) -> ServiceError:
    """The inner error, with a status that only the object around it names."""
    return found if found.status is not None else replace(found, status=_status_in(around))


def _of_object(error: Mapping[str, Any], depth: int) -> ServiceError:
    # FastAPI's form of one problem: where, and what. Its `input` is what was sent.
    if "loc" in error and "msg" in error:
        path = [str(part) for part in error["loc"]] if isinstance(error["loc"], (list, tuple)) else []
        param = ".".join(part for part in path if part != "body")
        said = _of_text(str(error["msg"]), depth)
        return replace(
            said, param=said.param or param, message=f"{param}: {said.message}" if param else said.message
        )
    said = ServiceError()
    for name in _MESSAGES:
        told = error.get(name)
        if told and isinstance(told, (str, list, Mapping)) and depth < _MAX_DEPTH:
            said = _read(told, depth + 1)
            break
    # OpenAI tells the reason in `code`, some gateways only in `type`.
    codes = [str(error[name]) for name in ("code", "type", "error_code") if error.get(name)]
    code = next((each for each in codes if each.casefold() in _NO_MONEY_CODES), codes[0] if codes else "")
    if said.code and (not code or code.isdigit()):
        code = said.code
    named = error.get("param")
    found = ServiceError(
        code,
        said.message,
        said.param or (named if isinstance(named, str) and named.casefold() != "none" else ""),
        _status_in(error) or said.status,
    )
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, Mapping) else None
    if raw and depth < _MAX_DEPTH:
        behind = service_error(raw) if isinstance(raw, str) else _read(raw, depth + 1)
        found = ServiceError(
            behind.code or found.code,
            f"{found.message}: {behind.message}" if found.message else behind.message,
            behind.param or found.param,
            found.status or behind.status,
        )
    return found


def _of_list(errors: list[Any], depth: int) -> ServiceError:
    found = [_read(each, depth + 1) for each in errors[:5]] if depth < _MAX_DEPTH else []
    if not found:
        return ServiceError()
    first = next((each for each in found if each.param), found[0])
    return replace(first, message="; ".join(each.message for each in found))


def _of_text(text: str, depth: int) -> ServiceError:
    """Prose, which may hold another service's error as JSON or as Python prints it."""
    if depth >= _MAX_DEPTH:
        return ServiceError(message=text[:2000])
    for start, end, value in _objects(text):
        if _is_error(value):
            inner = _read(value, depth + 1)
            around = _without_echo(text[:start]).rstrip(" -:")
            after = _without_echo(text[end:]).strip()
            return replace(inner, message=" ".join(part for part in (around, inner.message, after) if part))
    return ServiceError(message=_without_echo(text))


def _is_error(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, Mapping) and "msg" in each for each in value)
    if not isinstance(value, Mapping) or _REQUEST_KEYS & value.keys():
        return False
    return "error" in value or any(isinstance(value.get(name), str) for name in _MESSAGES)


def _objects(text: str) -> Iterator[tuple[int, int, Any]]:
    """The first few objects and lists in prose, JSON or Python."""
    decoder = json.JSONDecoder(strict=False)
    place, tried = 0, 0
    while tried < 5 and (match := re.compile(r"[{\[]\s*[{'\"]").search(text, place)):
        tried += 1
        place = match.start() + 1
        try:
            value, end = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            end = _closed(text, match.start())
            try:
                value = ast.literal_eval(text[match.start() : end])
            except (ValueError, SyntaxError, MemoryError, RecursionError, SystemError, TypeError):
                continue
        place = end
        yield match.start(), end, value


def _closed(text: str, start: int) -> int:
    """Behind the bracket that closes the one at ``start``, quoted strings skipped; the end where none does."""
    depth, quote, place = 0, "", start
    while place < len(text):
        char = text[place]
        if quote:
            place += char == "\\"
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
            if depth == 0:
                return place + 1
        place += 1
    return len(text)


def _without_echo(text: str) -> str:
    """Prose up to where it begins to repeat the request."""
    text = _INPUT_VALUE.sub("", text)
    echo = _ECHO.search(text)
    return text[: echo.start()].rstrip(" ,;({[") if echo else text


def _status_in(error: Mapping[str, Any]) -> int | None:
    for name in ("status_code", "status", "code", "http_status", "type"):
        told = error.get(name)
        if isinstance(told, str):
            told = int(told) if told.strip().isdecimal() else _STATUS_CODES.get(told.casefold())
        if isinstance(told, int) and not isinstance(told, bool) and 400 <= told < 600:
            return told
    return None
