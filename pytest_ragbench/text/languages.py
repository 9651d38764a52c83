"""Which language a text is in, told by its script and, for Latin letters, by its small words."""

# ruff: noqa: SIM905  (word lists read best as text)

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

# Names in unicodedata begin with the script; these are the scripts that name a language by themselves.
_LANGUAGE_OF_SCRIPT = {
    "CYRILLIC": "ru",
    "HANGUL": "ko",
    "THAI": "th",
    "ARABIC": "ar",
    "HEBREW": "he",
    "GREEK": "el",
    "DEVANAGARI": "hi",
    "GEORGIAN": "ka",
    "ARMENIAN": "hy",
}
_KANA = ("HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HALFWIDTH")
_UKRAINIAN = re.compile("[іїєґ]", re.IGNORECASE)
_CJK = re.compile(
    "[\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
)
# The commonest function words that the other languages in Latin script do not share with English.
_ENGLISH = frozenset(
    (
        "the of and to is are was were that this with for it you not from have has by which what who how "
        "when where why can does do did will would should they their there be been if your we our my"
    ).split()
)
_OTHER_LATIN = frozenset(
    (
        "der die das und ist nicht ein eine mit für von den dem im zu auf sich le la les des et est dans "
        "une pour qui que sur pas el los las y en del por con para una il di che e per non è sono un lo o "
        "da em um uma não de het een van niet op te w z na nie jest się i do"
    ).split()
)


def is_cjk(character: str) -> bool:
    """True for Han, Hiragana and Katakana: scripts that are written without spaces between words."""
    return _CJK.match(character) is not None


@lru_cache(maxsize=1024)
def detect_language(text: str) -> str:
    """The language of ``text`` as an ISO 639-1 code, or ``"und"`` where it can't be told.

    Kana means Japanese, Han without kana Chinese. Cyrillic is Russian unless a Ukrainian letter occurs.
    Latin letters are English unless small words of another language outnumber the English ones
    (then ``"und"``). The script with most letters wins; a Han or kana letter counts twice, because it
    carries about as much as two letters of an alphabet.
    """
    counts: dict[str, int] = {}
    for character in unicodedata.normalize("NFKC", text):
        if not character.isalpha():
            continue
        script = "LATIN" if character.isascii() else unicodedata.name(character, "").split(" ")[0]
        kind = "KANA" if script in _KANA else "HAN" if script == "CJK" else script
        counts[kind] = counts.get(kind, 0) + (2 if kind in ("KANA", "HAN") else 1)
    if counts.get("KANA"):
        counts["KANA"] += counts.pop("HAN", 0)
    if not counts:
        return "und"
    main = max(counts, key=lambda kind: counts[kind])
    if main == "KANA":
        return "ja"
    if main == "HAN":
        return "zh"
    if main == "CYRILLIC":
        return "uk" if _UKRAINIAN.search(text) else "ru"
    if main == "LATIN":
        return _latin(text)
    return _LANGUAGE_OF_SCRIPT.get(main, "und")


def _latin(text: str) -> str:
    words = re.findall(r"[^\W\d_]+", text.casefold())
    english = sum(word in _ENGLISH for word in words)
    other = sum(word in _OTHER_LATIN for word in words)
    accented = sum(not word.isascii() for word in words)
    return "und" if other + accented > english + len(words) // 5 else "en"
