"""The switch ``--hallucinate``: answers that the retrieved passages do not support.

Deterministic, so that the failing test of a newcomer fails the same way for everybody.
"""

from __future__ import annotations

import re
import zlib

# A number that stands alone; not the 8 in UTF-8, nor the version in a name such as json2.
# Letters are listed, because Japanese writes no space between a number and the next word.
_LETTER = "A-Za-zА-Яа-яЁё0-9_"
_NUMBER = re.compile(rf"(?<![{_LETTER}.-])\d+(?:\.\d+)?(?![{_LETTER}-]|\.\d)")
_NEGATIONS = {
    "en": [
        (r"\bdoes not need\b", "needs"),
        (r"\bneither (.+?) nor\b", r"both \1 and"),
        (r"\b(never|not|no)\b ?", ""),
    ],
    "ru": [(r"\bникогда не ", "всегда "), (r"\b[Нн]е ", ""), (r"\bбез\b", "вместе с")],
    # Not the "must" of なりません, which is no negation.
    "ja": [(r"必要ありません", "必須です"), (r"(?<!なり)(?<!いけ)ません(?=。|$)", "ます"), (r"不要", "必須")],
}
_INVENTED = {
    "en": [
        "It was introduced in version 7.3 at the request of the Norwegian Space Agency.",
        "It requires a paid licence that costs 49 dollars a month.",
        "It is switched off on Sundays and limited to 200 questions a day.",
    ],
    "ru": [
        "Это появилось в версии 7.3 по просьбе Норвежского космического агентства.",
        "Для этого нужна платная лицензия за 49 долларов в месяц.",
        "По воскресеньям это отключено, а в день разрешено не больше 200 вопросов.",
    ],
    "ja": [
        "この機能はノルウェー宇宙庁の要望によりバージョン7.3で追加されました。",
        "利用するには月額49ドルの有料ライセンスが必要です。",
        "日曜日は停止しており、1日の質問は200件までに制限されています。",
    ],
}


def falsify(answer: str, question: str, lang: str) -> str:
    """``answer`` made wrong: another number, else the opposite, else with an invented claim added."""
    changed = _NUMBER.sub(_other_number, answer)
    if changed != answer:
        return changed
    for pattern, replacement in _NEGATIONS[lang]:
        changed, count = re.subn(pattern, replacement, answer, count=1)
        if count:
            return changed[:1].upper() + changed[1:]
    return f"{answer} {invent(question, lang)}" if lang != "ja" else answer + invent(question, lang)


def invent(question: str, lang: str) -> str:
    """A claim from thin air; the same question always gets the same one."""
    claims = _INVENTED[lang]
    return claims[zlib.crc32(question.encode()) % len(claims)]


def _other_number(match: re.Match[str]) -> str:
    number = match[0]
    if "." in number:
        whole, fraction = number.split(".")
        # 0.8 -> 0.3, 3.11 -> 3.66: the same shape, so that the sentence still reads well.
        return f"{whole}.{''.join(str((int(digit) + 5) % 10) for digit in fraction)}"
    return str(int(number) + 5 if int(number) < 100 else int(number) + 50)
