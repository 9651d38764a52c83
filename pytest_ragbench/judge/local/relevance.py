"""Does an answer answer? Abstentions, and what kind of thing a question asks for."""

# ruff: noqa: E501

from __future__ import annotations

import re

from pytest_ragbench.judge.local.support import Support
from pytest_ragbench.judge.local.terms import Sentence, Term, analyse, clean
from pytest_ragbench.text import sentences

_ABSTENTION = re.compile(
    r"\b(?:i|we) (?:really |honestly |simply )?(?:do not|don't|did not|didn't|can not|cannot|can't|could not|couldn't|am not|are not|was not|am unable|are unable|was unable|have no|had no)"
    r"(?: (?:able|sure|aware|currently|really|to|have|be|been))*"
    r"(?: (?:know|find|answer|tell|say|determine|locate|provide|help|assist|information|info|details|data|access|idea|enough|any|an answer|sufficient|specific|certain|clue|knowledge|that|of|about|give|see|confirm))"
    r"|\bi(?: am|'m) (?:sorry|afraid|not sure|unsure|unable|not certain|not aware)\b"
    r"|^(?:unfortunately|sorry|apologies)\b.{0,120}\b(?:no|not|n't|cannot|unable)\b"
    r"|\b(?:no|not enough|insufficient|lacks?) (?:relevant |specific |sufficient |further |such |direct )?(?:information|details|data|answer|mention)\b.{0,60}"
    r"|\b(?:context|document|documents|documentation|passage|passages|text|texts|source|sources|information|docs|knowledge base|chunks?)(?: \w+){0,3} (?:does|do|did|is|are|was)(?: not|n't) "
    r"(?:contain|mention|provide|include|say|specify|state|give|available|cover|have|answer|provided|enough|sufficient|address|discuss)"
    r"|\b(?:is|are|was) not (?:mentioned|specified|stated|provided|covered|given|available|found|described|addressed|answered|included|discussed) (?:in|by) (?:the|this|these|any|our|provided)"
    r"|\b(?:unanswerable|not answerable|can ?not be (?:answered|determined)|can't be (?:answered|determined)|not found in the)\b"
    r"|^(?:n/a|unknown|no answer|no idea|not available|not specified|not mentioned|not sure|i don't know)\W*$"
    r"|(?:я )?не (?:знаю|могу (?:ответить|сказать|найти|помочь|определить|дать|предоставить)|удалось найти|смог(?:ла)? найти|нашел|нашла|нашлось|располагаю|владею|имею (?:информации|данных|сведений)|обладаю)"
    r"|\bк сожалению\b.{0,120}\b(?:не|нет)\b"
    r"|\bнет (?:\w+ ){0,3}?(?:ответа|информации|данных|сведений|упоминани\w+)"
    r"|(?:информаци\w+|ответ\w*|данны\w+|сведени\w+)(?: \w+){0,5} (?:отсутству\w+|не (?:найден\w*|указан\w*|содерж\w+|предоставлен\w*|упомина\w+|привод\w+))"
    r"|(?:документ\w*|контекст\w*|текст\w*|источник\w*|фрагмент\w*)(?: \w+){0,4} (?:не (?:содерж\w+|упомина\w+|указан\w*|указыва\w+|говорится|сказано|описан\w*|сообща\w+|найден\w*)|нет (?:ответа|информации|данных|сведений|упоминания))"
    r"|\bзатрудняюсь ответить|^неизвестно\W*$|^нет (?:данных|информации|ответа)\W*$"
    r"|(?:分かりません|わかりません|分からない|わからない|不明です|存じません|答えられません|お答えできません|回答できません|お答えでき(?:ない|かね)|回答でき(?:ない|かね)|判断できません|見つかりません|見当たりません|"
    r"(?:情報|記載|記述|回答|答え|データ|言及|説明)(?:が|は|も)(?:\w{0,6})(?:ありません|ございません|ない(?:ため|ので|です|$)|なく|含まれていません|見つかりません|存在しません|不足)|"
    r"(?:記載|言及|説明|記述|提供)されて(?:いません|おりません|いない)|情報(?:が|は)不足|申し訳(?:ありません|ございません)が?.{0,60}(?:ません|できない|ない))"
    r"|^(?:不明|該当なし|回答なし|不知道|无法回答|我不知道)\W*$"
    r"|(?:no (?:lo )?sé|je ne sais pas|ich weiß (?:es )?nicht|não sei|non lo so|我不知道|无法(?:回答|确定)|没有(?:相关)?信息|모르겠|알 수 없|не знаю відповіді)",
    re.IGNORECASE,
)
_CONTINUES = re.compile(r"\b(?:but|however|но|однако)\b|(?:ですが|ませんが、|しかし)", re.IGNORECASE)


def is_abstention(answer: str) -> bool:
    """True where the answer says that it can't answer, and nothing else of substance.

    "I don't know, but the warranty is two years" is an answer. A blank text is no abstention.
    """
    text = re.sub(r"\s+n't\b", "n't", clean(answer)).strip()
    if not text:
        return False
    parts = sentences(text) or [text]
    refused = [part for part in parts if _refuses(part)]
    if not refused:
        return False
    others = [part for part in parts if part not in refused and not part.rstrip().endswith(("?", "？"))]
    substance = sum(len(analyse(part).content) for part in others if not _COURTESY.search(part))
    return substance <= 2


_COURTESY = re.compile(
    r"\b(?:please|sorry|contact|let me know|feel free|check|consult|refer|provide|rephrase|clarify|hope|would you)\b"
    r"|пожалуйста|обратитесь|уточните|извините|свяжитесь|попробуйте|к сожалению|ください|申し訳|お問い合わせ|すみません|恐れ入り",
    re.IGNORECASE,
)


def _refuses(sentence: str) -> bool:
    match = _ABSTENTION.search(sentence)
    if match is None:
        return False
    turn = _CONTINUES.search(sentence, match.end())
    return turn is None or len(analyse(sentence[turn.end() :]).content) < 3


_KINDS: list[tuple[str, re.Pattern[str]]] = [
    ("duration", re.compile(r"\bhow long\b|\bhow many (?:days|hours|minutes|weeks|months|years)\b|как долго|сколько (?:дней|часов|минут|недель|месяцев|лет|времени)|за какой срок|какой срок|どのくらいの(?:期間|時間)|何(?:日間|時間|分間|週間|か月|ヶ月|年間)|いつまで", re.I)),
    ("number", re.compile(r"\bhow (?:many|much|old|far|tall|high|deep|large|big|fast|often)\b|\bwhat (?:is the )?(?:percentage|price|cost|number|population|temperature|size|amount)\b|\bсколько\b|какова? (?:цена|стоимость|численность|температура|высота|площадь|длина|доля)|いくつ|いくら|何(?:人|個|枚|台|匹|頭|本|回|度|歳|円|%|パーセント|キロ|メートル|冊|点)|どのくらい|どれくらい", re.I)),
    ("date", re.compile(r"^\W*when\b|\bwhat (?:year|date|day|month|time)\b|\bin which year\b|\bкогда\b|в каком году|какого числа|в какой день|いつ(?!も)|何年|何月|何日(?!間)|何時(?!間)", re.I)),
    ("person", re.compile(r"\bwho(?:m|se)?\b|\bкто\b|\bкого\b|\bкому\b|\bкем\b|だれ|誰|どなた", re.I)),
    ("place", re.compile(r"\bwhere\b|\bwhich (?:city|country|place)\b|\bгде\b|\bкуда\b|\bоткуда\b|в каком (?:городе|месте)|в какой стране|どこ", re.I)),
    ("reason", re.compile(r"\bwhy\b|\bпочему\b|\bзачем\b|なぜ|どうして", re.I)),
    ("yes/no", re.compile(r"^\W*(?:is|are|was|were|do|does|did|can|could|will|would|should|may|has|have|had|must)\b|\bли\b|^\W*можно\b|ますか|ですか$|でしょうか$|ませんか", re.I)),
]  # fmt: skip


def question_kind(question: str) -> str:
    """What ``question`` asks for: duration, number, date, person, place, reason, yes/no, or other."""
    text = clean(question).casefold()
    asks_what = re.search(r"\b(?:what|which|how|что|как|какой|какая|какие)\b|何|どの|どんな|どう|なに", text)
    for kind, pattern in _KINDS:
        if pattern.search(text):
            if kind == "yes/no" and asks_what and not re.match(r"\W*(?:is|are|do|does|can|did|was)\b", text):
                continue
            return kind
    return "other"


def addresses(question: str, answer: str) -> Support:
    """Does ``answer`` answer ``question``? Whether it is true is another matter.

    Half is the kind of thing that was asked for (a person for who, a number for how many, ...), half
    is the topic: the share of the question's content words that the answer takes up. A short answer
    need not repeat the question, so that its kind alone counts. ``chunk`` is always None.
    """
    if not answer.strip():
        return Support(0.0, None, "empty answer")
    if is_abstention(answer):
        return Support(0.0, None, "says that it can't answer")
    kind = question_kind(question)
    asked, given = analyse(question), analyse(clean(answer).replace("\n", ". "))
    topic = _topic(asked, given)
    fits = _fits(kind, asked, given, answer)
    short = len(given.content) <= 4
    if not fits:
        return Support(round(0.4 * topic, 4), None, f"the question asks for a {kind}, the answer has none")
    if short and kind not in ("other", "reason"):
        return Support(max(0.8, topic), None, f"gives a {kind}" if kind != "yes/no" else "says yes or no")
    value = 0.35 + 0.65 * topic if kind not in ("other", "reason") else 0.15 + 0.85 * min(1.0, topic * 1.25)
    if short:
        value = max(value, 0.6)
    if value < 0.5:
        missing = [t.text for t in asked.content if not _has(t, given)]
        return Support(round(value, 4), None, "off the topic; not taken up: " + ", ".join(missing[:4]))
    return Support(round(min(1.0, value), 4), None, "answers the question")


def _topic(asked: Sentence, given: Sentence) -> float:
    total = sum(term.weight for term in asked.content)
    if not total:
        return 1.0
    return sum(term.weight for term in asked.content if _has(term, given)) / total


def _has(term: Term, sentence: Sentence) -> bool:
    if term.key in sentence.keys or term.key in sentence.folded:
        return True
    if term.kind == "kanji":
        return any(c in sentence.folded for c in term.key)
    return len(term.key) >= 4 and any(k.startswith(term.key[:4]) for k in sentence.keys)


def _fits(kind: str, asked: Sentence, given: Sentence, answer: str) -> bool:
    known = {number.readings for number in asked.numbers}
    fresh = [number for number in given.numbers if number.readings not in known]
    if kind in ("number", "duration"):
        vague = re.search(
            r"\b(?:no|none|many|several|few|a|an|half|forever|until|всегда|несколько|много|ни одного|один|одна|до)\b|数|まで|無料|free|бесплатно",
            given.folded,
        )
        return bool(fresh) or vague is not None
    if kind == "date":
        return bool(fresh) or re.search(
            r"\b(?:century|today|yesterday|tomorrow|now|monday|tuesday|wednesday|thursday|friday|saturday|sunday|after|before|during|daily|every|when|spring|summer|autumn|winter|"
            r"век\w*|сегодня|вчера|завтра|понедельник|вторник|сред[ау]|четверг|пятниц\w|суббот\w|воскресенье|после|до|во время|когда|весной|летом|осенью|зимой)\b|世紀|今日|昨日|曜|後|前|とき|時|春|夏|秋|冬",
            given.folded) is not None  # fmt: skip
    if kind in ("person", "place"):
        asked_keys = {term.key for term in asked.content}
        return any(term.key not in asked_keys for term in given.content)
    return bool(given.terms) and bool(answer.strip())
