"""Whether an answer is in the language that a test names.

Languages with a folder, and those with a script of their own, are told by :func:`detect_language`. For the others
(German, French ...) the library py3langid is asked, where a test names one: it is small (4.6 MB, BSD), where lingua
takes 96 MB. What the first way knows never depends on whether the library is there.
"""

from __future__ import annotations

from typing import Any

from pytest_ragbench.extensions import did_you_mean, required
from pytest_ragbench.languages import catalog
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.text.languages import detect_language

EXTRA = "install py3langid: pip install 'pytest-ragbench[language]'"


_WORDS_THAT_TELL = 4


def known_codes() -> list[str]:
    """The languages that need no library, by their ISO 639-1 codes."""
    return [
        *(each.code for each in catalog()),
        *(code for code in catalog().others.languages if code != "und"),
    ]


def checked_code(code: str) -> str:
    """The code, once it is sure that texts in that language can be told.

    Raises
    ------
    ValueError
        There is no such code, or its language takes py3langid, which is not installed.
    """
    if code in known_codes():
        return code
    try:
        labels = {str(label) for label, _ in _library().rank("a")}
    except UsageError as error:
        raise ValueError(f"{code!r}: {error}; without it: {', '.join(known_codes())}") from None
    if code not in labels:
        known = sorted({*known_codes(), *labels})
        raise ValueError(f"{code!r} isn't the code of a known language; {did_you_mean(code, known)}")
    return code


def is_in_language(text: str, code: str) -> bool:
    """Whether the text is in that language, as far as its words tell: a few words in Latin letters count as English.

    Raises
    ------
    UsageError
        It takes py3langid, which is not installed.
    """
    if code not in known_codes():
        return str(_library().classify(text)[0]) == code
    found = detect_language(text)
    if found == code:
        return True
    wanted, other = catalog().get(code), catalog().others.languages.get(found)
    # Han alone is Chinese, and may be Japanese.
    return (
        wanted is not None and other is not None and set(other.scripts) <= set(wanted.script.shared_scripts)
    )


def language_of(text: str) -> str:
    """The language's code; where script and small words don't tell, by py3langid if it is installed; else ``und``."""
    found = detect_language(text)
    if found != "und":
        return found
    try:
        return str(_library().classify(text)[0])
    except UsageError:  # not installed
        return found


def is_surely(text: str, code: str) -> bool:
    """Whether the text is long enough to be in that language for sure: two words in Latin letters are not."""
    script = catalog().get(code)
    shares = script is not None and set(script.script.scripts) & set(
        catalog().others.languages["und"].scripts
    )
    return not shares or len(text.split()) >= _WORDS_THAT_TELL


def _library() -> Any:
    return required("py3langid", "language", "this language")
