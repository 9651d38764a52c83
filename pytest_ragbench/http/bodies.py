"""Bytes of a reply to text. A guessed alphabet would be judged as the system's answer, so there is no guess."""

from __future__ import annotations

import re

from pytest_ragbench.questions.encodings import marked

_META = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?([\w:-]+)""", re.IGNORECASE)
# JSON is UTF-8 whatever its header says (RFC 8259, section 8.1); so are server-sent events.
_ALWAYS_UTF8 = frozenset({"text/event-stream", "text/json", "application/ndjson", "application/jsonl"}) | {
    "application/x-ndjson",
    "application/x-jsonlines",
}
# Named by servers that know nothing of the text: any bytes fit them, UTF-8 too.
_WESTERN = frozenset(
    {"iso-8859-1", "iso8859-1", "iso_8859-1", "latin-1", "latin1", "l1", "windows-1252", "cp1252"}
) | {
    "iso-8859-15",
    "latin-9",
    "us-ascii",
    "ascii",
}
_OBJECT = re.compile(rb"\s*[\[{]")


class WrongCharset(ValueError):
    """The bytes are not text in the charset that they should be in. The message lacks its beginning."""


def is_json(content_type: str) -> bool:
    """Whether a media type is JSON's."""
    return content_type in ("application/json", "text/json") or content_type.endswith("+json")


def decoded(body: bytes, content_type: str, charset: str | None) -> str:
    """The body as text, without its byte order mark.

    JSON and event streams are UTF-8. Other types are in the charset of the header, else of HTML's head, else
    UTF-8; a byte order mark overrules both.

    Raises
    ------
    WrongCharset
        The bytes are not text in that charset, or plainly in another.
    """
    # A byte order mark can't lie; the header often does.
    mark = marked(body)
    encoding = mark or _named(body, content_type, charset)
    try:
        text = body.decode(encoding or "utf-8")
    except LookupError:
        return decoded(body, "", None)  # an unknown name says nothing
    except UnicodeError as error:  # "idna" and its like raise the base class
        raise WrongCharset(_problem(error, encoding, content_type, charset)) from None
    if encoding is not None and mark is None and encoding.casefold() in _WESTERN and _is_utf8(body):
        raise WrongCharset(f"the body is UTF-8, and not its declared charset {encoding}")
    return text.removeprefix("\ufeff")


def decoded_leniently(body: bytes, content_type: str, charset: str | None) -> str:
    """As :func:`decoded`, for messages: what does not fit is replaced."""
    try:
        return decoded(body, content_type, charset)
    except WrongCharset:
        return body.decode("utf-8", "replace")


def _named(body: bytes, content_type: str, charset: str | None) -> str | None:
    # JSON under another type, as text/plain, is still meant as JSON.
    if is_json(content_type) or content_type in _ALWAYS_UTF8 or (_OBJECT.match(body) and _is_utf8(body)):
        return None
    # HTML declares its charset in its head, where proxies' login pages do, too.
    if charset is None and "html" in content_type and (meta := _META.search(body[:2048])):
        return meta[1].decode("ascii")
    return charset


def _is_utf8(body: bytes) -> bool:
    """Whether bytes beyond ASCII are UTF-8, which they hardly are by chance."""
    if body.isascii():
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _problem(error: UnicodeError, encoding: str | None, content_type: str, charset: str | None) -> str:
    where = f" (byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
    if encoding:
        return f"the body is not its declared charset {encoding}{where}"
    if is_json(content_type) or content_type in _ALWAYS_UTF8:
        declared = (
            f"; the header names the charset {charset}" if charset and charset.casefold() != "utf-8" else ""
        )
        return f"the body is not UTF-8, as {content_type} is{where}{declared}"
    return f"the body is not UTF-8, and names no other charset{where}"
