"""Where a question goes: URL and body with the question filled in, right on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.secrets import fingerprint, fingerprinted, is_secret_name, secrets_in
from pytest_ragbench.settings import RagSettings

_PLACEHOLDER = re.compile(r"(?:\{|%7B)(\w+)(?:\}|%7D)", re.IGNORECASE)
_NAMES = {"text", "question", "questions", "query"}
_KEPT = "/%:@!$&'()*+,;=~-._?{}"
_BODY_PLACEHOLDER = "{question}"
_SESSION = "{session}"
_FILLED = re.compile(r"\{question\}|\{session\}")


@dataclass(frozen=True)
class Target:
    """One request's shape. ``pieces`` are the URL's fixed parts: the question goes between them."""

    method: str
    pieces: tuple[str, ...] = field(repr=False)  # may hold a key
    shown: str
    """For messages: path included, query values cut."""
    key_pieces: tuple[str, ...]
    """As ``pieces``, with secret query values replaced by fingerprints."""
    secrets: tuple[str, ...] = field(repr=False)
    body: Any = field(default=None, repr=False)
    session_parameter: str | None = None

    @property
    def tells_session(self) -> bool:
        """Whether the service is told which conversation a question belongs to."""
        return self.session_parameter is not None or _mentions(self.body, _SESSION)

    def url(self, question: str, session: str | None = None) -> str:
        """The whole URL, percent-encoded; spaces are ``%20``."""
        return self._with_session(_encoded(question).join(self.pieces), session)

    def key_url(self, question: str, session: str | None = None) -> str:
        return self._with_session(_encoded(question).join(self.key_pieces), session)

    def _with_session(self, url: str, session: str | None) -> str:
        if self.session_parameter is None or session is None:
            return url
        return f"{url}{'&' if '?' in url else '?'}{_encoded(self.session_parameter)}={_encoded(session)}"

    def filled_body(self, question: str, session: str | None = None) -> Any:
        """The JSON body with ``{question}`` and ``{session}`` replaced inside every string, or None."""
        return _filled(self.body, {_BODY_PLACEHOLDER: question, _SESSION: session or ""})

    def key_body(self, question: str, session: str | None = None) -> Any:
        """As :meth:`filled_body`, with secret values replaced by fingerprints."""
        return _filled(fingerprinted(self.body), {_BODY_PLACEHOLDER: question, _SESSION: session or ""})


def target_of(settings: RagSettings) -> Target:
    """Read URL, path, parameter and body template.

    Raises
    ------
    UsageError
        Where there is no URL, or the question would go nowhere.
    """
    if not settings.url:
        raise UsageError(
            "no RAG service to ask: give --rag-url URL, set RAGBENCH_RAG_URL, or write url under "
            "[tool.ragbench.rag]; or override the 'retriever' fixture with a callable"
        )
    url = _joined(settings)
    _check_placeholders(url)
    body = _body(settings)
    in_body = body is not None and _mentions(body)
    wants_parameter = settings.parameter is not None and (
        "parameter" in settings.model_fields_set or not in_body
    )
    if not _PLACEHOLDER.search(url) and wants_parameter:
        url = _with_parameter(url, str(settings.parameter))
    elif not _PLACEHOLDER.search(url) and not in_body:
        raise UsageError(
            f"rag: the question goes nowhere in {settings.method} {_shown(url)}: set rag.parameter, or write "
            f"{{question}} into the path or rag.body"
        )
    ready = _ascii(url)
    return Target(
        settings.method,
        _split(ready),
        _shown(ready),
        _split(_masked(ready)),
        (
            *(value for name, value in parse_qsl(urlsplit(ready).query) if is_secret_name(name)),
            *secrets_in(body),
        ),
        body,
        settings.session_parameter,
    )


def _joined(settings: RagSettings) -> str:
    """``url`` and ``path``, unless the URL is whole already."""
    url, path = str(settings.url), settings.path
    parts = urlsplit(url)
    # Users paste the URL from their browser as often as they configure base and path.
    whole = (
        not path.strip("/")
        or _PLACEHOLDER.search(url)
        or (settings.parameter and _has_parameter(parts.query, settings.parameter))
    )
    if whole:
        return url.partition("#")[0]
    below, _, more = path.partition("?")
    query = "&".join(part for part in (parts.query, more) if part)
    full = parts.path.rstrip("/")
    if not full.endswith("/" + below.strip("/")):
        full = f"{full}/{below.lstrip('/')}"
    joined = f"{parts.scheme}://{parts.netloc}{full}"
    return f"{joined}?{query}" if query else joined


def _has_parameter(query: str, name: str) -> bool:
    return any(unquote(part.partition("=")[0]) == name for part in query.split("&"))


def _with_parameter(url: str, name: str) -> str:
    """The question as the only parameter of that name, all others kept as they were written."""
    base, _, query = url.partition("?")
    # Not parse_qsl and urlencode: they would change how the other parameters are written.
    kept = [part for part in query.split("&") if part and unquote(part.partition("=")[0]) != name]
    return f"{base}?{'&'.join([*kept, quote(name, safe='') + '={question}'])}"


def _check_placeholders(url: str) -> None:
    for found in _PLACEHOLDER.finditer(url):
        if found[1].lower() not in _NAMES:
            raise UsageError(f"rag: {found[0]} in {_shown(url)} is not known; write {{question}} there")
    host = urlsplit(url).netloc
    if _PLACEHOLDER.search(host):
        raise UsageError(f"rag: the question can't be part of the host name {host!r}")


def _ascii(url: str) -> str:
    """Percent-encode what may not stand in a URL; what is encoded stays as it is."""
    parts = urlsplit(url)
    try:
        # The host goes into DNS and the Host header, where only ASCII is allowed.
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode("ascii")
    except UnicodeError:
        raise UsageError(f"rag.url: {parts.netloc!r} is not a valid host name") from None
    rest = url[len(f"{parts.scheme}://{parts.netloc}") :]
    # Braces must survive the quoting: the question is filled in afterwards, for each call.
    marked = _PLACEHOLDER.sub("{question}", rest)
    return f"{parts.scheme}://{host}{quote(marked, safe=_KEPT)}"


def _split(url: str) -> tuple[str, ...]:
    return tuple(url.split("{question}"))


def _shown(url: str) -> str:
    base, _, query = url.partition("?")
    names = [part.partition("=")[0] for part in query.split("&") if part]
    return base + ("?" + "&".join(f"{name}=..." for name in names) if names else "")


def _masked(url: str) -> str:
    base, mark, query = url.partition("?")
    parts = []
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        # A key that changes must not make stored answers useless, and must not be in any store.
        secret = is_secret_name(unquote(name)) and "{question}" not in value
        parts.append(f"{name}={fingerprint(value)}" if secret else name + equals + value)
    return base + mark + "&".join(parts)


def _encoded(question: str) -> str:
    try:
        return quote(question, safe="")
    except UnicodeEncodeError as error:
        raise UsageError(
            f"question {question[:40]!r} holds half of a surrogate pair at position {error.start} "
            f"and can't be sent; repair it in the question file"
        ) from None


def _body(settings: RagSettings) -> Any:
    """The template; a string that holds a JSON object or list (from a variable) is parsed."""
    body = settings.body
    if isinstance(body, str):
        try:
            # A variable can only hold a string, so RAGBENCH_RAG__BODY is JSON.
            read = json.loads(body)
        except ValueError:
            return body
        return read if isinstance(read, (dict, list)) else body
    return body


def _mentions(template: Any, placeholder: str = _BODY_PLACEHOLDER) -> bool:
    if isinstance(template, str):
        return placeholder in template
    if isinstance(template, dict):
        return any(_mentions(value, placeholder) for value in template.values())
    return isinstance(template, (list, tuple)) and any(_mentions(value, placeholder) for value in template)


def _filled(template: Any, values: Mapping[str, str]) -> Any:
    # Not str.format: other braces of the template (JSON, prompts) stay untouched; nor one replacement after
    # the other: a question may hold the text "{session}".
    if isinstance(template, str):
        return _FILLED.sub(lambda found: values[found[0]], template)
    if isinstance(template, dict):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, (list, tuple)):
        return [_filled(value, values) for value in template]
    return template
