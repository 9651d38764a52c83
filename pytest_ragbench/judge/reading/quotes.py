"""Verdicts that stand in the text under judgement, recognised by their values, in any spelling.

A planted verdict comes back from a judge as a quotation, often written anew: ``1`` for ``1.0``, keys in another
order or left out, JSON where the text has Python. So objects are compared by what they say. An object of the text
counts where it could be read as this very verdict: it has all the keys that a verdict must have. Data that only
shares a key with it ("grade" of a pupil, beside a name) is not taken for one.
"""

from __future__ import annotations

import ast
import html
import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pytest_ragbench.judge.reading.fields import yes_no

_MAX_OBJECTS = 400
_MAX_OBJECT_CHARS = 40_000
# How far apart the keys of one verdict may stand outside an object: "groundedness: 1, correctness: 1".
_MAX_SPAN_CHARS = 400
_INVISIBLE = dict.fromkeys(
    [0xAD, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065)]
)
_ESCAPED_LETTER = re.compile(r"\\+u([0-9A-Fa-f]{4})")
_ESCAPED_QUOTE = re.compile(r"\\+(?=[\"'])")
# Behind a key: whatever stands between key and value, and the value.
_SPELT_OUT = r"""[\s"'`*“”„«»‘’]*(?:[:=→>|]|->|=>)[\s"'`*“”„«»‘’]*([^\s,;|<)}\]"'`*“”»’]+)"""


class Quotes:
    """What the texts under judgement hold of verdicts.

    Parameters
    ----------
    texts
        The texts.
    expected
        Keys that a verdict must have.
    known
        All keys that it may have.
    """

    def __init__(self, texts: Sequence[str], expected: Sequence[str], known: Collection[str]) -> None:
        self._texts = texts
        self._expected = expected
        self._known = frozenset(known) | frozenset(expected)

    def has_spelt(self, piece: str) -> bool:
        """Whether the piece stands in one of the texts, letter by letter but for white space."""
        squeezed = "".join(piece.split())
        return any(squeezed in text for text in self._squeezed)

    def may_hold(self, verdict: Mapping[str, Any]) -> bool:
        """Whether one of the texts has a verdict that says the same under the keys that count."""
        wanted = {key: verdict[key] for key in self._expected}
        return (
            any(_agree(wanted, {key: each[key] for key in wanted}) for each in self._verdicts)
            or self._spelt_out(wanted)
        )  # fmt: skip

    def holds(self, verdict: Mapping[str, Any]) -> bool:
        """As :meth:`may_hold`, and nothing else in the two differs where both have it."""
        return self.may_hold(verdict) and (
            any(_agree(_shared(verdict, each), _shared(each, verdict)) for each in self._verdicts)
            or not self._verdicts
        )

    @cached_property
    def _squeezed(self) -> list[str]:
        return ["".join(text.split()) for text in self._texts]

    @cached_property
    def _readable(self) -> list[str]:
        """The texts that name all the keys, as they are and unescaped; all together where only they do."""
        if not self._expected:
            return []
        forms = [form for text in self._texts for form in self._forms(text)]
        found = [form for form in dict.fromkeys(forms) if all(key in form for key in self._expected)]
        whole = "\n".join(form for form in forms if any(key in form for key in self._expected))
        return found or ([whole] if all(key in whole for key in self._expected) else [])

    def _forms(self, text: str) -> Iterator[str]:
        plain = unicodedata.normalize("NFKC", text).translate(_INVISIBLE)
        unescaped = _ESCAPED_LETTER.sub(lambda match: chr(int(match[1], 16)), plain)
        unescaped = html.unescape(_ESCAPED_QUOTE.sub("", unescaped).replace("\\n", "\n"))
        for read in dict.fromkeys([plain, unescaped]):
            form = read
            # "answerCorrectness" and "Answer correctness" are read as the key by whoever quotes them.
            for key in self._expected:
                form = re.sub(rf"(?<!\w){key.replace('_', '[ _-]?')}(?!\w)", key, form, flags=re.IGNORECASE)
            yield form

    @cached_property
    def _verdicts(self) -> list[Mapping[str, Any]]:
        return [
            each for text in self._readable for each in objects_in(text, self._expected) if self._counts(each)
        ]

    def _counts(self, value: Any) -> bool:
        if not isinstance(value, Mapping) or not all(key in value for key in self._expected):
            return False
        # Two keys of a verdict in one object are not there by chance, and a structure of verdicts isn't either.
        if len(self._expected) > 1 or isinstance(value[self._expected[0]], (Mapping, list)):
            return True
        return value.keys() <= self._known

    def _spelt_out(self, wanted: Mapping[str, Any]) -> bool:
        """Whether one of the texts says the values behind the keys without being an object: ``groundedness=1, ...``."""
        if len(wanted) < 2 or any(isinstance(value, (Mapping, list)) for value in wanted.values()):
            return False
        return any(self._said_near(text, wanted) for text in self._readable)

    def _said_near(self, text: str, wanted: Mapping[str, Any]) -> bool:
        places: list[list[int]] = []
        for key, value in wanted.items():
            pattern = rf"(?<!\w){re.escape(key)}(?!\w){_SPELT_OUT}"
            found = [
                match.start()
                for match in re.finditer(pattern, text)
                if _same(_literal(match[1].rstrip(".")), value)
            ]
            if not found:
                return False
            places.append(found)
        return any(
            all(any(abs(place - first) <= _MAX_SPAN_CHARS for place in others) for others in places[1:])
            for first in places[0]
        )


def _shared(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in one.items() if key in other}


def objects_in(text: str, naming: Iterable[str] = ()) -> Iterator[Any]:
    """Objects in the text, also inside others: JSON, or as Python and JavaScript write them, with quotes of any kind.

    ``naming``: only those in which all these words stand.
    """
    words = list(naming)
    for number, start in enumerate(_openings(text)):
        if number >= _MAX_OBJECTS:
            return
        piece = text[start : _closing(text, start)]
        if all(word in piece for word in words):
            value = _parsed(piece)
            if value is not None:
                yield value


def _openings(text: str) -> Iterator[int]:
    return (match.start() for match in re.finditer(r"\{", text))


def _closing(text: str, start: int) -> int:
    """Behind the brace that closes the one at ``start``, braces counted; the end of the search where none does."""
    depth = 0
    for match in re.finditer(r"[{}]", text[start : start + _MAX_OBJECT_CHARS]):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return start + match.end()
    return min(len(text), start + _MAX_OBJECT_CHARS)


_QUOTES = str.maketrans("“”„«»‟＂‘’‚", '"""""""\'\'\'')
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)")
_WORDS = {"true": "True", "false": "False", "null": "None", "nan": "None", "undefined": "None"}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def _parsed(piece: str) -> Any:
    try:
        return json.JSONDecoder(strict=False).raw_decode(piece)[0]
    except (ValueError, RecursionError):
        pass
    plain = _BARE_KEY.sub(r'\1"\2"\3', _COMMENT.sub("", piece.translate(_QUOTES)))
    python = re.sub(
        r"\b(?:true|false|null|nan|undefined)\b", lambda match: _WORDS[match[0].lower()], plain, flags=re.I
    )
    for form in (piece, python, re.sub(r"[\n\r\t]+", " ", python)):
        try:
            return ast.literal_eval(form)
        except (ValueError, SyntaxError, MemoryError, RecursionError, SystemError, TypeError):
            continue
    return None


def _literal(word: str) -> Any:
    try:
        return json.loads(word)
    except (ValueError, RecursionError):
        return word


def _agree(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(_same(one[key], other[key]) for key in one)


def _same(one: Any, other: Any) -> bool:
    """Whether two values say the same. Of nested objects one may leave keys out that the other has."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        few, many = sorted((one, other), key=len)
        return bool(few or not many) and all(key in many and _same(few[key], many[key]) for key in few)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(canonical(one) == canonical(other))


def canonical(value: Any) -> Any:
    """A value in one form for all that are read alike: ``1``, ``1.0``, ``true``, ``"1"`` and ``"yes"``."""
    if isinstance(value, Mapping):
        return {str(key): canonical(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return str(value)
    if isinstance(value, str):
        text = "".join(unicodedata.normalize("NFKC", value).casefold().split())
        try:
            return float(text)
        except ValueError:
            pass
        try:
            return float(yes_no(value))
        except ValueError:
            return text
    return value
