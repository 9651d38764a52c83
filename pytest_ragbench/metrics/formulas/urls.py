"""When two URLs name the same document."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from pytest_ragbench.text import is_blank

_DEFAULT_PORTS = {"http": 80, "https": 443}


def document_of(url: str) -> str:
    """The URL in a normal form, in which two URLs of one document are equal.

    Dropped are the place inside the page (``#section``), ``http`` or ``https``, the default port, the case of the
    host, a slash at the end and percent-encoding. The query stays, since ``?pageId=7`` names a page, and so does
    a fragment that is a path (``#/guide``, ``#!guide``). Anything that isn't a URL is compared as it is.
    """
    text = unicodedata.normalize("NFC", url.strip())
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return text
    scheme = parts.scheme.lower()
    if not parts.netloc:
        # A path names a document of the service itself; in other text a # may mean anything.
        return _decoded(text.partition("#")[0]) if text.startswith("/") else text
    host = (parts.hostname or "").lower()
    if port is not None and port != _DEFAULT_PORTS.get(scheme):
        host += f":{port}"
    # http and https of one host show the same document.
    start = f"//{host}" if scheme in _DEFAULT_PORTS else f"{scheme}://{host}"
    fragment = f"#{parts.fragment}" if parts.fragment.startswith(("/", "!")) else ""
    query = f"?{parts.query}" if parts.query else ""
    return start + _decoded(parts.path) + _decoded(query + fragment)


def _decoded(part: str) -> str:
    return unicodedata.normalize("NFC", unquote(part)).rstrip("/")


def documents_of(urls: Iterable[str]) -> tuple[str, ...]:
    """The ranking of documents; a chunk without a URL keeps its rank and equals no other."""
    return tuple(
        document_of(url) if not is_blank(url) else f"(no URL at rank {rank})"
        for rank, url in enumerate(urls, 1)
    )
