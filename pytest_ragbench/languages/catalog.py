"""The known languages, and their data as typed rules."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, ClassVar, Protocol, TypeVar, cast, get_args, get_origin, get_type_hints

from pytest_ragbench.extensions import installed_points

DEFAULT = "en"
"""The language of prompts and explanations where the sample's own has none, and of texts in no other's script."""

GROUP = "ragbench.languages"
"""Entry points of packages that bring a language."""

_UNRANKED = 1000


class LanguageError(ValueError):
    """A language's data can't be used: a file is missing, is not TOML, or has a key that nobody reads."""


class Shape(Protocol):
    """A frozen dataclass whose fields are the keys of ``<topic>.toml``, each with a default."""

    topic: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]


S = TypeVar("S", bound=Shape)
T = TypeVar("T")


@dataclass(frozen=True)
class Script:
    """``language.toml``: how texts in this language are recognised."""

    topic: ClassVar[str] = "language"

    name: str = ""
    rank: int = _UNRANKED
    """Place among the languages, from 1; those without one come last, by code."""
    scripts: tuple[str, ...] = ()
    """First words of the Unicode names of its letters: ``LATIN``, ``CYRILLIC``."""
    shared_scripts: tuple[str, ...] = ()
    """Scripts that count for it only beside one of its own (Han beside kana)."""
    own_letters: str = ""
    """Letters that no other language of the script has."""
    letters: str = ""
    """Letters that stand without spaces between words, as a character class; where ``spaced`` is false."""
    same_letters: Mapping[str, str] = field(default_factory=dict)
    """Letters that are read as others: ``ё`` as ``е``."""
    alphabet: str = ""
    """Its letters as a character class, ``a-z``; words with others speak against it. Empty: any letter."""
    common_words: frozenset[str] = frozenset()
    """Small words that other languages of the script do not share."""
    spaced: bool = True
    """False where no spaces stand between words."""
    capitals: bool = False
    """True where a sentence begins with a capital letter."""
    verdict_tokens: int = 3
    """How many tokens "yes" or "no" may need: a tokenizer without the script cuts within a letter, and the
    first bytes of both words can be the same."""


@dataclass(frozen=True)
class Others:
    """``others.toml``: what is known of languages that have no folder."""

    languages: Mapping[str, Script] = field(default_factory=dict)
    """How they are told, by code; ``und`` stands for all others in a script."""
    wide_scripts: tuple[str, ...] = ()
    """Scripts of which a letter carries about as much as two letters of an alphabet."""
    unspaced: tuple[str, ...] = ()
    """Further letters that stand without spaces between words, as character classes."""
    joiners: frozenset[str] = frozenset()
    """Words with which a sentence goes on after a space, in scripts in which spaces end sentences."""
    yes: frozenset[str] = frozenset()
    no: frozenset[str] = frozenset()
    yes_phrases: tuple[str, ...] = ()
    no_phrases: tuple[str, ...] = ()
    abstentions: tuple[str, ...] = ()
    """Patterns of "I don't know"."""
    orders: tuple[str, ...] = ()
    """What an attacker may write to a judge."""


@dataclass(frozen=True, eq=False)
class Language:
    """One language: its code and the folder with its data. Files are read when they are first needed."""

    code: str
    folder: Traversable = field(repr=False)
    _rules: dict[type[Any], Any] = field(default_factory=dict, repr=False)

    @cached_property
    def script(self) -> Script:
        """``language.toml``."""
        return self.rules(Script)

    @property
    def name(self) -> str:
        """In English: ``"Russian"``."""
        return self.script.name or self.code

    def rules(self, shape: type[S]) -> S:
        """The language's file for ``shape.topic``, typed; the defaults where it has none.

        Raises
        ------
        LanguageError
            The file is not TOML, or has a key or value that the shape has not.
        """
        # Files are read by topic: a run in one language needs few of them.
        if shape not in self._rules:
            self._rules[shape] = _typed(shape, self.data(shape.topic), self._where(shape.topic))
        rules: S = self._rules[shape]
        return rules

    def data(self, path: str) -> Mapping[str, Any]:
        """A TOML file of the folder as it is, ``"prompts/common"``; empty where there is none.

        Raises
        ------
        LanguageError
            The file is not TOML.
        """
        file = self.folder.joinpath(f"{path}.toml")
        if not file.is_file():
            return {}
        try:
            return tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise LanguageError(f"{self._where(path)}: {error}") from None

    def _where(self, path: str) -> str:
        return f"language {self.code!r}, {path}.toml"


class Catalog:
    """All languages that this installation has, by code.

    Parameters
    ----------
    extra
        Folders of languages beside those of the package and of entry points, by code; they win.
    """

    def __init__(self, extra: Mapping[str, Traversable] | None = None) -> None:
        # A package may replace a language of ours as a whole, never in part: files belong together.
        found = {**dict(_packaged()), **dict(_installed()), **(extra or {})}
        languages = [Language(code, folder) for code, folder in found.items()]
        languages.sort(key=lambda each: (each.script.rank, each.code))
        self._languages = {each.code: each for each in languages}
        self._rules: dict[tuple[type[Any], str], Any] = {}
        self._readings: dict[str, tuple[Language, ...]] = {}

    def __iter__(self) -> Iterator[Language]:
        return iter(self._languages.values())

    @property
    def default(self) -> Language:
        """The language of :data:`DEFAULT`."""
        return self._languages[DEFAULT]

    def get(self, code: str | None) -> Language | None:
        """The language of a code such as ``ru`` or ``ru-RU``; None where it is not known."""
        return self._languages.get(short_code(code))

    @cached_property
    def others(self) -> Others:
        """What is known of languages that have no folder; of those that have one, nothing."""
        file = files(__package__).joinpath("others.toml")
        found = _typed(Others, tomllib.loads(file.read_text(encoding="utf-8")), "others.toml")
        languages = {code: each for code, each in found.languages.items() if code not in self._languages}
        return replace(found, languages=languages)

    @cached_property
    def rivals(self) -> bool:
        """Whether two languages share a script, so that words can't tell which one is meant."""
        scripts = [script for each in self for script in each.script.scripts]
        return len(scripts) > len(set(scripts))

    def reading(self, code: str | None = None) -> tuple[Language, ...]:
        """The languages by whose words text in ``code`` is read: one for each script.

        Texts mix scripts (Latin product names in a Russian answer), and words in different scripts can't be taken
        for each other. Of the languages in one script, it is the text's own, or else the first.
        """
        key = short_code(code)
        if key not in self._readings:
            by_script: dict[str, Language] = {}
            own = self._languages.get(key)
            for each in ([own] if own else []) + list(self):
                for script in each.script.scripts:
                    by_script.setdefault(script, each)
            # In the catalog's order, so that two texts with the same languages share their rules.
            chosen = set(by_script.values())
            self._readings[key] = tuple(each for each in self if each in chosen)
        return self._readings[key]

    def rules(self, shape: type[S], code: str | None = None) -> S:
        """The rules of :meth:`reading` as one: sets and lists put together, of the rest the first that is given."""
        # By the languages and not by the code: most codes come to the same ones.
        codes = "+".join(each.code for each in self.reading(code))
        if (shape, codes) not in self._rules:
            self._rules[shape, codes] = _together(shape, [each.rules(shape) for each in self.reading(code)])
        rules: S = self._rules[shape, codes]
        return rules


@cache
def catalog() -> Catalog:
    """The languages of this process, looked for once."""
    return Catalog()


def known_languages() -> tuple[str, ...]:
    """Codes of all known languages, the default first."""
    return tuple(each.code for each in catalog())


def language(code: str, otherwise: str | None = None) -> Language:
    """The language of a code, or else of the code ``otherwise``.

    Raises
    ------
    LanguageError
        It is not known.
    """
    found = catalog().get(code) or catalog().get(otherwise)
    if found is None:
        raise LanguageError(f"unknown language {code!r}; known: {', '.join(known_languages())}")
    return found


def rules(shape: type[S], code: str | None = None) -> S:
    """See :meth:`Catalog.rules`."""
    return catalog().rules(shape, code)


def short_code(code: str | None) -> str:
    """``ru`` for ``RU_ru``; empty for None."""
    return (code or "").strip().casefold().replace("_", "-").partition("-")[0]


def _packaged() -> Iterator[tuple[str, Traversable]]:
    for folder in files(__package__).iterdir():
        if folder.is_dir() and folder.joinpath("language.toml").is_file():
            yield folder.name, folder


def _installed() -> Iterator[tuple[str, Traversable]]:
    for entry in installed_points(GROUP):
        folder = files(entry.value)
        if not folder.joinpath("language.toml").is_file():
            raise LanguageError(f"the package {entry.value!r} (language {entry.name!r}) has no language.toml")
        yield entry.name, folder


def _typed(shape: type[T], data: Mapping[str, Any], where: str) -> T:
    hints = _hints(shape)
    # A misspelt key would silently leave a rule out.
    unknown = sorted(data.keys() - hints.keys())
    if unknown:
        raise LanguageError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(hints))}")
    return shape(**{key: _value(hints[key], value, f"{where}: {key}") for key, value in data.items()})


def _hints(shape: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(shape)
    return {each.name: hints[each.name] for each in fields(shape)}


def _value(kind: Any, value: Any, where: str) -> Any:
    """A TOML value as the field's type. A string where a collection is wanted is its words; a set holds words
    casefolded, a tuple holds strings as they are.
    """
    origin = get_origin(kind) or kind
    if origin in (frozenset, tuple):
        items = value.split() if isinstance(value, str) else value
        if not isinstance(items, list):
            raise LanguageError(f"{where} must be a list, or a string of words")
        inner = get_args(kind)[0]
        found = [_value(inner, item, where) for item in items]
        # Words are looked up as texts are folded: "dreißig" as "dreissig".
        return frozenset(word.casefold() for word in found) if origin is frozenset else tuple(found)
    if is_dataclass(kind) and isinstance(value, dict):
        return _typed(cast("type[Any]", kind), value, where)
    if origin is Mapping:
        if not isinstance(value, dict):
            raise LanguageError(f"{where} must be a table")
        inner = get_args(kind)[1]
        return {key: _value(inner, item, where) for key, item in value.items()}
    # TOML tells 100 from 100.0, people don't; a boolean is an int to Python.
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, origin):
        raise LanguageError(f"{where} must be of the type {origin.__name__}, not {type(value).__name__}")
    return value


def _together(shape: type[S], parts: Sequence[S]) -> S:
    merged: dict[str, Any] = {}
    for each in fields(shape):
        values = [getattr(part, each.name) for part in parts]
        first = values[0] if values else None
        if isinstance(first, frozenset):
            merged[each.name] = frozenset().union(*values)
        elif isinstance(first, tuple):
            merged[each.name] = tuple(item for value in values for item in value)
        elif isinstance(first, Mapping):
            merged[each.name] = _united(values)
        else:
            merged[each.name] = next((value for value in values if value), first)
    return shape(**merged)


def _united(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for table in tables:
        for key, item in table.items():
            if key not in found:
                found[key] = item
            elif isinstance(item, frozenset):
                found[key] |= item
            elif isinstance(item, tuple):
                found[key] += item
    return found
