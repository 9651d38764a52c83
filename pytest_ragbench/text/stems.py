"""Light stemming: enough to match the forms of one word, no dictionary.

NLTK (it comes with rouge-score) has Snowball stemmers, but importing it takes over a second; these
rules take none. Russian follows the Snowball algorithm, English a shorter set of its rules.
"""

from __future__ import annotations

import re
from functools import lru_cache

_IRREGULAR = {
    form: base
    for base, forms in {
        "begin": "began begun", "break": "broke broken", "bring": "brought", "build": "built", "buy": "bought",
        "catch": "caught", "choose": "chose chosen", "come": "came", "draw": "drew drawn", "drive": "drove driven",
        "eat": "ate eaten", "fall": "fell fallen", "feel": "felt", "find": "found", "fly": "flew flown",
        "forbid": "forbade forbidden", "forget": "forgot forgotten", "get": "got gotten", "give": "gave given",
        "go": "went gone", "grow": "grew grown", "hold": "held", "keep": "kept", "know": "knew known",
        "leave": "left", "lose": "lost", "make": "made", "mean": "meant", "meet": "met", "pay": "paid",
        "rise": "rose risen", "run": "ran", "say": "said", "see": "saw seen", "sell": "sold", "send": "sent",
        "speak": "spoke spoken", "spend": "spent", "take": "took taken", "teach": "taught", "tell": "told",
        "think": "thought", "understand": "understood", "win": "won", "write": "wrote written", "child": "children",
        "man": "men", "woman": "women", "person": "people persons", "foot": "feet", "lead": "led",
        "become": "became", "sing": "sang sung", "steal": "stole stolen", "use": "used using", "throw": "threw thrown",
    }.items()
    for form in forms.split()
}  # fmt: skip
_VOWEL = "аеиоуыэюя"
_PERFECTIVE = re.compile("(?:(?<=[ая])(?:в|вши|вшись)|(?:ив|ивши|ившись|ыв|ывши|ывшись))$")
_REFLEXIVE = re.compile("(?:ся|сь)$")
_ADJECTIVE = re.compile(
    "(?:ее|ие|ые|ое|ими|ыми|ей|ий|ый|ой|ем|им|ым|ом|его|ого|ему|ому|их|ых|ую|юю|ая|яя|ою|ею)$"
)
_PARTICIPLE = re.compile("(?:(?<=[ая])(?:ем|нн|вш|ющ|щ)|(?:ивш|ывш|ующ))$")
_VERB = re.compile(
    "(?:(?<=[ая])(?:ла|на|ете|йте|ли|й|л|ем|н|ло|но|ет|ют|ны|ть|ешь|нно)|"
    "(?:ила|ыла|ена|ейте|уйте|ите|или|ыли|ей|уй|ил|ыл|им|ым|ен|ило|ыло|ено|ят|ует|уют|ит|ыт|ены|ить|ыть|ишь|ую|ю))$"
)
_NOUN = re.compile(
    "(?:иями|ями|ами|иях|ией|иям|ием|ев|ов|ие|ье|еи|ии|ей|ой|ий|ям|ем|ам|ом|ах|ях|ию|ью|ия|ья|а|е|и|й|о|у|ы|ь|ю|я)$"
)


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """The stem of one casefolded word; a word in neither Latin nor Cyrillic letters comes back as it is."""
    if word.isascii():
        return _english(word) if word.isalpha() else word
    if "а" <= word[0] <= "ё":
        return _russian(word.replace("ё", "е"))
    return word


def _english(word: str) -> str:
    if word in _IRREGULAR:
        return _english(_IRREGULAR[word])
    if len(word) <= 3:
        return word
    word = _plural(word)
    for suffix in ("ingly", "edly", "ing", "ed"):
        rest = word[: -len(suffix)]
        if word.endswith(suffix) and len(rest) >= 3 and re.search("[aeiouy]", rest):
            word = _mend(rest)
            break
    for suffix, replacement in (("ational", "ate"), ("ization", "ize"), ("ation", "ate"), ("ly", "")):
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)] + replacement
            break
    if word.endswith("y") and len(word) > 3 and word[-2] not in "aeiou":
        word = word[:-1] + "i"
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _plural(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _mend(rest: str) -> str:
    if rest[-1] == rest[-2] and rest[-1] not in "lsz":
        return rest[:-1]
    return rest


def _russian(word: str) -> str:
    vowel = next((i for i, letter in enumerate(word) if letter in _VOWEL), None)
    if vowel is None:
        return word
    head, tail = word[: vowel + 1], word[vowel + 1 :]
    shorter = _PERFECTIVE.sub("", tail)
    if shorter == tail:
        tail = _REFLEXIVE.sub("", tail)
        shorter = _ADJECTIVE.sub("", tail)
        if shorter != tail:
            shorter = _PARTICIPLE.sub("", shorter)
        else:
            shorter = _VERB.sub("", tail)
            if shorter == tail:
                shorter = _NOUN.sub("", tail)
    tail = re.sub("и$", "", shorter)
    tail = re.sub("ость?$", "", tail) if len(tail) > 5 else tail
    tail = re.sub("ейше?$", "", tail)
    tail = re.sub("нн$", "н", tail)
    return head + re.sub("ь$", "", tail)
