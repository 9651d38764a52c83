"""The language of text, recognised by its script and, within a script, by small words and letters."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache

from pytest_ragbench.languages import Catalog, Script, catalog


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{''.join(each.script.letters for each in catalog())}]")


def is_unspaced(character: str) -> bool:
    """True for a letter that a known language writes without spaces between words: Han, Hiragana, Katakana."""
    return _unspaced().match(character) is not None


def is_spaced(code: str) -> bool:
    """Whether a language, known by a folder or not, puts spaces between words."""
    known = catalog().get(code)
    told = known.script if known else catalog().others.languages.get(code)
    return told is None or told.spaced


@cache
def _same_letters(lang: str | None) -> tuple[tuple[str, str], ...]:
    return tuple(pair for each in catalog().reading(lang) for pair in each.script.same_letters.items())


def fold(text: str, lang: str | None = None) -> str:
    """The text casefolded, with letters that the languages read as others (ё as е) exchanged."""
    text = text.casefold()
    for letter, other in _same_letters(lang):
        text = text.replace(letter, other)
    return text


def same_letters(text: str) -> str:
    """The text as it is, with letters exchanged that languages read as others, in either case: Ё by Е."""
    for letter, other in _same_letters(None):
        for written, read in ((letter, other), (letter.upper(), other.upper())):
            text = text.replace(written, read).replace(unicodedata.normalize("NFD", written), read)
    return text


def language_to_read(text: str) -> str | None:
    """The language by whose words ``text`` is read: its own where languages share a script, else None.

    Words in different scripts are not taken for each other, so that then no language need be known.
    """
    return detect_language(text) if catalog().rivals else None


@lru_cache(maxsize=1024)
def detect_language(text: str) -> str:
    """The language of ``text`` as an ISO 639-1 code, or ``"und"`` where it can't be told.

    The script with most letters wins; a letter of a wide script (Han, kana) counts twice, because it carries
    about as much as two letters of an alphabet. A script that languages share counts for one of them only beside
    its own: Han beside kana is Japanese, alone it is Chinese. Among the languages of the script, one that has a
    letter of its own in the text wins (Ukrainian ї); else the one whose small words occur most, unless those of
    others outnumber them (then ``"und"``).
    """
    # Composed, since letters of one language alone (ї) and small words are looked up as they are written.
    return _detector().language_of(unicodedata.normalize("NFC", text))


class _Detector:
    """The languages of a catalog by script."""

    def __init__(self, languages: Catalog) -> None:
        others = languages.others
        self._wide = others.wide_scripts
        self._group: dict[str, str] = {}  # script -> name of the scripts that speak for the same languages
        self._shared: dict[str, str] = {}
        self._known: dict[str, list[tuple[str, Script]]] = defaultdict(list)
        self._others: dict[str, list[tuple[str, Script]]] = defaultdict(list)
        for each in languages:
            self._add(each.code, each.script, self._known)
        for code, script in others.languages.items():
            self._add(code, script, self._others)

    def _add(self, code: str, script: Script, to: dict[str, list[tuple[str, Script]]]) -> None:
        for name in script.scripts:
            group = self._group.setdefault(name, self._group.get(script.scripts[0], script.scripts[0]))
            if (code, script) not in to[group]:
                to[group].append((code, script))
        for name in script.shared_scripts:
            self._shared.setdefault(name, self._group[script.scripts[0]])

    def language_of(self, text: str) -> str:
        counts: dict[str, int] = {}
        # Counted by character first: there are many letters and few different ones.
        for character, times in Counter(unicodedata.normalize("NFKC", text)).items():
            if character.isalpha():
                script = "LATIN" if character.isascii() else _script(character)
                group = self._group.get(script, script)
                counts[group] = counts.get(group, 0) + (2 * times if script in self._wide else times)
        for script, owner in self._shared.items():
            if owner in counts:
                counts[owner] += counts.pop(script, 0)
        if not counts:
            return "und"
        group = max(counts, key=lambda name: counts[name])
        return self._within(text, self._known.get(group, ()), self._others.get(group, ()))

    def _within(
        self, text: str, known: Sequence[tuple[str, Script]], others: Sequence[tuple[str, Script]]
    ) -> str:
        """Which of the languages in one script."""
        # A letter of its own settles it: Ukrainian looks like Russian in everything else.
        letters = set(text.lower())
        for code, script in (*known, *others):
            if letters & set(script.own_letters):
                return code
        if not known or not any(script.common_words for _, script in known):
            return next((code for code, _ in (*known, *others)), "und")
        words = re.findall(r"[^\W\d_]+", text.casefold())
        best, lead = "und", 0
        for code, script in known:
            strange = frozenset[str]().union(*(each.common_words for _, each in (*known, *others)))
            strange -= script.common_words
            own = sum(word in script.common_words for word in words)
            foreign = sum(word in strange for word in words)
            if script.alphabet:
                letter = re.compile(f"[^{script.alphabet}]")
                foreign += sum(letter.search(word) is not None for word in words)
            # One word in five may be foreign: product names, quotations.
            if foreign <= own + len(words) // 5 and (best == "und" or own - foreign > lead):
                best, lead = code, own - foreign
        return best


@cache
def _detector() -> _Detector:
    return _Detector(catalog())


@lru_cache(maxsize=8192)
def _script(character: str) -> str:
    """First word of the letter's Unicode name, which is its script; Latin letters with accents count as Latin."""
    return unicodedata.name(character, "").split(" ")[0]
