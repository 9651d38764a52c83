"""Recordings: replies in a text file that can be reviewed, and runs that ask nobody else.

A recording has one line of JSON for each reply: ``kind``, ``provider``, ``asked`` (the request's key) and
``reply`` (the payload). Lines are sorted, so that a difference in review is a changed question or reply.
What is long, says nothing to a reader and shapes the reply all the same (a prompt's instructions, a
schema) is written as its fingerprint.

While a run records, the process that owns it appends to a journal beside the file, and merges it at the end.
A run that is killed leaves the journal, and the next one that records merges it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from pytest_ragbench.engine.calls import Call
from pytest_ragbench.engine.coordinator import Event
from pytest_ragbench.engine.keys import json_values
from pytest_ragbench.engine.nearest import differences
from pytest_ragbench.model.errors import RagbenchError, UsageError
from pytest_ragbench.secrets import Redactor, fingerprint

T = TypeVar("T")

MEASURED = ("latency", "first_token", "at_once", "trace_id", "span_id", "asked")
"""What is never twice the same of a reply of the system under test."""
KINDS = ("rag", "judge", "embedding")
_MARKER = re.compile(r"-[0-9a-f]{8}\b")


@dataclass(frozen=True)
class Merged:
    """What a run did to a recording, in replies."""

    total: int = 0
    new: int = 0
    changed: int = 0
    not_asked: int = 0

    def __str__(self) -> str:
        parts = [f"{self.new} new", f"{self.changed} changed"]
        if self.not_asked:
            parts.append(f"{self.not_asked} not asked for in this run (delete the file first to drop such)")
        return f"{self.total} replies: {', '.join(parts)}"


class Recorder:
    """Appends to a recording's journal; in a worker, by way of the process that owns the run.

    Raises
    ------
    UsageError
        The file can't be written; or it is there, and no recording: said before anything is asked for it.
    """

    def __init__(self, path: Path, kinds: Collection[str] = KINDS) -> None:
        if path.exists():
            load(path)
        self.path = path
        self.kinds = frozenset(kinds)
        self._redact = Redactor([])
        self._told: set[str] = set()
        self._written: set[str] = set()
        self._journal = journal_of(path)
        _append(self._journal, b"")

    def note(self, call: Call, text: str, hand_in: Callable[[Event], None] | None = None) -> None:
        """Record a reply (its payload as JSON text), once for each thing asked.

        ``hand_in`` takes it to the process that writes; None: this one does.
        """
        if call.kind not in self.kinds:
            return
        entry = _entry(call, json.loads(text))
        identity = _identity(entry, self._redact)
        # Told once: replies of one question would otherwise travel from a worker for each test that uses them.
        if identity in self._told:
            return
        self._told.add(identity)
        line = self._redact(_line(entry))
        if hand_in is None:
            self.write(identity, line)
        else:
            hand_in(Event("record", identity=identity, line=line))

    def write(self, identity: str, line: str) -> None:
        """Append a line to the journal, once for each identity. Only one process of a run does so."""
        if identity not in self._written:
            self._written.add(identity)
            _append(self._journal, f"{line}\n".encode("utf-8", "backslashreplace"))


def check_target(path: Path) -> None:
    """See whether a run may record in ``path``; leaves no file that was not there.

    Raises
    ------
    UsageError
        The file can't be written; or it is there, and no recording.
    """
    journal = journal_of(path)
    was_there = journal.exists()
    Recorder(path)
    if not was_there:
        journal.unlink(missing_ok=True)


def merge(path: Path) -> Merged:
    """Take the journal of ``path`` into it, sorted; afterwards there is no journal.

    A reply that differs from the recorded one in nothing but the time it took keeps its line.

    Raises
    ------
    UsageError
        A file can't be read or written.
    """
    journal = journal_of(path)
    written = journal.read_bytes() if journal.exists() else b""
    asked = {_identity(entry): entry for entry in _entries(written, journal, torn=True)}
    old = {_identity(entry): entry for entry in load(path)} if path.exists() else {}
    changed = {
        name for name, entry in asked.items() if name in old and _lasting(entry) != _lasting(old[name])
    }
    # A line that says the same keeps its old text, so that a review shows real changes only.
    kept = {**asked, **{name: entry for name, entry in old.items() if name not in changed}}
    lines = [_line(kept[name]) for name in sorted(kept, key=lambda name: _place(kept[name], name))]
    _replace(path, "".join(f"{line}\n" for line in lines))
    # After the file is whole: a kill before this merges the journal once more, which changes nothing.
    journal.unlink(missing_ok=True)
    new = len(asked.keys() - old.keys())
    return Merged(len(kept), new, len(changed), len(old.keys() - asked.keys()))


def load(path: Path) -> list[dict[str, Any]]:
    """The entries of a recording, in the order of its lines.

    Raises
    ------
    UsageError
        Naming the file, and the line that isn't an entry, or two that contradict each other.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        left = " (a run that was killed left its journal: record again to finish)"
        hint = left if journal_of(path).exists() else ""
        raise UsageError(f"{path}: there is no such recording{hint}") from None
    except OSError as error:
        raise UsageError(f"{path}: the recording can't be read: {error.strerror}") from None
    entries = list(_entries(data, path))
    _refuse_contradictions(entries, path)
    return entries


def _refuse_contradictions(entries: Sequence[dict[str, Any]], path: Path) -> None:
    """Two replies to the same: what a merge of two branches may leave."""
    first: dict[str, int] = {}
    for number, entry in enumerate(entries):
        before = first.setdefault(_identity(entry), number)
        if _lasting(entries[before]) != _lasting(entry):
            raise UsageError(
                f"{path}: lines {before + 1} and {number + 1} hold different replies to the same "
                f"{entry['kind']} request; keep one of them"
            )


class Replay:
    """Replies from a recording, and from nowhere else."""

    def __init__(self, path: Path, kinds: Collection[str] = KINDS) -> None:
        self.path = path
        self.kinds = frozenset(kinds)
        self._redact = Redactor([])
        self.entries = load(path)
        self._by_identity = {_identity(entry): number for number, entry in enumerate(self.entries)}
        self._by_place: dict[str, list[int]] = {}
        for number, entry in enumerate(self.entries):
            if entry["kind"] == "rag":
                self._by_place.setdefault(_identity(_anywhere(entry)), []).append(number)

    def value(self, call: Call, read: Callable[[Any], T]) -> T:
        """What the recorded payload says, as ``read`` takes it.

        Raises
        ------
        Unscored
            Of the call's ``failure`` class, with code ``"not_recorded"``: the message names the
            nearest line, and what is different there; or ``"bad_recording"``: only a reply that was
            understood is recorded, so somebody has changed that line.
        """
        number = self._number(call)
        try:
            # A copy: what a test changes in place must not reach the next one.
            return read(json.loads(json.dumps(self.entries[number]["reply"])))
        except Exception as error:
            named = str(error) if isinstance(error, RagbenchError) else f"{type(error).__name__}: {error}"
            raise call.failure(
                f"{self.path.name}, line {number + 1}: the recorded reply can't be read ({named}); "
                f"restore the line, or remove it and record it again",
                code="bad_recording",
            ) from None

    def _number(self, call: Call) -> int:
        """Where it stands. An answer of the RAG service also where the service was somewhere else (another
        host or port) when it was recorded.
        """
        entry = _entry(call, None)
        found = self._by_identity.get(_identity(entry, self._redact))
        if found is None and call.kind == "rag":
            elsewhere = self._by_place.get(_identity(_anywhere(entry), self._redact), [])
            found = elsewhere[0] if len(elsewhere) == 1 else None
        if found is None:
            raise call.failure(self._missing(entry), code="not_recorded")
        return found

    def _missing(self, entry: dict[str, Any]) -> str:
        named = f"{entry['kind']} request to {entry['provider']!r}"
        now = json.loads(self._redact(_line(entry)))
        # The nearest line tells a user what changed; a list of all would not be read.
        best: tuple[float, int, list[str]] | None = None
        for number, other in enumerate(self.entries, start=1):
            if other["kind"] == entry["kind"]:
                distance, told = differences(
                    {"provider": other["provider"], **other["asked"]},
                    {"provider": now["provider"], **now["asked"]},
                )
                if best is None or distance < best[0]:
                    best = distance, number, told
        if best is None:
            nearest = f"it has no {entry['kind']} replies at all"
        else:
            nearest = f"the nearest is line {best[1]}, where is different: {'; '.join(best[2])}"
        return f"{self.path.name} does not hold this {named}: {nearest}"


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal")


# One entry


def _entry(call: Call, reply: Any) -> dict[str, Any]:
    where = f"key of a {call.kind} request to {call.provider!r}"
    asked = json_values(call.key, where)
    return {"kind": call.kind, "provider": call.provider, "asked": _shortened(asked), "reply": reply}


def _shortened(asked: dict[str, Any]) -> dict[str, Any]:
    """Instructions and schema by fingerprint: the same in a hundred lines, and told by the prompt's version."""
    short = dict(asked)
    if short.get("schema") is not None:
        short["schema"] = fingerprint(json.dumps(short["schema"], sort_keys=True))
    if isinstance(short.get("messages"), list):
        short["messages"] = [
            # The markers come from the texts, which follow in a message of their own.
            {**message, "content": fingerprint(_MARKER.sub("", message["content"]))}
            if message.get("role") == "system"
            else message
            for message in short["messages"]
        ]
    return short


def _anywhere(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Without the host that was asked."""
    asked = dict(entry["asked"])
    if isinstance(asked.get("url"), str):
        parts = urlsplit(asked["url"])
        asked["url"] = f"{parts.path}?{parts.query}"
    return {**entry, "asked": asked}


def _identity(entry: Mapping[str, Any], redact: Callable[[str], str] = str) -> str:
    told = [entry["kind"], entry["provider"], entry["asked"]]
    return redact(json.dumps(told, sort_keys=True, ensure_ascii=False))


def _lasting(entry: Mapping[str, Any]) -> Any:
    """The reply without what is never twice the same."""
    reply = entry["reply"]
    if entry["kind"] == "rag" and isinstance(reply, dict):
        return {name: value for name, value in reply.items() if name not in MEASURED}
    # Of a function's reply: what it returned, and what was measured.
    return reply[0] if entry["kind"] == "rag" and isinstance(reply, list) and reply else reply


def _place(entry: Mapping[str, Any], identity: str) -> tuple[int, str, str]:
    asked = entry["asked"]
    task = json.dumps(asked.get("prompt") or asked.get("question") or "", ensure_ascii=False)
    return KINDS.index(entry["kind"]), task, identity


def _line(entry: Mapping[str, Any]) -> str:
    return json.dumps(entry, ensure_ascii=False, separators=(", ", ": "))


def _entries(data: bytes, path: Path, *, torn: bool = False) -> Iterator[dict[str, Any]]:
    """``torn``: a line that was cut short is left out (a kill in the middle of a write)."""
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            entry = json.loads(line.decode())
            sound = entry["kind"] in KINDS and isinstance(entry["asked"], dict) and "reply" in entry
            sound = sound and isinstance(entry["provider"], str)
        except (ValueError, TypeError, KeyError):
            sound = False
        if sound:
            yield entry
        elif not torn and line.strip():
            raise UsageError(f"{path}, line {number}: no entry of a recording; record it again")


# Files


def _append(path: Path, data: bytes) -> None:
    """At the end of the file, which is made where it is missing; on a line of its own, also after a kill."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        with path.open("r+b", buffering=0) as file:
            # A run that was killed may have left half a line; the next entry must not be glued to it.
            end = file.seek(0, os.SEEK_END)
            if end and data:
                file.seek(end - 1)
                data = data if file.read(1) == b"\n" else b"\n" + data
            file.write(data)
    except OSError as error:
        raise UsageError(f"{path}: the recording can't be written: {error.strerror}") from None


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.new")
    try:
        # Written beside and moved, so that a kill leaves the old recording or the new one.
        fresh.write_text(text, encoding="utf-8", errors="backslashreplace", newline="\n")
        os.replace(fresh, path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise UsageError(f"{path}: the recording can't be written: {error.strerror}") from None
