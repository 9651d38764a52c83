"""The input of a case, which knows what of it was read: a key that no operation reads would test nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

FOR_READERS = {"op", "title", "note", "comment", "preview", "situation", "source"}


class Given(dict[str, Any]):
    """A mapping that notes which keys were asked for; all of them where it is gone through as a whole.

    Mappings in it are watched too.
    """

    def __init__(self, values: Mapping[str, Any], read: set[str] | None = None) -> None:
        wrapped = {key: Given(value) if type(value) is dict else value for key, value in dict(values).items()}
        super().__init__(wrapped)
        self._read = set() if read is None else read

    def over(self, changes: Mapping[str, Any]) -> Given:
        """With some keys changed; what is read of either is read of both."""
        same = {key: value for key, value in super().items() if key not in changes}
        return Given({**same, **changes}, self._read)

    def without(self, key: str) -> Given:
        return Given({name: value for name, value in super().items() if name != key}, self._read)

    def unread(self) -> list[str]:
        """``["gate", "retry.max_wall_s"]``"""
        found = []
        for key, value in super().items():
            if key in FOR_READERS:
                continue
            if key not in self._read:
                found.append(key)
            elif isinstance(value, Given):
                found += [f"{key}.{inner}" for inner in value.unread()]
        return found

    def _all(self) -> None:
        self._read.update(super().keys())

    def __getitem__(self, key: str) -> Any:
        self._read.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._read.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self._read.add(str(key))
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self._all()
        return super().__iter__()

    def keys(self) -> Any:
        self._all()
        return super().keys()

    def values(self) -> Any:
        self._all()
        return super().values()

    def items(self) -> Any:
        self._all()
        return super().items()
