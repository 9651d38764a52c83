"""Variants of an answer that are known to be bad, or still good, made by rule in English, Russian and Japanese.

A rule that finds nothing to change makes no variant: a variant is never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_ragbench.samples import RagSample
from pytest_ragbench.text import detect_language, sentences


@dataclass(frozen=True, slots=True)
class Variant:
    """A sample, changed. ``good``: it should still pass."""

    kind: str
    good: bool
    sample: RagSample
    change: str
    """What was changed, in words."""


# A number that is no part of a name ("B2B", "v1.2.3") or of a list's "1." at the start of a line.
_NUMBER = re.compile(r"(?<![\w.,\-])(\d+)(?:([.,])(\d+))?(?![\w\-]*\d)(?!\.\s)", re.ASCII)
_NUMBER_JA = re.compile(r"(?<![A-Za-z.,\-\d])(\d+)(?:(\.)(\d+))?(?!\d)", re.ASCII)

_UNITS: Mapping[str, Sequence[tuple[str, str]]] = {
    "en": [("days", "months"), ("day", "month"), ("hours", "days"), ("minutes", "hours"), ("weeks", "years"),
           ("months", "days"), ("years", "weeks"), ("dollars", "euros"), ("kilometres", "metres"),
           ("km", "m"), ("kg", "g"), ("MB", "GB"), ("GB", "MB"), ("percent", "per mille")],
    "ru": [("дней", "месяцев"), ("дня", "месяца"), ("день", "месяц"), ("часов", "дней"), ("часа", "дня"),
           ("минут", "часов"), ("недель", "лет"), ("месяцев", "дней"), ("лет", "недель"), ("рублей", "долларов"),
           ("километров", "метров"), ("км", "м"), ("кг", "г"), ("МБ", "ГБ"), ("ГБ", "МБ")],
    "ja": [("日間", "か月間"), ("日以内", "か月以内"), ("時間", "日間"), ("分以内", "時間以内"), ("週間", "年間"),
           ("か月", "日"), ("年間", "週間"), ("円", "ドル"), ("キロメートル", "メートル"), ("キログラム", "グラム")],
}  # fmt: skip

_NEGATIONS: Mapping[str, Sequence[tuple[str, str]]] = {
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

_ADDED: Mapping[str, str] = {
    "en": "This was confirmed by an inspection in Ljubljana on 12 March 1987.",
    "ru": "Это подтвердила проверка, проведённая в Любляне 12 марта 1987 года.",
    "ja": "これは1987年3月12日にリュブリャナで行われた検査で確認されています。",
}

_REPHRASED: Mapping[str, Sequence[tuple[str, str]]] = {
    "en": [(r"\bcan't\b", "cannot"), (r"\bdon't\b", "do not"), (r"\bneed to\b", "have to"),
           (r"\bwithin (\d+)", r"in no more than \1"), (r"\bYou'll\b", "You will"), (r"\bIt's\b", "It is"),
           (r"\bhelps\b", "is of help"), (r"\balso\b", "in addition"), (r"\bso\b", "therefore")],
    "ru": [(r"\bнужно\b", "необходимо"), (r"\bнельзя\b", "не разрешается"), (r"\bв течение\b", "на протяжении"),
           (r"\bтакже\b", "кроме того"), (r"\bпотому что\b", "так как"), (r"\bможно\b", "разрешается"),
           (r"\bсвыше\b", "более")],
    "ja": [("してください", "するようお願いします"), ("できます", "可能です"), ("また、", "そのほか、"),
           ("必要です", "必要となります"), ("ため、", "ので、")],
}  # fmt: skip


def _lang(sample: RagSample) -> str:
    lang = (sample.lang or detect_language(sample.answer or "")).partition("-")[0]
    return lang if lang in _ADDED else "en"


def _number(sample: RagSample) -> tuple[str, str] | None:
    """The first number, made another one: 30 -> 37."""
    text = sample.answer or ""
    match = (_NUMBER_JA if _lang(sample) == "ja" else _NUMBER).search(text)
    if match is None:
        return None
    whole = int(match[1])
    # A year stays a year: the change must be one that only the documents can tell.
    changed = str(whole + (7 if whole < 1000 or whole > 2100 else 3)).zfill(len(match[1]))
    new = changed + (f"{match[2]}{match[3]}" if match[2] else "")
    return f"{text[: match.start()]}{new}{text[match.end() :]}", f"{match[0]} -> {new}"


def _swapped(pairs: Sequence[tuple[str, str]], text: str, *, after_number: bool) -> tuple[str, str] | None:
    """The first of the words, by its pair."""
    for old, new in pairs:
        boundary = r"(?!\w)" if old[-1].isalpha() and ord(old[-1]) < 0x3000 else ""
        pattern = (r"(?<=\d)(\s?)" if after_number else "()") + re.escape(old) + boundary
        if match := re.search(pattern, text):
            return f"{text[: match.start()]}{match[1]}{new}{text[match.end() :]}", f"{old} -> {new}"
    return None


def _unit(sample: RagSample) -> tuple[str, str] | None:
    return _swapped(_UNITS[_lang(sample)], sample.answer or "", after_number=True)


def _replaced(pairs: Sequence[tuple[str, str]], text: str) -> tuple[str, str] | None:
    for pattern, new in pairs:
        if match := re.search(pattern, text):
            shown = match.expand(new)
            return f"{text[: match.start()]}{shown}{text[match.end() :]}", f"{match[0]} -> {shown}"
    return None


def _negation(sample: RagSample) -> tuple[str, str] | None:
    return _replaced(_NEGATIONS[_lang(sample)], sample.answer or "")


def _added(sample: RagSample) -> tuple[str, str] | None:
    claim = _ADDED[_lang(sample)]
    joint = "" if _lang(sample) == "ja" else " "
    return f"{(sample.answer or '').rstrip()}{joint}{claim}", f"added: {claim}"


def _rephrased(sample: RagSample) -> tuple[str, str] | None:
    return _replaced(_REPHRASED[_lang(sample)], sample.answer or "")


def _reordered(sample: RagSample) -> tuple[str, str] | None:
    """Sentences in another order, where none leans on the one before it."""
    parts = sentences(sample.answer or "")
    if len(parts) < 2 or any(_LEANS.match(part.strip()) for part in parts):
        return None
    joint = "" if _lang(sample) == "ja" else " "
    return joint.join(part.strip() for part in reversed(parts)), "sentences in reverse order"


_LEANS = re.compile(
    r"(It|This|That|These|Those|They|He|She|Then|However|But|And|Also|So|If so|Otherwise|In addition)\b"
    r"|(Он|Она|Оно|Они|Это|Этот|Эта|Эти|Также|Однако|Но|И|Затем|Поэтому|Тогда|Кроме|Иначе)\b"
    r"|これ|それ|この|その|また|ただし|しかし|そして|なお|次に|\d+[.)]|[-*•]"
)

_ANSWERS: Sequence[tuple[str, bool, Callable[[RagSample], tuple[str, str] | None]]] = (
    ("number", False, _number),
    ("unit", False, _unit),
    ("negation", False, _negation),
    ("added_claim", False, _added),
    ("rephrased", True, _rephrased),
    ("reordered", True, _reordered),
)

KINDS: Mapping[str, bool] = {
    **{kind: good for kind, good, _ in _ANSWERS},
    "other_answer": False,
    "other_contexts": False,
    "without_support": False,
    "chunks_reversed": True,
}
"""Kind -> whether such a variant is still good."""


def variants(sample: RagSample, others: Sequence[RagSample] = ()) -> list[Variant]:
    """What can be made of one sample that passed.

    Parameters
    ----------
    sample
        With an answer and contexts.
    others
        Other samples of the run: for the answer, and the contexts, of another question.
    """
    found = []
    for kind, good, rule in _ANSWERS:
        changed = rule(sample)
        if changed is not None and changed[0] != sample.answer:
            found.append(Variant(kind, good, _named(sample, kind, answer=changed[0]), changed[1]))
    contexts = tuple(sample.contexts or ())
    if len(contexts) > 1:
        found.append(
            Variant(
                "chunks_reversed", True, _with_contexts(sample, "chunks_reversed", contexts[::-1]), "reversed"
            )
        )
    other = _unrelated(sample, others)
    if other is not None:
        said = f"those of {other.label}"
        if other.answer and other.answer.strip():
            found.append(
                Variant("other_answer", False, _named(sample, "other_answer", answer=other.answer), said)
            )
        if other.contexts:
            changed_sample = _with_contexts(sample, "other_contexts", tuple(other.contexts))
            found.append(Variant("other_contexts", False, changed_sample, said))
    return found


def without_chunks(sample: RagSample, supporting: Sequence[int]) -> Variant | None:
    """Without the chunks (numbers from 1) that the judge said the answer rests on; None where none is left
    or none goes.
    """
    contexts = tuple(sample.contexts or ())
    rest = tuple(text for number, text in enumerate(contexts, 1) if number not in set(supporting))
    if not rest or len(rest) == len(contexts):
        return None
    dropped = ", ".join(str(number) for number in sorted(set(supporting)))
    return Variant(
        "without_support", False, _with_contexts(sample, "without_support", rest), f"without chunk {dropped}"
    )


def _unrelated(sample: RagSample, others: Sequence[RagSample]) -> RagSample | None:
    """One in the same language that shares no chunk with it."""
    own = set(sample.contexts or ())
    for other in others:
        if (
            other.answer != sample.answer
            and not own & set(other.contexts or ())
            and _lang(other) == _lang(sample)
        ):
            return other
    return None


def _named(sample: RagSample, kind: str, **changes: object) -> RagSample:
    return sample.with_(id=f"{sample.label}~{kind}", thresholds={}, **changes)


def _with_contexts(sample: RagSample, kind: str, contexts: tuple[str, ...]) -> RagSample:
    return _named(sample, kind, contexts=contexts, context_ids=None, context_scores=None)
