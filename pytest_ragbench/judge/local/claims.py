"""Answers cut into claims: statements that can be verified one by one."""

# ruff: noqa: E501

from __future__ import annotations

import re

from pytest_ragbench.judge.local.relevance import is_abstention
from pytest_ragbench.judge.local.terms import analyse
from pytest_ragbench.text import detect_language, sentences

# Openers that say where an answer comes from or how sure it is, not what it says. Taken off, repeatedly.
_OPENER = re.compile(
    r"^(?:"
    r"(?:according to|based on|per|as (?:stated|described|mentioned|noted) in|as per|from|in) (?:the |your |our |this )?"
    r"(?:provided |given |available |retrieved |above |following |official )*"
    r"(?:contexts?|documents?|documentation|docs|information|texts?|passages?|sources?|chunks?)\b"
    r"(?: (?:provided|above|given|below))?,? ?(?::|that )?"
    r"|(?:the|this) (?:context|document|documentation|text|passage) (?:says|states|mentions|explains|notes|indicates) that "
    r"|(?:well|yes|no|yeah|yep|yea|nope|oh|ok|okay|sure|of course|certainly|absolutely|great question|good question|hi|hello|wow|indeed|so|in short|in summary|to summarize|in conclusion|overall)"
    r" ?[,.!:;]+ ?"
    r"|(?:yes|no|yeah|yea|well) (?:but|and) "
    r"|(?:yes|no|yeah|yea|well|of course|sure) (?=i\b|it\b|the\b|they\b|he\b|she\b|there\b)"
    r"|(?:i ?'m|i am) (?:not |n't )?(?:sure|certain|aware|familiar)(?: (?:about|of|with) (?:that|it|this))? ?,? ?(?:but|however) "
    r"|i (?:do n't|don't|do not) (?:really )?know(?: (?:about|that|it))? ?,? ?but "
    r"|i (?:do n't|don't|do not|am not|'m not|have n't|haven't|did n't|didn't),? but "
    r"|not (?:sure|a lot|much|really|exactly),? (?:but|and) "
    r"|(?:i|we) (?:do |also |just |did )*(?:learned|learnt|think|believe|know|heard|read|guess|understand|find|found|see)(?: out)? that "
    r"|(?:it ?'?s|it is|that ?'?s) (?:nice|interesting|cool|great|amazing|good|fun|pretty interesting)(?: to (?:know|see|hear))? that "
    r"|(?:the |an? )?(?:interesting |fun |cool )?(?:fact|thing) (?:is )?that "
    r"|(?:i|we) (?:do |just )?(?:think|believe|know|heard|read|guess|understand|find)(?: that)? (?=\w+ \w+)"
    r"|(?:all i know is|what i know is|it is (?:important|worth|interesting)(?: to note| noting)?|please note|note)(?: that)? "
    r"|as far as i know,? "
    r"|(?:согласно|судя по|исходя из|на основании|по)(?: (?:предоставленн|данн|вашей|нашей|этому|этой|имеющ)\w*)* "
    r"(?:документ\w*|контекст\w*|информаци\w*|текст\w*|источник\w*|данным)(?: документац\w+)?,? ?:?"
    r"|в (?:документации|контексте|тексте|документе) (?:указано|сказано|говорится|написано),? что "
    r"|(?:да|нет|конечно|безусловно|здравствуйте|привет|хороший вопрос|отличный вопрос|итак|таким образом|в целом|разумеется) ?[,.!:]+ ?"
    r"|(?:я )?(?:думаю|считаю|полагаю|насколько я знаю|насколько мне известно),? (?:что )?"
    r"|(?:стоит|следует|важно) (?:отметить|учесть|заметить),? что "
    r"|(?:提供された|与えられた|上記の|以下の)?(?:ドキュメント|文書|コンテキスト|資料|情報|文脈|テキスト)(?:に|を)(?:よると|よれば|基づくと|基づけば|もとに|基づいて)[、,]? ?"
    r"|(?:はい|いいえ|ええ|もちろん(?:です)?|こんにちは|なるほど|つまり|まとめると|要するに)[、。,!！]+ ?"
    r")",
    re.IGNORECASE,
)
# Whole sentences that make no statement about the subject.
_FILLER = re.compile(
    r"^(?:"
    r"(?:i )?hope (?:this|that|it) helps.*|let me know.*|feel free.*|(?:please )?(?:ask|contact) .*(?:questions|help|support).*|"
    r"(?:if you have|should you have) (?:any )?(?:more |other |further )?(?:questions|concerns).*|thank(?:s| you).*|you(?:'| a)re welcome.*|"
    r"i(?:'| a)m happy to help.*|is there anything else.*|great question.*|good question.*|hello.{0,20}|hi.{0,20}|sure.{0,20}|wow.{0,8}|"
    r"(?:that ?'?s|this is|that is) (?:a |an )?(?:great|good|interesting|nice|cool|awesome)(?: \w+){0,2}|"
    r"(?:here (?:is|are)|below (?:is|are)|the following) .*:|.{0,90} (?:as follows|the following|these(?: \w+){0,3}|include|are|is)? ?:|"
    r"(?:надеюсь|обращайтесь|если у вас (?:есть|возникнут|остались)|спасибо|пожалуйста, обращайтесь|буду рад|рад помочь|здравствуйте|привет|хороший вопрос|отличный вопрос).*|"
    r".{0,90}(?:следующее|следующие|следующим образом|таковы|так) ?:|"
    r".*(?:お役に立て|お気軽に|お問い合わせください|ご不明な点|ご質問があれば|ありがとうございま).*|.{0,60}(?:以下の(?:通り|とおり)|次の(?:通り|とおり)).{0,12}|.{0,60}(?:以下|次)の(?:よう|もの).{0,25}(?:ます|です)"
    r")[.!。！\s]*$",
    re.IGNORECASE | re.DOTALL,
)
_BARE = {
    "yes": "yes", "yeah": "yes", "yep": "yes", "correct": "yes", "да": "yes", "верно": "yes", "はい": "yes", "ええ": "yes",
    "no": "no", "nope": "no", "нет": "no", "いいえ": "no",
}  # fmt: skip
_SPLIT = re.compile(
    r"\s*;\s+|(?<=:)\s+(?=\d{1,2}[.)] )|[；]\s*|,? (?:and|but|while|whereas) (?=(?:it|he|she|they|we|you|there|this|that|these|the|a|an|its|their|his|her) )"
    r"|, (?:а|но|и|однако|при этом|причем|причём) (?=(?:он|она|оно|они|это|этот|эта|эти|его|её|ее|их|также|там)\b)"
    r"|(?<=[すたるい])(?:が|し|けれども|けど)、"
)


def split_claims(answer: str, question: str = "") -> list[str]:
    """The statements of ``answer``, in order, each for itself.

    Sentences and list items; coordinated clauses only where each has its own subject and enough words.
    Greetings, closing phrases, questions, lead-ins to lists and "according to the documentation" are
    left out. A bare "yes" or "no" is joined with ``question``, because alone it says nothing. An
    abstention ("I don't know", "в документации нет ответа", "分かりません") is no claim: the list is
    empty where there is nothing else.
    """
    claims: list[str] = []
    for sentence in sentences(answer):
        bare = _BARE.get(re.sub(r"[\W_]+", "", sentence).casefold())
        if bare is not None:
            if question.strip() and not claims and len(sentences(answer)) == 1:
                claims.append(f"{sentence.strip(' .!。！')}: {question.strip()}")
            continue
        for clause in _clauses(sentence):
            statement = _strip_openers(clause)
            if statement and _states(statement):
                claims.append(statement)
    return list(dict.fromkeys(claims))


def _states(statement: str) -> bool:
    if statement.rstrip("\"'»”)」 ").endswith(("?", "？")):
        return False
    if _FILLER.match(statement) or is_abstention(statement):
        return False
    return bool(analyse(statement).content)


def _strip_openers(sentence: str) -> str:
    rest = re.sub(r"^\(?\d{1,2}[.)] +(?=\D)", "", sentence.strip())
    while match := _OPENER.match(rest):
        shorter = rest[match.end() :].lstrip(" ,:")
        if match.end() == 0 or not shorter:
            break
        rest = shorter
    if rest != sentence.strip() and rest[:1].islower() and detect_language(rest) in ("en", "ru"):
        rest = rest[0].upper() + rest[1:]
    return rest


def _clauses(sentence: str) -> list[str]:
    """The sentence, or its coordinated clauses where every one can stand alone."""
    parts: list[str] = []
    start = 0
    for match in _SPLIT.finditer(sentence):
        parts.append(sentence[start : match.end() if match.group()[:1] in "がしけ" else match.start()])
        start = match.end()
    parts.append(sentence[start:])
    parts = [part.strip(" 、") for part in parts]
    if len(parts) > 1 and all(len(analyse(part).content) >= 3 for part in parts):
        return parts
    return [sentence]
