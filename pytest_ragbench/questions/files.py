"""The files that a path, a glob pattern or a directory stands for."""

from __future__ import annotations

import difflib
import glob
import os
from pathlib import Path

from pytest_ragbench.model.errors import QuestionFileError, UsageError
from pytest_ragbench.questions import readers


def find_files(path: str | os.PathLike[str], format: str | None = None) -> list[Path]:
    """The files that ``path`` means, sorted by name; at least one.

    Raises
    ------
    QuestionFileError
        No file is found.
    """
    if not str(path).strip():
        raise UsageError("the path of the question file is empty")
    file = Path(path)
    if file.is_dir():
        suffixes = readers.suffixes()
        found = [
            entry
            for entry in sorted(file.iterdir())
            if entry.is_file()
            and not entry.name.startswith(".")
            and not entry.name.endswith((".rag.yaml", ".rag.yml"))  # tests, not questions
            and (format or entry.suffix.lower() in suffixes)
        ]
        if not found:
            raise QuestionFileError(
                f"{shown_name(file)}: no questions: the directory has no {', '.join(suffixes)} file"
            )
        return found
    # Before the pattern: a file name may hold brackets.
    if file.exists():
        return [file]
    if glob.has_magic(str(path)):
        found = sorted({Path(name) for name in glob.glob(str(path), recursive=True) if Path(name).is_file()})
        if not found:
            raise QuestionFileError(
                f"{path}: no questions: no file matches the pattern (seen from {Path.cwd()})"
            )
        return found
    # The most common mistakes: a typo in the name, or another working directory.
    raise QuestionFileError(f"{path}: no such question file (seen from {Path.cwd()}){similar_file(file)}")


def similar_file(missing: Path) -> str:
    """``"; did you mean 'questions.csv'?"``, or an empty string: the end of a message about a missing file."""
    beside = [entry.name for entry in missing.parent.iterdir()] if missing.parent.is_dir() else []
    likely = difflib.get_close_matches(missing.name, beside, n=1)
    return f"; did you mean {likely[0]!r}?" if likely else ""


def shown_name(file: Path) -> str:
    """The path for messages: relative where the file is below the working directory."""
    try:
        return str(file.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(file)
