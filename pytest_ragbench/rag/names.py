"""The names that RAG services use for the same things. Compared without case, ``_`` and ``-``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

ANSWERS = ("answer", "response", "output_text", "generated_text", "completion", "reply", "answer_text")
# These may as well hold a status line, so they count only where no better name is found.
WEAK_ANSWERS = ("result", "output", "text", "message", "content")
WRAPPERS = ("data", "result", "response", "output", "results", "body", "payload")
CONTEXTS = (
    "contexts", "retrieved_contexts", "chunks", "retrieved_chunks", "context", "source_documents",
    "retrieved_documents", "documents", "docs", "passages", "source_nodes", "sources", "hits", "search_results",
    "citations", "references",
)  # fmt: skip
TEXTS = (
    "text", "content", "page_content", "chunk", "body", "passage", "snippet", "chunk_text", "node", "document",
    "payload", "_source",
)  # fmt: skip
IDS = (
    "id", "_id", "doc_id", "document_id", "chunk_id", "node_id", "id_", "source", "url", "uri", "file", "path", "doc",
)  # fmt: skip
URLS = ("url", "uri", "link", "href", "source_url", "document_url", "page_url", "confluence_url", "web_url")
SCORES = ("score", "similarity", "relevance", "relevance_score", "_score")


@lru_cache(maxsize=2048)
def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "")


def get(mapping: Any, name: str) -> Any:
    """The value under this name in any spelling (``pageContent``, ``page_content``), or None."""
    if not isinstance(mapping, Mapping):
        return None
    if name in mapping:
        return mapping[name]
    key = _spelt(tuple(mapping), name)
    return None if key is None else mapping[key]


@lru_cache(maxsize=4096)
def _spelt(keys: tuple[Any, ...], name: str) -> Any:
    """Which of the keys is this name in another spelling. All chunks of a service have the same keys."""
    wanted = _folded(name)
    return next((key for key in keys if _folded(str(key)) == wanted), None)


def keys_of(value: Any, most: int = 20) -> str:
    """The keys of a reply as dotted paths, for messages: ``its keys: result.text, took``."""
    if not isinstance(value, (Mapping, list)):
        return f"it is a {type(value).__name__}, with no keys"
    found = list(_paths(value, "", 0))
    if not found:
        return "it is empty"
    more = f", and {len(found) - most} more" if len(found) > most else ""
    return f"its keys: {', '.join(found[:most])}{more}"


def _paths(value: Any, prefix: str, depth: int) -> Iterator[str]:
    if isinstance(value, list):
        if value and isinstance(value[0], (Mapping, list)) and depth < 4:
            yield from _paths(value[0], f"{prefix}[0]", depth + 1)
        elif prefix:
            yield prefix
        return
    if not isinstance(value, Mapping) or not value or depth >= 4:
        if prefix:
            yield prefix
        return
    for key, inner in value.items():
        shown = str(key)[:60]
        yield from _paths(inner, f"{prefix}.{shown}" if prefix else shown, depth + 1)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {str(value).lower()}"
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    return "a string" if isinstance(value, str) else f"a {type(value).__name__}"
