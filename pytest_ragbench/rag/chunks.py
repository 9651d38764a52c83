"""Shapes in which services send chunks, brought to one: a list of strings or of objects."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_ragbench.rag.names import IDS, SCORES, TEXTS, URLS, get, keys_of, kind_of

TextOf = Callable[[Any], str | None]
_FOR_CHUNKS = frozenset(
    {
        "contexts", "retrieved_contexts", "chunks", "retrieved_chunks", "source_documents", "retrieved_documents",
        "documents", "docs", "passages", "source_nodes", "search_results",
    }
)  # fmt: skip


def is_named_for_chunks(name: str) -> bool:
    """Whether nothing but chunks is called so; "citations" may as well be numbers, "context" a session."""
    return name in _FOR_CHUNKS


def items_of(found: Any, text_of: TextOf, *, strings: bool = True) -> Any:
    """Chunks as a list of strings or objects; what is in none of the known shapes stays as it is.

    Known beside the plain list: JSON or Python text of one, pairs of text and score, one list within another (of
    the one query), and objects by id.

    Parameters
    ----------
    text_of
        The text of a chunk, None where it has none.
    strings
        Whether an object of nothing but strings is chunks by their ids.
    """
    found = _unpacked(found)
    if isinstance(found, tuple):
        found = list(found)
    if isinstance(found, list):
        if len(found) == 1 and isinstance(found[0], (list, tuple)) and _pair(found[0], text_of) is None:
            found = list(found[0])  # Chroma answers a list of queries
        return [_item(each, text_of) for each in found]
    if isinstance(found, Mapping) and text_of(found) is None:
        return _by_id(found, text_of, strings)
    return found


def _unpacked(found: Any) -> Any:
    """The value of a string that is a JSON list or object, or a list as Python prints it."""
    if not isinstance(found, str) or found.strip()[:1] not in ("[", "{"):
        return found
    try:
        value = json.loads(found)
    except (ValueError, RecursionError):
        try:
            value = ast.literal_eval(found.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError, SystemError, TypeError):
            return found
    listed = isinstance(value, list) and all(isinstance(each, (str, list, Mapping)) for each in value)
    return value if listed or isinstance(value, Mapping) else found


def _item(item: Any, text_of: TextOf) -> Any:
    if isinstance(item, (list, tuple)):
        pair = _pair(item, text_of)
        return item if pair is None else pair
    return item


def _pair(item: Any, text_of: TextOf) -> Any:
    """A chunk and its score, in either order, as one object; None where it is not just that."""
    texts = [each for each in item if isinstance(each, (str, Mapping)) and text_of(each) is not None]
    numbers = [each for each in item if isinstance(each, (int, float)) and not isinstance(each, bool)]
    if len(texts) != 1 or len(numbers) > 1 or len(item) != len(texts) + len(numbers):
        return None
    chunk = {"text": texts[0]} if isinstance(texts[0], str) else dict(texts[0])
    return {**chunk, "score": numbers[0]} if numbers and get(chunk, "score") is None else chunk


def _by_id(found: Mapping[str, Any], text_of: TextOf, strings: bool) -> Any:
    """A list of the chunks that an object holds by their ids; the object itself where it is something else."""
    values = list(found.values())
    if not values:
        return found
    if all(isinstance(each, Mapping) and text_of(each) is not None for each in values):
        own = any(get(each, name) is not None for each in values for name in IDS)
        return [each if own else {**each, "id": key} for key, each in found.items()]
    # Names of fields make it one object with fields, and not several texts.
    known = {
        name.replace("_", "") for name in (*TEXTS, *IDS, *URLS, *SCORES, "title", "name", "type", "query")
    }
    named = any(str(key).casefold().replace("_", "") in known for key in found)
    if strings and not named and all(isinstance(each, str) and each.strip() for each in values):
        return [{"text": each, "id": key} for key, each in found.items()]
    return found


def shape_of(value: Any) -> str:
    """What a value is, and what is in it, for messages: ``"a list of 2, the first a list of 3"``."""
    if isinstance(value, Mapping):
        return f"an object, {keys_of(value)}"
    if isinstance(value, (list, tuple)) and value:
        return f"{kind_of(value)}, the first {shape_of(value[0])}"
    return kind_of(value)
