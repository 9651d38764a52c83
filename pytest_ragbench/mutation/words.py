"""Words that rules exchange, in English, Russian and Japanese. Each pair changes the meaning, or keeps it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

UNITS: Mapping[str, Sequence[tuple[str, str]]] = {
    "en": [("days", "months"), ("day", "month"), ("hours", "days"), ("minutes", "hours"), ("weeks", "years"),
           ("months", "days"), ("years", "weeks"), ("dollars", "euros"), ("kilometres", "metres"),
           ("km", "m"), ("kg", "g"), ("MB", "GB"), ("GB", "MB"), ("percent", "per mille")],
    "ru": [("дней", "месяцев"), ("дня", "месяца"), ("день", "месяц"), ("часов", "дней"), ("часа", "дня"),
           ("минут", "часов"), ("недель", "лет"), ("месяцев", "дней"), ("лет", "недель"), ("рублей", "долларов"),
           ("километров", "метров"), ("км", "м"), ("кг", "г"), ("МБ", "ГБ"), ("ГБ", "МБ")],
    "ja": [("日間", "か月間"), ("日以内", "か月以内"), ("時間", "日間"), ("分以内", "時間以内"), ("週間", "年間"),
           ("か月", "日"), ("年間", "週間"), ("円", "ドル"), ("キロメートル", "メートル"), ("キログラム", "グラム")],
}  # fmt: skip

NEGATIONS: Mapping[str, Sequence[tuple[str, str]]] = {
    "en": [(r"\bcannot\b", "can"), (r"\bcan't\b", "can"), (r"\bis not\b", "is"), (r"\bare not\b", "are"),
           (r"\bdoes not need\b", "needs"), (r"\bmust not\b", "must"), (r"\bcan\b(?! not)", "cannot"),
           (r"\bis\b(?! not)", "is not"), (r"\bare\b(?! not)", "are not"), (r"\bmust\b(?! not)", "must not"),
           (r"\bwill\b(?! not)", "will not")],
    "ru": [(r"\bнельзя\b", "можно"), (r"\bможно\b", "нельзя"), (r"\bне может\b", "может"),
           (r"\bможет\b", "не может"), (r"\bне нужно\b", "нужно"), (r"\bнужно\b", "не нужно"),
           (r"\bнеобходимо\b", "не требуется"), (r"\bявляется\b", "не является"), (r"\bбудет\b", "не будет"),
           (r"\bможете\b", "не можете")],
    "ja": [("できません", "できます"), ("できます", "できません"), ("ありません", "あります"),
           ("あります", "ありません"),
           ("必要です", "必要ではありません"), ("されません", "されます"), ("されます", "されません"),
           ("ではありません", "です"), ("です", "ではありません")],
}  # fmt: skip

ADDED: Mapping[str, str] = {
    "en": "This was confirmed by an inspection in Ljubljana on 12 March 1987.",
    "ru": "Это подтвердила проверка, проведённая в Любляне 12 марта 1987 года.",
    "ja": "これは1987年3月12日にリュブリャナで行われた検査で確認されています。",
}

REPHRASED: Mapping[str, Sequence[tuple[str, str]]] = {
    "en": [(r"\bcan't\b", "cannot"), (r"\bdon't\b", "do not"), (r"\bneed to\b", "have to"),
           (r"\bwithin (\d+)", r"in no more than \1"), (r"\bYou'll\b", "You will"), (r"\bIt's\b", "It is"),
           (r"\bhelps\b", "is of help"), (r"\balso\b", "in addition"), (r"\bso\b", "therefore")],
    "ru": [(r"\bнужно\b", "необходимо"), (r"\bнельзя\b", "не разрешается"), (r"\bв течение\b", "на протяжении"),
           (r"\bтакже\b", "кроме того"), (r"\bпотому что\b", "так как"), (r"\bможно\b", "разрешается"),
           (r"\bсвыше\b", "более")],
    "ja": [("してください", "するようお願いします"), ("できます", "可能です"), ("また、", "そのほか、"),
           ("必要です", "必要となります"), ("ため、", "ので、")],
}  # fmt: skip

MONTHS: Mapping[str, Sequence[str]] = {
    "en": ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
           "November", "December"],
    "ru": ["января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября",
           "ноября", "декабря"],
    "ja": [],
}  # fmt: skip

WEEKDAYS: Mapping[str, Sequence[str]] = {
    "en": ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    "ru": ["понедельник", "вторник", "среду", "четверг", "пятницу", "субботу", "воскресенье"],
    "ja": ["月曜", "火曜", "水曜", "木曜", "金曜", "土曜", "日曜"],
}

NAMES: Mapping[str, Sequence[str]] = {
    "en": ["Harlow", "Tamsin"],
    "ru": ["Заречье", "Велемир"],
    "ja": ["松原", "リュミエ"],
}
"""In place of a name; the second where the text has the first."""

NAME: Mapping[str, re.Pattern[str]] = {
    # Inside a sentence, after a word without one, a capital is a name's: "from Osaka", "by Jane Smith".
    "en": re.compile(r"(?<!\w)[a-z][\w'-]*[,;]? ([A-Z][a-z]{2,}(?: [A-Z][a-z]+)*)"),
    "ru": re.compile(r"(?<!\w)[а-яё][\w-]*[,;]? ([А-ЯЁ][а-яё]{2,}(?: [А-ЯЁ][а-яё]+)*)"),
    # No capitals here: what stands before the words for a person, a place or a firm.
    "ja": re.compile(
        r"([一-鿿]{2,3}(?=市|県|区役所|駅|さん|氏|株式会社)|[ァ-ヺー・]{2,}(?=さん|氏|社|市|駅|店))"
    ),
}

NO_NAMES: Mapping[str, frozenset[str]] = {
    "en": frozenset({*MONTHS["en"], *WEEKDAYS["en"], "English", "Internet", "Web", "Mr", "Mrs"}),
    "ru": frozenset({"Вас", "Вам", "Вами", "Ваш", "Ваша", "Ваше", "Ваши", "Вашего", "Вашей", "Интернет"}),
    "ja": frozenset({"お客", "皆", "弊社"}),
}
"""Capitalised, or before such a word, and no name."""
