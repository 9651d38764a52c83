"""File names for what belongs to a question: safe on every system, whatever the question's id is."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pytest_ragbench.model.errors import UsageError

_BYTES = 120
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]*")
# Windows knows these as devices, with any suffix.
_DEVICES = re.compile(r"(con|prn|aux|nul|conin\$|conout\$|com\d|lpt\d)", re.IGNORECASE)


def artifact_path(folder: Path, name: str, suffix: str) -> Path:
    """The file in ``folder`` for ``name``, which may be any text: an id, a question, an answer.

    A name of lower-case ASCII letters, digits, ``_`` and ``-`` is kept. Any other keeps its letters,
    in any script, and gets a hash of the whole text, so that two names never share a file: not where
    they differ in case only, nor in what can't stand in a file name. The result has no separator, no
    leading dot, no control character, no name of a device, and at most 140 bytes beside the suffix.

    Raises
    ------
    UsageError
        The suffix is none, as ``.json``.
    """
    if not re.fullmatch(r"(\.[a-z0-9]{1,10}){1,2}", suffix):
        raise UsageError(f"a suffix such as '.json' is wanted, got {suffix!r}")
    return folder / f"{_safe(name)}{suffix}"


def _safe(name: str) -> str:
    if _PLAIN.fullmatch(name) and len(name) <= _BYTES and not _DEVICES.fullmatch(name):
        return name
    kept = "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in name)
    short = re.sub(r"-+", "-", kept).strip("-").encode("utf-8", "ignore")[:_BYTES].decode("utf-8", "ignore")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{short}-{digest}" if short else f"q-{digest}"
