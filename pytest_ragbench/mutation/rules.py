"""Variants of an answer that are known to be bad, or still good, made by rule with the words of a language.

A rule that finds nothing to change makes no variant: a variant is never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from pytest_ragbench.languages import rules
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.mutation.words import MutationWords, mutation_language, words_of
from pytest_ragbench.text import detect_language, is_blank, is_spaced, is_unspaced, sentences, tokens


@dataclass(frozen=True, slots=True)
class Variant:
    """A sample, changed. ``good``: it should still pass."""

    kind: str
    good: bool
    sample: RagSample
    change: str
    """What was changed, in words."""


# A number outside a name ("B2B", "v1.2.3") or of a list's "1." at the start of a line.
_NUMBER = re.compile(r"(?<![\w.,\-])(\d+)(?:([.,])(\d+))?(?![\w\-]*\d)(?!\.\s)", re.ASCII)
_NUMBER_UNSPACED = re.compile(r"(?<![A-Za-z.,\-\d])(\d+)(?:(\.)(\d+))?(?!\d)", re.ASCII)


def _lang(sample: RagSample) -> str:
    return mutation_language(sample.lang or detect_language(sample.answer or sample.question))


def _words(sample: RagSample) -> MutationWords:
    return words_of(_lang(sample))


def _space(sample: RagSample) -> str:
    """What stands between two sentences."""
    return " " if is_spaced(_lang(sample)) else ""


def _number(sample: RagSample) -> tuple[str, str] | None:
    """The first number, made another one: 30 -> 37."""
    text = sample.answer or ""
    match = (_NUMBER if is_spaced(_lang(sample)) else _NUMBER_UNSPACED).search(text)
    if match is None:
        return None
    whole = int(match[1])
    # A year stays a year: the change must be one that only the documents can tell.
    changed = str(whole + (7 if whole < 1000 or whole > 2100 else 3)).zfill(len(match[1]))
    new = changed + (f"{match[2]}{match[3]}" if match[2] else "")
    return f"{text[: match.start()]}{new}{text[match.end() :]}", f"{match[0]} -> {new}"


def _swapped(pairs: Sequence[Sequence[str]], text: str, *, after_number: bool) -> tuple[str, str] | None:
    """The first of the words, by its pair."""
    for old, new in pairs:
        boundary = r"(?!\w)" if old[-1].isalpha() and not is_unspaced(old[-1]) else ""
        pattern = (r"(?<=\d)(\s?)" if after_number else "()") + re.escape(old) + boundary
        if match := re.search(pattern, text):
            return f"{text[: match.start()]}{match[1]}{new}{text[match.end() :]}", f"{old} -> {new}"
    return None


def _unit(sample: RagSample) -> tuple[str, str] | None:
    return _swapped(_words(sample).units, sample.answer or "", after_number=True)


def _name(sample: RagSample) -> tuple[str, str] | None:
    """A name, made another one."""
    words, text = _words(sample), sample.answer or ""
    for match in words.name_pattern.finditer(text):
        if match[1].split(" ")[0] not in words.no_names:
            new = next(name for name in words.names if name not in match[1])
            return f"{text[: match.start(1)]}{new}{text[match.end() :]}", f"{match[1]} -> {new}"
    return None


_NUMERIC = (
    (re.compile(r"\b(\d{4}-)(\d{2})(-\d{2})\b"), "{:02}"),  # 2024-03-12
    (re.compile(r"\b(\d{1,2}\.)(\d{2})(\.\d{4})\b"), "{:02}"),  # 12.03.2024
)


def _date(sample: RagSample) -> tuple[str, str] | None:
    """Another month (five later, so that no other date of the text is met by chance), or another weekday."""
    words, text = _words(sample), sample.answer or ""
    own = [(re.compile(date), "{}") for date in rules(MutationWords, sample.lang).dates]
    for pattern, form in (*_NUMERIC, *own):
        if (match := pattern.search(text)) and 1 <= int(match[2]) <= 12:
            new = match[1] + form.format((int(match[2]) + 4) % 12 + 1) + match[3]
            return f"{text[: match.start()]}{new}{text[match.end() :]}", f"{match[0]} -> {new}"
    end = r"\b" if is_spaced(_lang(sample)) else ""
    for names, step in ((words.months, 5), (words.weekdays, 3)):
        # "may" and "March" are also other words: a month stands beside a number, or after "in" and the like.
        before = [r"(?<=\d )", *(rf"(?<=\b{word} )" for word in words.before_month)]
        beside = f"(?:{'|'.join(before)})" if step == 5 else ""
        for place, name in enumerate(names):
            alone = rf"{beside}{name}{end}" + (rf"|\b{name}(?= \d)" if step == 5 else "")
            if match := re.search(alone, text):
                new = names[(place + step) % len(names)]
                return f"{text[: match.start()]}{new}{text[match.end() :]}", f"{match[0]} -> {new}"
    return None


def _dropped(sample: RagSample) -> tuple[str, str] | None:
    """Without the sentence that most of the reference rests on, where nothing else of the answer says the same."""
    parts = [part.strip() for part in sentences(sample.answer or "")]
    wanted = set(tokens(sample.reference or ""))
    if len(parts) < 2 or not wanted:
        return None

    def lost(place: int) -> int:
        rest = {word for other, part in enumerate(parts) if other != place for word in tokens(part)}
        return len((set(tokens(parts[place])) & wanted) - rest)

    worst = max(range(len(parts)), key=lost)
    if lost(worst) < max(2, len(wanted) // 4):
        return None
    rest = _space(sample).join(part for place, part in enumerate(parts) if place != worst)
    return rest, f"dropped: {parts[worst]}"


def _replaced(pairs: Sequence[Sequence[str]], text: str) -> tuple[str, str] | None:
    for pattern, new in pairs:
        if match := re.search(pattern, text):
            shown = match.expand(new)
            return f"{text[: match.start()]}{shown}{text[match.end() :]}", f"{match[0]} -> {shown}"
    return None


def _negation(sample: RagSample) -> tuple[str, str] | None:
    return _replaced(_words(sample).negations, sample.answer or "")


def _added(sample: RagSample) -> tuple[str, str] | None:
    claim = _words(sample).added
    return f"{(sample.answer or '').rstrip()}{_space(sample)}{claim}", f"added: {claim}"


def _rephrased(sample: RagSample) -> tuple[str, str] | None:
    return _replaced(_words(sample).rephrased, sample.answer or "")


def _reordered(sample: RagSample) -> tuple[str, str] | None:
    """Sentences in another order, where none leans on the one before it."""
    parts = sentences(sample.answer or "")
    leans = re.compile("|".join([*rules(MutationWords, sample.lang).leaning, r"\d+[.)]", r"[-*•]"]))
    if len(parts) < 2 or any(leans.match(part.strip()) for part in parts):
        return None
    return _space(sample).join(part.strip() for part in reversed(parts)), "sentences in reverse order"


_ANSWERS: Sequence[tuple[str, bool, Callable[[RagSample], tuple[str, str] | None]]] = (
    ("number", False, _number),
    ("date", False, _date),
    ("unit", False, _unit),
    ("name", False, _name),
    ("negation", False, _negation),
    ("added_claim", False, _added),
    ("dropped_claim", False, _dropped),
    ("rephrased", True, _rephrased),
    ("reordered", True, _reordered),
)

KINDS: Mapping[str, bool] = {
    **{kind: good for kind, good, _ in _ANSWERS if not good},
    "other_answer": False,
    "other_contexts": False,
    "without_support": False,
    "ranking_reversed": False,
    "rephrased": True,
    "reordered": True,
    "chunks_reversed": True,
    "tail_reversed": True,
}
"""Kind -> whether such a variant is still good."""


def variants(sample: RagSample, others: Sequence[RagSample] = ()) -> list[Variant]:
    """What can be made of the answer and the chunks of one sample that passed.

    Parameters
    ----------
    sample
        With an answer and contexts; a claim is dropped only where the sample has a reference that misses it.
    others
        Other samples of the run: for the answer, and the contexts, of another question.
    """
    found = []
    for kind, good, rule in _ANSWERS if not is_blank(sample.answer) else ():
        changed = rule(sample)
        if changed is not None and changed[0] != sample.answer:
            found.append(Variant(kind, good, _named(sample, kind, answer=changed[0]), changed[1]))
    places = list(range(len(sample.contexts or ())))
    if len(places) > 1:
        found.append(
            Variant("chunks_reversed", True, _reranked(sample, "chunks_reversed", places[::-1]), "reversed")
        )
    other = _unrelated(sample, others)
    if other is not None:
        said = f"those of {other.label}"
        if sample.answer and other.answer and not is_blank(other.answer):
            found.append(
                Variant("other_answer", False, _named(sample, "other_answer", answer=other.answer), said)
            )
        if other.contexts or other.context_ids:
            columns = {name: getattr(other, name) for name in ("contexts", "context_ids", "context_urls")}
            changed_sample = _named(sample, "other_contexts", **columns, context_scores=None)
            found.append(Variant("other_contexts", False, changed_sample, said))
    return found


def rankings(sample: RagSample, relevant: Sequence[int]) -> list[Variant]:
    """Other orders of the chunks, of which those at the places ``relevant`` (from 0) are: all reversed, where that
    brings them further down, and only what stands behind the last of them, which must not matter.
    """
    n = max(len(sample.context_ids or ()), len(sample.contexts or ()))
    good = sorted(set(relevant))
    found = []
    if good and sum(n - 1 - place for place in good) > sum(good) and n - 1 - good[-1] > good[0]:
        order = list(range(n))[::-1]
        found.append(
            Variant("ranking_reversed", False, _reranked(sample, "ranking_reversed", order), "reversed")
        )
    last = good[-1] if good else n
    if n - 1 - last > 1:
        order = [*range(last + 1), *range(n - 1, last, -1)]
        said = f"those after chunk {last + 1} reversed"
        found.append(Variant("tail_reversed", True, _reranked(sample, "tail_reversed", order), said))
    return found


def without_chunks(sample: RagSample, supporting: Sequence[int]) -> Variant | None:
    """Without the chunks (numbers from 1) that the answer rests on, or that are relevant; None where none is left
    or none goes.
    """
    n = max(len(sample.context_ids or ()), len(sample.contexts or ()))
    rest = [place for place in range(n) if place + 1 not in set(supporting)]
    if not rest or len(rest) == n:
        return None
    dropped = ", ".join(str(number) for number in sorted(set(supporting)))
    return Variant(
        "without_support", False, _reranked(sample, "without_support", rest), f"without chunk {dropped}"
    )


def _unrelated(sample: RagSample, others: Sequence[RagSample]) -> RagSample | None:
    """One in the same language, with the same columns, that shares no chunk with it."""
    columns = [name for name in ("answer", "contexts", "context_ids") if getattr(sample, name)]
    own = {*(sample.contexts or ()), *(sample.context_ids or ())}
    for other in others:
        if (
            (other.question, other.answer) != (sample.question, sample.answer)
            and (sample.answer is None or other.answer != sample.answer)
            and all(getattr(other, name) for name in columns)
            and not own & {*(other.contexts or ()), *(other.context_ids or ())}
            and _lang(other) == _lang(sample)
        ):
            return other
    return None


def _named(sample: RagSample, kind: str, **changes: object) -> RagSample:
    return sample.with_(id=f"{sample.label}~{kind}", thresholds={}, **changes)


def _reranked(sample: RagSample, kind: str, order: Sequence[int]) -> RagSample:
    """The chunks at these places, in this order; ids with them, scores dropped."""

    def chosen(column: Sequence[str] | None) -> list[str] | None:
        return None if column is None else [column[place] for place in order if place < len(column)]

    return _named(
        sample,
        kind,
        contexts=chosen(sample.contexts),
        context_ids=chosen(sample.context_ids),
        context_urls=chosen(sample.context_urls),
        context_scores=None,
    )
