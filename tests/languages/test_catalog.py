"""Languages as folders: which are found, what their files may say, and whose words a text is read by."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_ragbench.languages import Catalog, LanguageError, known_languages, language, rules, short_code


@dataclass(frozen=True)
class Sample:
    """Keys of each type that a file may have."""

    topic: ClassVar[str] = "sample"

    words: frozenset[str] = frozenset()
    pairs: tuple[tuple[str, ...], ...] = ()
    numbers: Mapping[str, float] | None = None
    mark: str = ""


@dataclass(frozen=True)
class Step:
    name: str = ""


@dataclass(frozen=True)
class Wide:
    """Tables, and types that TOML and Python tell apart otherwise."""

    topic: ClassVar[str] = "wide"

    shares: Mapping[str, float] = field(default_factory=dict)
    sets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    words: frozenset[str] = frozenset()
    share: float = 0.0
    count: int = 0
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


def wide(tmp_path: Path, text: str) -> Wide:
    return Catalog({"de": folder(tmp_path / "de", 'scripts = "LATIN"', wide=text)}).rules(Wide, "de")


def test_tables_and_numbers(tmp_path: Path) -> None:
    found = wide(
        tmp_path,
        'share = 1\ncount = 2\nwords = ["Zwei Tage", "dreißig"]\nsteps = [{name = "a"}, {}]\n'
        'shares = {a = 1, b = 0.5}\nsets = {x = "Eins ZWEI"}\nlists = {y = "Eins ZWEI"}\n',
    )
    assert (found.share, type(found.share), found.count) == (1.0, float, 2)
    assert found.words == {"zwei tage", "dreissig"}  # as texts are folded
    assert found.steps == (Step("a"), Step(""))
    assert found.shares == {"a": 1.0, "b": 0.5}
    assert (found.sets, found.lists) == ({"x": frozenset({"eins", "zwei"})}, {"y": ("Eins", "ZWEI")})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("share = true", "share must be of the type float, not bool"),
        ('share = "1"', "share must be of the type float, not str"),
        ("count = 1.0", "count must be of the type int, not float"),
        ("shares = [1]", "shares must be a table"),
        ("shares = {a = 'x'}", "shares must be of the type float"),
        ("steps = [1]", "steps must be of the type Step, not int"),
        ("steps = [{nam = 'a'}]", "unknown key 'nam'; known: name"),
        ("zwei = 1\neins = 2", "unknown key 'eins'"),
    ],
)
def test_a_value_of_another_type(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(LanguageError, match=f"language 'de', wide.toml.*{problem}"):
        wide(tmp_path, text)


def test_a_file_that_is_no_utf_8(tmp_path: Path) -> None:
    german = folder(tmp_path / "de", 'scripts = "LATIN"')
    german.joinpath("wide.toml").write_bytes(b'mark = "\xff"')
    with pytest.raises(LanguageError, match="language 'de', wide.toml: "):
        Catalog({"de": german}).rules(Wide, "de")


def test_the_rules_of_several_languages_are_put_together(tmp_path: Path) -> None:
    found = Catalog(
        {
            "el": folder(
                tmp_path / "el", 'scripts = "GREEK"',
                wide='mark = "second"\ncount = 2\nwords = "b c"\nsteps = [{name = "el"}]\nshares = {a = 2, b = 2}\n'
                'sets = {x = "b"}\nlists = {y = "b"}',
            ),
            "de": folder(
                tmp_path / "de", 'scripts = "LATIN"',
                wide='mark = "first"\nwords = "a b"\nsteps = [{name = "de"}]\nshares = {a = 1}\nsets = {x = "a"}\n'
                'lists = {y = "a", z = "a"}',
            ),
        }
    )  # fmt: skip
    assert [each.code for each in found] == ["en", "ru", "ja", "de", "el"]  # those without a rank, by code
    assert [each.code for each in found.reading("de")] == ["ru", "ja", "de", "el"]
    both = found.rules(Wide, "de")
    assert both.words == {"a", "b", "c"}
    assert both.steps == (Step("de"), Step("el"))
    assert both.shares == {"a": 1.0, "b": 2.0}
    assert (both.sets, both.lists) == ({"x": frozenset("ab")}, {"y": ("a", "b"), "z": ("a",)})
    assert (both.mark, both.count) == ("first", 2)  # of one value, the first that is given
    assert found.rules(Wide).words == {"b", "c"}


def test_a_name_and_a_code() -> None:
    assert Catalog({"xx": Path(__file__).with_name("german")}).get("xx-YY").name == "German"  # type: ignore[union-attr]
    assert [short_code(code) for code in ("RU_ru", " en-GB ", "ja", "", None)] == ["ru", "en", "ja", "", ""]
    assert language("xx", "ru-RU").code == "ru"
    assert language("ja", "ru").code == "ja"
    assert Catalog().get(None) is None
    assert Catalog().default.code == "en"


def test_a_language_without_a_name_has_its_code(tmp_path: Path) -> None:
    found = Catalog({"de": folder(tmp_path / "de", 'scripts = "LATIN"')})
    assert found.get("de").name == "de"  # type: ignore[union-attr]
    assert found.get("de").data("prompts/none") == {}  # type: ignore[union-attr]


def test_a_language_of_another_package(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules[Catalog.__module__]

    def installed(code: str, package: str) -> None:
        entry = EntryPoint(code, package, "ragbench.languages")
        monkeypatch.setattr(module, "installed_points", lambda group: [entry] if group == entry.group else [])

    installed("de", "tests.languages.german")
    assert [each.code for each in Catalog()] == ["en", "ru", "ja", "de"]
    assert Catalog().rivals
    installed("ru", "tests.languages.german")  # as a whole in the place of ours
    assert Catalog().get("ru").name == "German"  # type: ignore[union-attr]
    installed("de", "tests.languages")
    with pytest.raises(LanguageError, match=r"'tests.languages' \(language 'de'\) has no language.toml"):
        Catalog()


def test_what_is_known_of_languages_without_a_folder(tmp_path: Path) -> None:
    """Of one that has a folder, nothing: its folder says it."""
    assert "uk" in Catalog().others.languages
    found = Catalog({"uk": folder(tmp_path / "uk", 'scripts = "CYRILLIC"')})
    assert "uk" not in found.others.languages
    assert "zh" in found.others.languages
