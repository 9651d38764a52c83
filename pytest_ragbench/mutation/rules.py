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
from pytest_ragbench.text import detect_language, is_spaced, is_unspaced, sentences, tokens


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


def _exchanged(match: re.Match[str], new: str, group: int = 0) -> tuple[str, str]:
    """The text with ``new`` in place of what a group matched, and that change in words."""
    text = match.string
    return f"{text[: match.start(group)]}{new}{text[match.end(group) :]}", f"{match[group]} -> {new}"


def _number(sample: RagSample) -> tuple[str, str] | None:
    """The first number, made another one: 30 -> 37."""
    match = (_NUMBER if is_spaced(_lang(sample)) else _NUMBER_UNSPACED).search(sample.answer or "")
    if match is None:
        return None
    whole = int(match[1])
    # A year stays a year: the change must be one that only the documents can tell.
    changed = str(whole + (7 if whole < 1000 or whole > 2100 else 3)).zfill(len(match[1]))
    new = changed + (f"{match[2]}{match[3]}" if match[2] else "")
    return _exchanged(match, new)


def _unit(sample: RagSample) -> tuple[str, str] | None:
    """The unit behind a number, by its pair: days -> months."""
    for old, new in _words(sample).units:
        boundary = r"(?!\w)" if old[-1].isalpha() and not is_unspaced(old[-1]) else ""
        if match := re.search(rf"(?<=\d)\s?({re.escape(old)}){boundary}", sample.answer or ""):
            return _exchanged(match, new, group=1)
    return None


def _name(sample: RagSample) -> tuple[str, str] | None:
    """A name, made another one."""
    words = _words(sample)
    for match in words.name_pattern.finditer(sample.answer or ""):
        if match[1].split(" ")[0] not in words.no_names:
            new = next(name for name in words.names if name not in match[1])
            return _exchanged(match, new, group=1)
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
            return _exchanged(match, new)
    end = r"\b" if is_spaced(_lang(sample)) else ""
    for names, step in ((words.months, 5), (words.weekdays, 3)):
        # "may" and "March" are also other words: a month stands beside a number, or after "in" and the like.
        before = [r"(?<=\d )", *(rf"(?<=\b{word} )" for word in words.before_month)]
        beside = f"(?:{'|'.join(before)})" if step == 5 else ""
        for place, name in enumerate(names):
            alone = rf"{beside}{name}{end}" + (rf"|\b{name}(?= \d)" if step == 5 else "")
            if match := re.search(alone, text):
                new = names[(place + step) % len(names)]
                return _exchanged(match, new)
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
    # One word in common may be chance.
    if lost(worst) < max(2, len(wanted) // 4):
        return None
    rest = _space(sample).join(part for place, part in enumerate(parts) if place != worst)
    return rest, f"dropped: {parts[worst]}"


def _replaced(pairs: Sequence[Sequence[str]], text: str) -> tuple[str, str] | None:
    for pattern, new in pairs:
        if match := re.search(pattern, text):
            return _exchanged(match, match.expand(new))
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


_ANSWERS: Mapping[str, Callable[[RagSample], tuple[str, str] | None]] = {
    "number": _number,
    "date": _date,
    "unit": _unit,
    "name": _name,
    "negation": _negation,
    "added_claim": _added,
    "dropped_claim": _dropped,
    "rephrased": _rephrased,
    "reordered": _reordered,
}

KINDS: Mapping[str, bool] = {
    **dict.fromkeys(("number", "date", "unit", "name", "negation", "added_claim", "dropped_claim"), False),
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
    for kind, rule in _ANSWERS.items() if (sample.answer or "").strip() else ():
        changed = rule(sample)
        if changed is not None and changed[0] != sample.answer:
            found.append(_variant(kind, sample, changed[1], answer=changed[0]))
    places = list(range(len(sample.contexts or ())))
    if len(places) > 1:
        found.append(_reranked("chunks_reversed", sample, places[::-1], "reversed"))
    other = _unrelated(sample, others)
    if other is not None:
        said = f"those of {other.label}"
        if sample.answer and other.answer and other.answer.strip():
            found.append(_variant("other_answer", sample, said, answer=other.answer))
        if other.contexts or other.context_ids:
            columns = {name: getattr(other, name) for name in ("contexts", "context_ids", "context_urls")}
            found.append(_variant("other_contexts", sample, said, **columns, context_scores=None))
    return found


def rankings(sample: RagSample, relevant: Sequence[int]) -> list[Variant]:
    """Other orders of the chunks, of which those at the places ``relevant`` (from 0) are: all reversed, where that
    brings them further down, and only what stands behind the last of them, which must not matter.
    """
    n = max(len(sample.context_ids or ()), len(sample.contexts or ()))
    good = sorted(set(relevant))
    found = []
    # Only where reversing moves the relevant ones down, the first of them too: else it may be as good.
    if good and sum(n - 1 - place for place in good) > sum(good) and n - 1 - good[-1] > good[0]:
        found.append(_reranked("ranking_reversed", sample, list(range(n))[::-1], "reversed"))
    last = good[-1] if good else n
    if n - 1 - last > 1:
        order = [*range(last + 1), *range(n - 1, last, -1)]
        found.append(_reranked("tail_reversed", sample, order, f"those after chunk {last + 1} reversed"))
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
    return _reranked("without_support", sample, rest, f"without chunk {dropped}")


def _unrelated(sample: RagSample, others: Sequence[RagSample]) -> RagSample | None:
    """One in the same language, with the same columns, that shares no chunk with it."""
    columns = [name for name in ("answer", "contexts", "context_ids") if getattr(sample, name)]
    own = {*(sample.contexts or ()), *(sample.context_ids or ())}
    for other in others:
        if (
            (other.question, other.answer) != (sample.question, sample.answer)
            and (sample.answer is None or other.answer != sample.answer)
            and all(getattr(other, name) for name in columns)
            # A chunk in common may answer this question, too.
            and not own & {*(other.contexts or ()), *(other.context_ids or ())}
            and _lang(other) == _lang(sample)
        ):
            return other
    return None


def _variant(kind: str, sample: RagSample, change: str, **columns: object) -> Variant:
    # Thresholds of the question's own would win over the one that the original met.
    changed = sample.with_(id=f"{sample.label}~{kind}", thresholds={}, **columns)
    return Variant(kind, KINDS[kind], changed, change)


def _reranked(kind: str, sample: RagSample, order: Sequence[int], change: str) -> Variant:
    """The chunks at these places, in this order; ids with them, scores dropped."""
    columns = {
        name: None
        if (column := getattr(sample, name)) is None
        else [column[at] for at in order if at < len(column)]
        for name in ("contexts", "context_ids", "context_urls")
    }
    return _variant(kind, sample, change, **columns, context_scores=None)
