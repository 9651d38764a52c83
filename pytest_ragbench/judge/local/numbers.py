"""Numbers as they are written in English, Russian and Japanese, with their units."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pytest_ragbench.judge.local.lexicon import (
    COUNTERS_JA,
    MONTH,
    MULTIPLIER,
    NUMBER_WORD,
    UNIT,
    WEAK_NUMBER_WORD,
)

_KANJI = "〇一二三四五六七八九"
_SCALE_JA = {"十": 10.0, "百": 100.0, "千": 1000.0, "万": 1e4, "億": 1e8, "兆": 1e12}
_NOT_NUMBERS_JA = re.compile(
    "十分(?!間|後|前)|一番|一部|一般|一方|一定|一体|一時|一致|一種|一緒|一気|一覧|一旦|一切|一層|一貫|一環|一見|一律|統一|唯一|"
    "万一|万能|万博|千葉|三角|四角|四季|二酸化|百科|八百屋|九州|四国|三重|五輪|十字"
)
_DIGITS = re.compile(
    r"\d+(?:\.\d+){2,}|\d{1,3}(?:[ ,.'’]\d{3})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?(?![.,]?\d)|\d+"
)
_JA_NUMBER = re.compile(rf"[\d{_KANJI}十百千万億兆][\d.,{_KANJI}十百千万億兆]*")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_UNIT_AFTER = re.compile(r"[ -]?(%|[$€₽¥]|[^\W\d_]+)")
_CURRENCY_BEFORE = re.compile(r"[$€₽¥£] ?$")


@dataclass(frozen=True, slots=True)
class Number:
    """One number in a text. ``readings`` has two values where the notation is ambiguous (1.000)."""

    readings: frozenset[float]
    unit: str
    """Normalised unit, ``month`` for a month (1-12), or ``""`` where none is known."""
    start: int
    end: int
    text: str
    firm: bool = True
    """False where the word is a number only now and then ("one")."""

    def matches(self, other: Number) -> bool:
        """True where both can be the same quantity: a shared reading and no two different units."""
        if not self.readings & other.readings and not self._rounds(other):
            return False
        return not (self.unit and other.unit and self.unit != other.unit)

    def _rounds(self, other: Number) -> bool:
        """8.5 million for 8,537,673: the claim keeps at least one leading digit and the size."""
        for mine in self.readings:
            digits = f"{mine:.0f}".rstrip("0")
            if mine < 10_000 or len(digits) > 3:
                continue
            step = 10.0 ** (len(f"{mine:.0f}") - len(digits))
            if any(
                theirs != mine and theirs % step and 0 <= theirs - mine < step for theirs in other.readings
            ):
                return True
            if any(
                theirs != mine and theirs % step and abs(theirs - mine) <= step / 2
                for theirs in other.readings
            ):
                return True
        return False


def numbers(text: str) -> list[Number]:
    """Numbers of NFKC-normalised ``text``, in order, without overlaps."""
    found = [*_japanese(text), *_digits(text), *_words(text)]
    found.sort(key=lambda number: (number.start, -number.end))
    kept: list[Number] = []
    for number in found:
        if not kept or number.start >= kept[-1].end:
            kept.append(number)
    return kept


def _digits(text: str) -> list[Number]:
    found = []
    for match in _DIGITS.finditer(text):
        digits = match.group()
        readings = _readings(digits)
        end = match.end()
        if multiplier := re.match(r"[ -]?([^\W\d_]+)\.?", text[end : end + 16]):
            factor = MULTIPLIER.get(multiplier.group(1).casefold())
            if factor is not None and multiplier.group(1) != "K":
                readings = frozenset(round(value * factor, 6) for value in readings)
                end += multiplier.end()
        unit, end = _unit(text, match.start(), end)
        found.append(Number(readings, unit, match.start(), end, text[match.start() : end].strip()))
    return found


def _readings(digits: str) -> frozenset[float]:
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
    if len(groups) == 1 and groups[0] in ",.":
        return frozenset({whole, whole / 1000})
    return frozenset({whole})


def _unit(text: str, start: int, end: int) -> tuple[str, int]:
    """The unit of the number at ``start``..``end`` and where number and unit end."""
    if before := _CURRENCY_BEFORE.search(text[:start]):
        return UNIT.get(before.group().strip(), before.group().strip()), end
    after = _UNIT_AFTER.match(text, end)
    if after is None:
        return "", end
    word = after.group(1)
    folded = word.casefold().replace("ё", "е")
    if folded in UNIT:
        return UNIT[folded], after.end()
    latin = re.match("[a-z]+", folded)
    if latin is not None and latin.group() in UNIT and not word.isascii():
        return UNIT[latin.group()], after.start(1) + latin.end()
    # Japanese writes the unit and what follows in one run.
    for length in (7, 6, 5, 4, 3, 2, 1):
        if (
            ord(word[0]) > 0x3000
            and word[:length] in UNIT
            and not word[length - 1 : length + 1].endswith("ー")
        ):
            return UNIT[word[:length]], after.start(1) + length
    return "", end


def _japanese(text: str) -> list[Number]:
    found = []
    for match in _JA_NUMBER.finditer(text):
        run = match.group().rstrip(".,")
        end = match.start() + len(run)
        starts_with_digit = run[0].isdigit() and run[0].isascii()
        kanji_only = not any(c.isascii() for c in run)
        following = text[end : end + 1]
        if starts_with_digit and not re.search("[十百千万億兆]", run):
            if (
                following == "月"
                and text[end + 1 : end + 2] != "間"
                and run.isdigit()
                and 1 <= int(run) <= 12
            ):
                found.append(Number(frozenset({float(run)}), "month", match.start(), end + 1, run + "月"))
            continue
        if kanji_only and (
            _NOT_NUMBERS_JA.match(text, match.start())
            or (
                (following not in COUNTERS_JA or not following)
                and not (len(run) >= 2 and re.search("[十百千万億兆]", run))
                and text[match.start() - 1 : match.start()] != "第"
            )
        ):
            continue
        value = _kanji_value(run)
        if value is None:
            continue
        month = following == "月" and text[end + 1 : end + 2] != "間" and 1 <= value <= 12
        unit, end = ("month", end + 1) if month else _unit(text, match.start(), end)
        found.append(
            Number(frozenset({value}), unit, match.start(), end, text[match.start() : end], firm=run != "一")
        )
    return found


def _kanji_value(run: str) -> float | None:
    """3億5000万, 二十三, 1.5万; None where the run is no number."""
    total = section = 0.0
    digits = ""
    for character in run.replace(",", ""):
        if character in _SCALE_JA:
            scale = _SCALE_JA[character]
            try:
                number = float(digits) if digits else 0.0
            except ValueError:
                return None
            if scale < 1e4:
                section += (number or 1.0) * scale
            else:
                total += ((section + number) or 1.0) * scale
                section = 0.0
            digits = ""
        else:
            digits += str(_KANJI.index(character)) if character in _KANJI else character
    try:
        return total + section + (float(digits) if digits else 0.0)
    except ValueError:
        return None


def _words(text: str) -> list[Number]:
    found: list[Number] = []
    pending: list[tuple[re.Match[str], float]] = []

    def flush() -> None:
        if not pending:
            return
        value = _combine([number for _, number in pending])
        start, end = pending[0][0].start(), pending[-1][0].end()
        words = [match.group().casefold().replace("ё", "е") for match, _ in pending]
        firm = len(words) > 1 or words[0] not in WEAK_NUMBER_WORD
        unit, end = _unit(text, start, end)
        found.append(Number(frozenset({value}), unit, start, end, text[start:end], firm=firm))
        pending.clear()

    for match in re.finditer(r"[^\W\d_]+", text):
        word = match.group().casefold().replace("ё", "е")
        if word in MONTH:
            flush()
            # "may" and "march" are verbs unless a number or a capital says otherwise.
            near = re.search(r"\d[ .]*$", text[max(0, match.start() - 4) : match.start()]) or re.match(
                r"\.? ?\d", text[match.end() : match.end() + 3]
            )
            if (
                near
                or (word not in ("may", "march", "mar", "мая") and match.group()[0].isupper())
                or _cyrillic(word)
            ):
                found.append(
                    Number(
                        frozenset({float(MONTH[word])}), "month", match.start(), match.end(), match.group()
                    )
                )
            continue
        value = NUMBER_WORD.get(word)
        if value is None and pending:
            value = MULTIPLIER.get(word)
        if value is None:
            if word == "and" and pending:
                continue
            flush()
            continue
        if (
            pending and re.search(r"[^\s-]", text[pending[-1][0].end() : match.start()].replace("and", ""))
        ) or (pending and not _extends([number for _, number in pending], value)):
            flush()
        pending.append((match, value))
    flush()
    return found


def _cyrillic(word: str) -> bool:
    return "а" <= word[0] <= "ё"


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
