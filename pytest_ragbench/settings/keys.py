"""What the model says of a key: its type, its neighbours, and how the text of a variable becomes its value."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo


def type_at(model: type[BaseModel], path: Sequence[str]) -> Any:
    """The annotation of the key ``path``, ``Any`` inside free-form values; None if there is no such key."""
    kind: Any = model
    for part in path:
        kind = _plain(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if part in kind.model_fields:
                kind = kind.model_fields[part].annotation
            elif kind.model_config.get("extra") == "allow":
                kind = Any
            else:
                return None
        elif get_origin(kind) is Mapping:
            kind = get_args(kind)[1]
        elif kind is not Any:
            return None
    return kind


def known_keys(model: type[BaseModel], path: Sequence[str]) -> list[str]:
    """The keys of the table at ``path``; none where it isn't a table, or takes any key."""
    kind = _plain(type_at(model, path))
    return list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []


def tables(
    model: type[BaseModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], type[BaseModel]]]:
    """Each table of the configuration with its key; ``*`` stands for a name that the user chooses."""
    yield path, model
    for name, info in model.model_fields.items():
        if (below := _table_of(info)) is not None:
            starred = get_origin(_plain(info.annotation)) is Mapping
            yield from tables(below, (*path, name, "*") if starred else (*path, name))


def is_table(info: FieldInfo) -> bool:
    """Whether a field holds a table (or tables by name) with keys of its own."""
    return _table_of(info) is not None


def read_text(text: str, kind: Any) -> Any:
    """The text of a variable as a value of ``kind``.

    Tables are JSON. Lists are JSON, or names with commas between. Where other types than strings are possible,
    numbers, ``true`` and the like are read as JSON too; for a string the value is taken as it is.

    Raises
    ------
    ValueError
        A table that isn't a JSON object. The message does not repeat the text, which may hold a key.
    """
    kind = _plain(kind)
    if _is_table(kind):
        value = _json(text)
        if not isinstance(value, dict):
            raise ValueError('must be a table as JSON: {"KEY": VALUE}')
        return value
    if get_origin(kind) in (tuple, frozenset, AbstractSet, list):
        value = _json(text)
        # Names with commas between are split by the field itself.
        return value if isinstance(value, list) else text
    # `gates.mrr=true` and `judge=true` differ in what the key can hold.
    if kind is Any or get_origin(kind) in (Union, types.UnionType):
        value = _json(text)
        return text if value is None else value
    return text


def _json(text: str) -> Any:
    """The value of a JSON string; None where it isn't JSON, as NaN and Infinity."""
    try:
        return json.loads(text, parse_constant=lambda name: None)
    except ValueError:
        return None


def _plain(kind: Any) -> Any:
    """Without ``Annotated`` and ``| None``."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        rest = [_plain(one) for one in get_args(kind) if one is not type(None)]
        return rest[0] if len(rest) == 1 else kind
    # All our choices are words.
    return str if get_origin(kind) is Literal else kind


def _is_table(kind: Any) -> bool:
    return get_origin(kind) is Mapping or (isinstance(kind, type) and issubclass(kind, BaseModel))


def _table_of(info: FieldInfo) -> type[BaseModel] | None:
    kind = _plain(info.annotation)
    if get_origin(kind) is Mapping:
        kind = _plain(get_args(kind)[1])
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
