"""Numbers as languages write them, in digits, words and characters, with their units."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import ClassVar

from pytest_ragbench.judge.local.quantities import Number
from pytest_ragbench.languages import rules
from pytest_ragbench.text import fold, is_unspaced

_DIGITS = re.compile(
    r"\d+(?:\.\d+){2,}|\d{1,3}(?:[ ,.'’]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?(?![.,]?\d)|\d+"
)
_CLOCK = r"(?<![\d:])(?<!\d[.,])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?![\d:])"
_WORD = re.compile(r"[^\W\d_]+")
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+$")
_LETTERS_AFTER = re.compile(r"[^\W\d_]{1,2}(?![^\W_])")
_BEFORE_NUMBERS = frozenset({"v", "p", "no", "us", "usd", "eur", "gbp", "jpy", "rub", "rs", "q"})
"""Letters that stand right before a number and make no name of it."""
_LONGEST_IN_NAME = 2
"""Digits before the capitals of a name such as 3D."""
_UNIT_AFTER = re.compile(r"[ -]?(%|[$€₽¥]|[^\W\d_]+)")
_CURRENCY_BEFORE = re.compile(r"[$€₽¥£] ?$")
_LONGEST_UNIT = 7
"""Letters of the longest unit that is written in one run with what follows."""


@dataclass(frozen=True)
class NumberRules:
    """``numbers.toml``: numbers in words and characters, and units. Forms are casefolded."""

    topic: ClassVar[str] = "numbers"

    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Value to its words: ``2`` to "two", "twice"."""
    multipliers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Value to the words that multiply the number before them."""
    joiners: frozenset[str] = frozenset()
    """What can stand between the words of a number: "two hundred and five"."""
    weak_words: frozenset[str] = frozenset()
    """Words that are numbers only now and then: they can support a claim, but need no support."""
    units: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The name that all languages share, to its forms."""
    fractions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Value to its words, which are numbers only before a unit: ``0.25`` to "quarter"."""
    before_units: frozenset[str] = frozenset()
    """What can stand between such a word and its unit: "a quarter of an hour"."""
    compounds: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """``"VALUE UNIT"`` to words for both in one: ``"14 day"`` to "fortnight"."""
    halves: tuple[str, ...] = ()
    """What adds a half to the number before it: "and a half"."""
    half_mark: str = ""
    """The same, behind a unit without spaces: 1時間半."""
    clocks: tuple[str, ...] = ()
    """Patterns of times of day other than 9:30, with groups ``hour``, ``minute`` or ``half``, and ``am`` or ``pm``
    where the half of the day is named."""
    at_most: tuple[str, ...] = ()
    """Words that make a number an upper limit, right before it, or right behind it where no spaces stand."""
    at_least: tuple[str, ...] = ()
    """The same of a lower limit."""
    months: tuple[frozenset[str], ...] = ()
    """Names from January to December."""
    capital_months: tuple[frozenset[str], ...] = ()
    """The same, where they are names only with a capital or beside a number."""
    ambiguous_months: frozenset[str] = frozenset()
    """Those of ``capital_months`` that need a number beside them."""

    digits: tuple[str, ...] = ()
    """Characters for the digits from 0 to 9."""
    scales: Mapping[str, float] = field(default_factory=dict)
    """Characters that multiply: 百 by 100."""
    counters: frozenset[str] = frozenset()
    """Characters after which, and only after which, a character is a number."""
    ordinal_marks: frozenset[str] = frozenset()
    """Characters before an ordinal."""
    month_mark: str = ""
    """What a number from 1 to 12 is the number of a month before."""
    not_months: frozenset[str] = frozenset()
    """What makes months in the sense of a duration of it."""
    not_numbers: tuple[str, ...] = ()
    """Patterns of words that begin with a character for a number and are none."""
    joined_marks: frozenset[str] = frozenset()
    """Characters that belong to the unit before them."""


def numbers(text: str, lang: str | None = None) -> list[Number]:
    """Numbers of NFKC-normalised ``text``, in order, without overlaps. ``lang``: whose words count in its script."""
    return _notation(lang).numbers(text)


@cache
def _notation(lang: str | None) -> _Notation:
    return _Notation(rules(NumberRules, lang), lang)


class _Notation:
    """Reads numbers by the rules of one language for each script."""

    def __init__(self, rules: NumberRules, lang: str | None) -> None:
        self.rules = rules
        self.lang = lang
        self.units = {name: name for name in rules.units}
        self.units |= {form: name for name, forms in rules.units.items() for form in forms}
        self.values = {word: float(value) for value, words in rules.words.items() for word in words}
        self.factors = {word: float(value) for value, words in rules.multipliers.items() for word in words}
        self.months = _by_number(rules.months)
        self.capital_months = _by_number(rules.capital_months)
        self.digits = {character: value for value, character in enumerate(rules.digits)}
        characters = re.escape("".join([*rules.digits, *rules.scales]))
        self.characters = re.compile(rf"[\d{characters}][\d.,{characters}]*") if characters else None
        self.half = re.compile(rf"\s+(?:{'|'.join(rules.halves)})\b", re.IGNORECASE) if rules.halves else None
        self.limits = sorted(
            [(each, "most") for each in rules.at_most] + [(each, "least") for each in rules.at_least],
            key=lambda pair: -len(pair[0]),
        )
        """The longest first: "no more than" is not "more than"."""
        self.amounts = self._amounts()
        self.clocks = [re.compile(pattern, re.IGNORECASE) for pattern in (_CLOCK, *rules.clocks)]
        self.not_numbers = re.compile("|".join(rules.not_numbers)) if rules.not_numbers else None

    def _amounts(self) -> list[tuple[re.Pattern[str], float, str]]:
        """Patterns of words that are numbers together with their unit, with value and unit."""
        found = []
        for amount, forms in self.rules.compounds.items():
            value, unit = amount.split()
            found.append((_one_of(forms), float(value), unit))
        between = "".join(f"{re.escape(word)}|" for word in sorted(self.rules.before_units)).rstrip("|")
        for amount, forms in self.rules.fractions.items():
            words = "|".join(re.escape(form) for form in sorted(forms))
            pattern = rf"\b(?:{words})(?:\s+(?:{between or '(?!)'}))*\s+(?P<unit>[^\W\d_]+)"
            found.append((re.compile(pattern, re.IGNORECASE), float(amount), ""))
        return found

    def in_amounts(self, text: str) -> list[Number]:
        """Half an hour, a fortnight."""
        found = []
        for pattern, value, named in self.amounts:
            for match in pattern.finditer(text):
                unit = named or self.units.get(fold(match.group("unit"), self.lang), "")
                if unit:
                    readings = frozenset({value})
                    found.append(Number(readings, unit, match.start(), match.end(), match.group()))
        return found

    def on_clocks(self, text: str) -> list[Number]:
        """Times of day, in hours: 9:00 is a plain 9, as in "from 9 to 17", and 9:30 is neither 9 nor 30."""
        found = []
        for pattern in self.clocks:
            for match in pattern.finditer(text):
                named = match.groupdict()
                if self._in_name(text, match.start(), match.end()):
                    continue
                hours = float(named["hour"])
                if halves := named.get("am") or named.get("pm"):
                    hours = hours % 12 + (12 if named.get("pm") else 0)
                minutes = named.get("minute") or (30 if named.get("half") else 0)
                hours += float(minutes) / 60
                readings, clock = frozenset({hours}), "12" if halves else "24"
                found.append(Number(readings, "", match.start(), match.end(), match.group(), clock=clock))
        return found

    def numbers(self, text: str) -> list[Number]:
        found = [
            *self.in_amounts(text), *self.on_clocks(text), *self.in_characters(text), *self.in_digits(text),
            *self.in_words(text),
        ]  # fmt: skip
        # Of overlapping ones the longest that begins first: "3 million" rather than "3".
        found.sort(key=lambda number: (number.start, -number.end))
        kept: list[Number] = []
        for number in found:
            if not kept or number.start >= kept[-1].end:
                kept.append(self._limited(text, number))
        return kept

    def _limited(self, text: str, number: Number) -> Number:
        """The number, knowing whether it is a limit: at most 20 kg."""
        if number.unit == "month":
            return number
        before, after = text[: number.start].rstrip().casefold(), text[number.end :].lstrip()
        for words, limit in self.limits:
            unspaced = is_unspaced(words[0])
            place = None
            if unspaced and after.startswith(words):
                place = len(text) - len(after)
            elif not unspaced and re.search(rf"(?<!\w){re.escape(words)}$", before):
                place = len(text[: number.start].rstrip()) - len(words)
            if place is not None:
                at = (place, place + len(words))
                return replace(number, limit=limit, limit_words=words, limit_at=at)
        return number

    def in_digits(self, text: str) -> list[Number]:
        found = []
        for match in _DIGITS.finditer(text):
            if self._in_name(text, match.start(), match.end()):
                continue
            readings = _readings(match.group())
            end = match.end()
            if multiplier := re.match(r"[ -]?([^\W\d_]+)\.?", text[end : end + 16]):
                factor = self.factors.get(multiplier.group(1).casefold())
                # "300 K" is a temperature.
                if factor is not None and multiplier.group(1) != "K":
                    readings = frozenset(round(value * factor, 6) for value in readings)
                    end += multiplier.end()
            readings, end = self._and_a_half(text, readings, end)
            unit, end = self.unit(text, match.start(), end)
            readings, end = self._and_a_half(text, readings, end)
            found.append(Number(readings, unit, match.start(), end, text[match.start() : end].strip()))
        return found

    def _in_name(self, text: str, start: int, end: int) -> bool:
        """Whether the digits belong to a name: CO2, K7, GPT4, 3D; not EUR20, v2, 5kg or 90s."""
        before = _LETTERS_BEFORE.search(text, max(0, start - 12), start)
        if before is not None and not is_unspaced(text[start - 1]):
            letters = before.group().casefold()
            return letters not in self.units and letters not in _BEFORE_NUMBERS
        after = _LETTERS_AFTER.match(text, end)
        if after is None or not after.group().isupper() or end - start > _LONGEST_IN_NAME:
            return False
        return after.group().casefold() not in {**self.units, **self.factors} or after.group() in ("K", "G")

    def _and_a_half(self, text: str, readings: frozenset[float], end: int) -> tuple[frozenset[float], int]:
        """The number with a half that follows it, and where both end."""
        mark = self.rules.half_mark
        half = self.half.match(text, end) if self.half is not None else None
        if half is None and not (mark and text.startswith(mark, end) and is_unspaced(text[end - 1])):
            return readings, end
        longer = half.end() if half is not None else end + len(mark)
        return frozenset(value + 0.5 for value in readings), longer

    def unit(self, text: str, start: int, end: int) -> tuple[str, int]:
        """The unit of the number at ``start``..``end`` and where number and unit end."""
        if before := _CURRENCY_BEFORE.search(text[:start]):
            sign = before.group().strip()
            return self.units.get(sign, sign), end
        after = _UNIT_AFTER.match(text, end)
        if after is None:
            return "", end
        word = after.group(1)
        folded = fold(word, self.lang)
        if folded in self.units:
            return self.units[folded], after.end()
        # Latin units run into letters of other scripts: "5kmの".
        latin = re.match("[a-z]+", folded)
        if latin is not None and latin.group() in self.units and not word.isascii():
            return self.units[latin.group()], after.start(1) + latin.end()
        if is_unspaced(word[0]):
            # The unit and what follows stand in one run.
            for length in range(_LONGEST_UNIT, 0, -1):
                split = word[length - 1 : length + 1][-1:] not in self.rules.joined_marks
                if split and word[:length] in self.units:
                    return self.units[word[:length]], after.start(1) + length
        return "", end

    # Characters

    def in_characters(self, text: str) -> list[Number]:
        """Numbers such as 三百, 3億5000万, and months such as 3月."""
        found: list[Number] = []
        if self.characters is None:
            return found
        for match in self.characters.finditer(text):
            run = match.group().rstrip(".,")
            start, end = match.start(), match.start() + len(run)
            mark, after = text[end : end + 1], text[end + 1 : end + 2]
            month = mark != "" and mark == self.rules.month_mark and after not in self.rules.not_months
            if run[0].isdigit() and run[0].isascii() and self.rules.scales.keys().isdisjoint(run):
                if month and run.isdigit() and 1 <= int(run) <= 12:
                    readings = frozenset({float(run)})
                    found.append(Number(readings, "month", start, end + 1, run + mark))
                continue
            if not any(c.isascii() for c in run) and not self._counts(text, start, end):
                continue
            value = self.value(run)
            if value is None:
                continue
            unit, end = ("month", end + 1) if month and 1 <= value <= 12 else self.unit(text, start, end)
            readings, end = self._and_a_half(text, frozenset({value}), end)
            firm = run not in self.rules.weak_words
            found.append(Number(readings, unit, start, end, text[start:end], firm=firm))
        return found

    def _counts(self, text: str, start: int, end: int) -> bool:
        """Whether characters for a number are meant as one, told by what stands around them."""
        if self.not_numbers is not None and self.not_numbers.match(text, start):
            return False
        return (
            text[end : end + 1] in self.rules.counters
            or (end - start >= 2 and not self.rules.scales.keys().isdisjoint(text[start:end]))
            or text[start - 1 : start] in self.rules.ordinal_marks
        )

    def value(self, run: str) -> float | None:
        """3億5000万, 二十三, 1.5万; None where the run can't be read."""
        total = section = 0.0
        digits = ""
        for character in run.replace(",", ""):
            scale = self.rules.scales.get(character)
            if scale is None:
                digits += str(self.digits.get(character, character))
                continue
            number = _float(digits)
            if number is None:
                return None
            # 万 and above multiply all that was read so far, 千 and below only the digit before them.
            if scale < 1e4:
                section += (number or 1.0) * scale
            else:
                total += ((section + number) or 1.0) * scale
                section = 0.0
            digits = ""
        rest = _float(digits)
        return None if rest is None else total + section + rest

    # Words

    def in_words(self, text: str) -> list[Number]:
        """Numbers such as "twenty-five", and names of months."""
        found: list[Number] = []
        pending: list[tuple[re.Match[str], float]] = []

        def flush() -> None:
            if pending:
                found.append(self._of_words(text, pending))
                pending.clear()

        for match in _WORD.finditer(text):
            word = fold(match.group(), self.lang)
            month = self.months.get(word) or self.capital_months.get(word)
            if month is not None:
                flush()
                if word in self.months or self._is_month(text, match, word):
                    readings = frozenset({float(month)})
                    found.append(Number(readings, "month", match.start(), match.end(), match.group()))
                continue
            value = self.values.get(word)
            if value is None and pending:
                value = self.factors.get(word)
            if value is None:
                if word in self.rules.joiners and pending:
                    continue
                flush()
                continue
            if pending and not (
                self._joined(text[pending[-1][0].end() : match.start()])
                and _extends([number for _, number in pending], value)
            ):
                flush()
            pending.append((match, value))
        flush()
        return found

    def _of_words(self, text: str, words: list[tuple[re.Match[str], float]]) -> Number:
        start, end = words[0][0].start(), words[-1][0].end()
        firm = len(words) > 1 or fold(words[0][0].group(), self.lang) not in self.rules.weak_words
        readings, end = self._and_a_half(text, frozenset({_combine([number for _, number in words])}), end)
        unit, end = self.unit(text, start, end)
        readings, end = self._and_a_half(text, readings, end)
        return Number(readings, unit, start, end, text[start:end], firm=firm)

    def _joined(self, between: str) -> bool:
        """Whether nothing but spaces, hyphens and "and" stands between two words of a number."""
        for word in self.rules.joiners:
            between = between.replace(word, "")
        return re.search(r"[^\s-]", between) is None

    def _is_month(self, text: str, match: re.Match[str], word: str) -> bool:
        """Words such as "may" and "march" are verbs unless a number or a capital says otherwise."""
        if re.search(r"\d[ .]*$", text[max(0, match.start() - 4) : match.start()]):
            return True
        if re.match(r"\.? ?\d", text[match.end() : match.end() + 3]):
            return True
        return word not in self.rules.ambiguous_months and match.group()[0].isupper()


def _one_of(forms: frozenset[str]) -> re.Pattern[str]:
    """A pattern for one of the forms; words with spaces around them only as a whole."""
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile(
        "|".join(re.escape(f) if is_unspaced(f[0]) else rf"\b{re.escape(f)}\b" for f in longest_first),
        re.IGNORECASE,
    )


def _by_number(months: tuple[frozenset[str], ...]) -> dict[str, int]:
    """Name to number; languages follow each other, twelve by twelve."""
    return {name: place % 12 + 1 for place, names in enumerate(months) for name in names}


def _readings(digits: str) -> frozenset[float]:
    # Three parts or more that are not groups of three.
    if re.fullmatch(r"\d+(?:\.\d+){2,}", digits) and not re.fullmatch(r"\d{1,3}(?:\.\d{3})+", digits):
        # A version or a dotted date; kept apart from every plain number by its sign.
        return frozenset({-float(re.sub(r"\D", "", digits) or 0) - 0.5})
    grouped = re.fullmatch(r"(\d{1,3})((?:[ ,.'’]\d{3})+)(?:[.,](\d+))?", digits)
    if grouped is None:
        return frozenset({float(digits.replace(",", "."))})
    whole = float(re.sub(r"\D", "", grouped.group(1) + grouped.group(2)))
    if grouped.group(3):
        return frozenset({whole + float("0." + grouped.group(3))})
    groups = re.findall(r"[ ,.'’]", grouped.group(2))
    # "1.000" is a thousand in one country and one in another.
    if len(groups) == 1 and groups[0] in ",.":
        return frozenset({whole, whole / 1000})
    return frozenset({whole})


def _float(digits: str) -> float | None:
    try:
        return float(digits) if digits else 0.0
    except ValueError:
        return None


def _extends(values: list[float], value: float) -> bool:
    """True where "twenty" + "five", "two" + "hundred" go on as one number ("two three" does not)."""
    return value in (100.0, 1e3, 1e6, 1e9, 1e12) or (
        values[-1] >= 20 and value < values[-1] and values[-1] % 10 == 0
    )


def _combine(values: list[float]) -> float:
    total = current = 0.0
    for value in values:
        if value >= 1000:
            total += (current or 1.0) * value
            current = 0.0
        elif value == 100.0 and 0 < current < 100:
            current *= 100
        else:
            current += value
    return total + current
