"""The code knows no language by name: words in another script, and codes of languages, stand in the folders only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest_ragbench
from pytest_ragbench.languages import DEFAULT, known_languages

PACKAGE = Path(pytest_ragbench.__file__).parent
LETTERS = re.compile("[\u0400-\u04ff\u3041-\u3096\u30a1-\u30fa\u3400-\u9fff]")

WORDS_ALLOWED = {
    "questions/encodings.py": "which bytes would be Cyrillic letters in an encoding that was not named",
    "http/service_errors.py": "words of services' error messages, whatever the documents are written in",
    "judge/forms.py": "words of services' refusals",
    "rag/failures.py": "words of services' error messages",
    "metrics/text.py": "a docstring that is put together",
    "questions/columns.py": "where a capital begins a word in a name without spaces",
}
CODES_ALLOWED = {
    "languages/catalog.py": "the default language",
    "metrics/formulas/overlap.py": "names of sacrebleu's tokenizers",
    "report/html/matrix.py": "the page is in English",
    "report/html/runs.py": "the pages of lists and messages are in English",
    "report/html/__init__.py": "the page around the explanations is in English",
    "settings/model.py": "the default of the setting lang",
}


def strings(path: Path) -> Iterator[str]:
    """Strings of a module that are no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    told = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


@cache
def strings_by_module() -> dict[str, list[str]]:
    return {path.relative_to(PACKAGE).as_posix(): [*strings(path)] for path in PACKAGE.rglob("*.py")}


def modules_with(pattern: re.Pattern[str]) -> set[str]:
    return {name for name, said in strings_by_module().items() if any(map(pattern.search, said))}


def test_no_module_has_words_of_other_scripts() -> None:
    assert modules_with(LETTERS) <= set(WORDS_ALLOWED)


def test_no_module_names_a_language() -> None:
    codes = re.compile(rf"^(?:{'|'.join(known_languages())})$")
    assert modules_with(codes) <= set(CODES_ALLOWED)


def test_all_data_of_a_language_is_read_by_somebody() -> None:
    topics = {file.stem for file in (PACKAGE / "languages" / DEFAULT).glob("*.toml")}
    assert topics <= {each for said in strings_by_module().values() for each in said}
