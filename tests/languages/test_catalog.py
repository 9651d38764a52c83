"""Languages as folders: which are found, what their files may say, and whose words a text is read by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_ragbench.languages import Catalog, LanguageError, known_languages, language, rules


@dataclass(frozen=True)
class Sample:
    """Keys of each type that a file may have."""

    topic: ClassVar[str] = "sample"

    words: frozenset[str] = frozenset()
    pairs: tuple[tuple[str, ...], ...] = ()
    numbers: Mapping[str, float] | None = None
    mark: str = ""


def folder(path: Path, language: str, **files: str) -> Path:
    path.mkdir(parents=True)
    path.joinpath("language.toml").write_text(language, encoding="utf-8")
    for name, text in files.items():
        path.joinpath(f"{name}.toml").write_text(text, encoding="utf-8")
    return path


def test_the_default_comes_first() -> None:
    assert known_languages() == ("en", "ru", "ja")
    assert language("RU_ru").name == "Russian"
    with pytest.raises(LanguageError, match="unknown language 'xx'; known: en, ru, ja"):
        language("xx")


def test_a_text_is_read_by_one_language_of_each_script(tmp_path: Path) -> None:
    german = folder(tmp_path / "de", 'name = "German"\nscripts = "LATIN"\n', sample='words = "der die"')
    found = Catalog({"de": german})
    assert [each.code for each in found] == ["en", "ru", "ja", "de"]
    assert [each.code for each in found.reading("de-AT")] == ["ru", "ja", "de"]
    assert [each.code for each in found.reading("fr")] == ["en", "ru", "ja"]
    assert found.rules(Sample, "de").words == {"der", "die"}
    assert found.rules(Sample, "ru").words == frozenset()


def test_values_have_the_type_of_their_key(tmp_path: Path) -> None:
    text = 'words = "one two\\nthree"\npairs = [["a b", "c"], "d e"]\nmark = "!"'
    found = Catalog({"de": folder(tmp_path / "de", 'scripts = "LATIN"', sample=text)}).rules(Sample, "de")
    assert found.words == {"one", "two", "three"}
    assert found.pairs == (("a b", "c"), ("d", "e"))
    assert found.mark == "!"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('word = "a"', "unknown key 'word'; known: mark, numbers, pairs, words"),
        ("words = 3", "words must be a list, or a string of words"),
        ("mark = ['a']", "mark must be of the type str, not list"),
        ("mark = ", "sample.toml: Invalid value"),
    ],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, problem: str) -> None:
    found = Catalog({"de": folder(tmp_path / "de", 'scripts = "LATIN"', sample=text)})
    with pytest.raises(LanguageError) as caught:
        found.rules(Sample, "de")
    assert "language 'de'" in str(caught.value)
    assert problem in str(caught.value)


def test_rules_are_put_together_once() -> None:
    shape: Any = Sample
    assert rules(shape) is rules(shape, "ru")
