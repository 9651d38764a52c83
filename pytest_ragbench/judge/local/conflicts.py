"""Facts of a claim that a sentence has otherwise: the signals that lower support."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ragbench.judge.local.contrasts import Contrasts, contrasts
from pytest_ragbench.judge.local.matching import agree, pairs_of, same
from pytest_ragbench.judge.local.qualifiers import dropped_hedge, other_quantifier
from pytest_ragbench.judge.local.quantities import Number
from pytest_ragbench.judge.local.terms import Chunk, Sentence, Term, analyse
from pytest_ragbench.judge.local.words import words

_NEAR_ROLES = 8
"""Words between two that have each other's roles, at most."""


def conflicts(
    claim: Sentence,
    chunk: Chunk,
    s: int,
    *,
    window: Sequence[int],
    scores: list[list[float]],
    question: str,
) -> tuple[dict[str, float], list[tuple[str, str]]]:
    """What in the claim is not as sentence ``s`` has it. Signals are 0 where all agrees."""
    source = chunk.sentences[s]
    known = contrasts(claim.lang)
    heard = {s, *window}
    problems: list[tuple[str, str]] = []
    signals: dict[str, float] = {}

    lacking = [
        term for i, term in enumerate(claim.terms)
        if term.number is not None and term.number.firm and not any(scores[i][h] for h in heard)
    ]  # fmt: skip
    absent_numbers = sum(_weight_of_lacking(term, claim, source, chunk) for term in lacking)
    signals["number"] = min(2.0, absent_numbers)
    problems += [("number", _number_problem(term, chunk)) for term in lacking]

    misplaced = _misplaced(claim, source, known)
    signals["misplaced"] = float(misplaced is not None)
    if misplaced is not None:
        problems.append(("misplaced", f"says {misplaced[1]} there, not {misplaced[0]}"))

    # The question names its subject; a chunk that calls it otherwise is still about it.
    asked = question.casefold()
    absent = [
        term for i, term in enumerate(claim.terms)
        if (term.kind == "name" or (term.kind == "loanword" and len(term.key) >= 3)) and max(scores[i]) < 0.5
    ]  # fmt: skip
    signals["name"] = min(
        2.0, sum(0.4 if term.folded[:4] in asked else 1.0 if term.kind == "name" else 0.4 for term in absent)
    )
    problems += [("name", f"does not mention {term.text}") for term in absent]

    matched = pairs_of(claim, source)
    limit, turned = _limits(claim, source, matched)
    denied = None if turned else _negation(claim, source, matched, [chunk.sentences[h] for h in heard])
    signals["negation"] = float(denied is not None)
    if denied is not None:
        problems.append(("negation", f"says the opposite (not {denied})"))

    opposite = limit or _contrast(claim, source, chunk, heard, known)
    signals["contrast"] = opposite[2] if opposite is not None else 0.0
    if opposite is not None:
        problems.append(("contrast", f"says {opposite[1]}, not {opposite[0]}"))

    swapped = _swap(claim, source, matched, known)
    signals["swap"] = float(swapped is not None)
    if swapped is not None:
        problems.append(("swap", f"has {swapped[0]} and {swapped[1]} the other way round"))

    quantifier = other_quantifier(claim, source, known)
    signals["quantifier"] = float(quantifier is not None)
    if quantifier is not None:
        problems.append(("quantifier", quantifier))

    hedge = dropped_hedge(claim, source, matched, known)
    signals["hedge"] = hedge[1] if hedge is not None else 0.0
    if hedge is not None:
        problems.append(("hedge", f"is less sure ({hedge[0]})"))

    signals["replaced"], others = _replacements(claim, source, matched)
    problems += others

    personal = (
        any(t.key in known.rules.speaker for t in claim.terms) and not known.rules.speakers & source.words
    )
    # "I tried it": chunks that nobody speaks in can't support what the speaker says of himself.
    signals["personal"] = float(personal)
    if personal:
        problems.append(("personal", "says nothing about the speaker"))
    return signals, problems


def _negation(
    claim: Sentence, source: Sentence, matched: list[tuple[Term, Term | None]], heard: Sequence[Sentence]
) -> str | None:
    """A word that is denied on one side only; None where each side denies something, or neither."""

    def heard_so(term: Term) -> bool:
        return any(
            same(term, other, claim.lang) and agree(term, other, claim.lang)
            for part in heard
            for other in part.content
        )

    def shifted(term: Term, other: Term) -> bool:
        """Denied with the same word right beside: without the net / without access to the net."""
        marker = term.negated or other.negated
        if not marker:
            return False
        beside = source.content if term.negated else claim.content
        place = other if term.negated else term
        return any(t.negated == marker and 0 < abs(t.index - place.index) <= 2 for t in beside)

    clashes = [
        (t, o)
        for t, o in matched
        if o is not None and not agree(t, o, claim.lang) and not heard_so(t) and not shifted(t, o)
    ]  # fmt: skip
    # Denials on both sides are mostly the same one, attached to other words.
    mine = [term for term, other in clashes if term.negated]
    theirs = [other for term, other in clashes if not term.negated]
    if bool(mine) == bool(theirs):
        return None
    return (mine or theirs)[0].text


def _contrast(
    claim: Sentence, source: Sentence, chunk: Chunk, heard: set[int], known: Contrasts
) -> tuple[str, str, float] | None:
    """(word of the claim, its opposite in the sentence, how sure), where the sentence lacks the first.

    Less sure where another sentence that was heard has the word: it may belong there.
    """
    sides: dict[int, dict[int, Term]] = {}
    for term in source.terms:
        if (entry := known.opposites.get(term.key)) is not None:
            sides.setdefault(entry[0], {})[entry[1]] = term
    keys = {term.key for term in claim.terms}
    for term in claim.terms:
        entry = known.opposites.get(term.key)
        if entry is None or entry[0] not in sides or entry[1] in sides[entry[0]]:
            continue
        other = next(iter(sides[entry[0]].values()))
        if other.key in keys or bool(term.negated) != bool(other.negated):
            continue
        if term.limit and other.limit:  # see _limits: "before 6" and "no later than 6" are one
            continue
        elsewhere = any(term.key in chunk.sentences[h].keys for h in heard)
        return term.text, other.text, 0.8 if elsewhere else 1.0
    around = "\n".join(chunk.sentences[h].folded for h in sorted(heard))
    return _contrast_of_pieces(claim.folded, source.folded, around, known)


def _limits(
    claim: Sentence, source: Sentence, matched: list[tuple[Term, Term | None]]
) -> tuple[tuple[str, str, float] | None, bool]:
    """At most where the sentence says more than, about the same number, as :func:`_contrast`; and whether such a pair
    says the same, with a denial on one side: may not weigh more than 20 kg / weighs at most 20 kg.
    """
    turned = False
    for term, other in matched:
        mine, theirs = term.number, other.number if other is not None else None
        if mine is None or theirs is None or not mine.limit or not theirs.limit:
            continue
        # "No more than" has its denial in its own words.
        denials = _denied_around(claim, mine.limit_words), _denied_around(source, theirs.limit_words)
        same = (mine.limit == theirs.limit) == (denials[0] == denials[1])
        if not same and mine.limit != theirs.limit:
            return (mine.as_limit, theirs.as_limit, 1.0), False
        turned = turned or (same and mine.limit != theirs.limit)
    return None, turned


def _denied_around(sentence: Sentence, limit_words: str) -> bool:
    return sentence.denies and not analyse(limit_words, sentence.lang).denies


def _contrast_of_pieces(
    claim: str, source: str, around: str, known: Contrasts
) -> tuple[str, str, float] | None:
    """The same without spaces between words, which can only be looked for as pieces of the text."""
    if not words(known.lang).has_ideographs(claim):
        return None
    for row in known.opposite_pieces:
        mine = _sides(claim, row)
        if len(mine) != 1:
            continue
        theirs = _sides(source, row)
        if not theirs or mine.keys() & theirs.keys():
            continue
        side, word = next(iter(mine.items()))
        elsewhere = side in _sides(around, row)
        # One character alone (north, up) is part of many words; then the other sentence is believed.
        if not elsewhere or len(word) > 1:
            return word, next(iter(theirs.values())), 0.8 if elsewhere else 1.0
    return None


def _sides(text: str, row: Sequence[tuple[str, int]]) -> dict[int, str]:
    """Which sides of a row occur in the text; longer words hide the shorter ones inside them."""
    found: dict[int, str] = {}
    for word, side in row:
        if word in text:
            found.setdefault(side, word)
            text = text.replace(word, " ")
    return found


def _swap(
    claim: Sentence, source: Sentence, matched: list[tuple[Term, Term | None]], known: Contrasts
) -> tuple[str, str] | None:
    """Two words that stand in each other's roles: A sued B / B sued A, from A to B / from B to A."""
    # The passive turns the roles round, so that the same order would be the swap.
    passive = known.passive(claim.folded)
    if passive != known.passive(source.folded):
        return _turned_by_passive(matched, passive, known)
    pairs = [
        (t, o)
        for t, o in matched
        if o is not None and t.number is None and t.kind != "grammar" and t.weight >= 0.9
    ]
    for i, (a, a2) in enumerate(pairs):
        for b, b2 in pairs[i + 1 :]:
            if a.key == b.key or a2.index == b2.index:
                continue
            if _turned(a, b, a2, b2, claim, source, known):
                return a.text, b.text
            if (
                a.link != b.link
                and a.link == b2.link
                and b.link == a2.link
                and {a.link, b.link} <= known.roles
            ):
                # One of them without a preposition is the subject; it must stand before the other.
                shared = any(a.index < t.index < b.index for t, _ in pairs)
                if (a.link and b.link) or (shared and (a.index < b.index) != (a2.index < b2.index)):
                    return a.text, b.text
                continue
            if a.link or b.link or a2.link or b2.link or a.kind == "ideographs":
                continue
            if not _order_tells(a, b, a2, b2, known):
                continue
            # Without prepositions only the order tells, and only close together: further apart it is free.
            around = a.clause == b.clause and b2.index < a2.index and a2.clause == b2.clause
            around = (
                around
                and {a.kind, b.kind, a.text[:1].islower(), b.text[:1].islower()}
                != {"name", "word", True, False}
                and b.index - a.index <= 3
            )
            if around and any(
                same(t, o, claim.lang)
                for t in claim.content if a.index < t.index < b.index
                for o in source.content if b2.index < o.index < a2.index
            ):  # fmt: skip
                return a.text, b.text
    return None


def _turned(
    a: Term, b: Term, a2: Term, b2: Term, claim: Sentence, source: Sentence, known: Contrasts
) -> bool:
    """True where the endings of both words change, each from one who does something to one it is done to.

    Петя обогнал Машу / Петю обогнала Маша. A title in quotation marks has the role of the word before it.
    """
    first = known.turned(_form(a, claim), _form(a2, source))
    second = known.turned(_form(b, claim), _form(b2, source))
    # Within a list or far apart, something else may have changed the endings.
    near = max(abs(b.index - a.index), abs(b2.index - a2.index)) <= _NEAR_ROLES
    return first * second == -1 and near and a.link == a2.link and b.link == b2.link


def _turned_by_passive(
    matched: list[tuple[Term, Term | None]], passive: bool, known: Contrasts
) -> tuple[str, str] | None:
    """A word that does something in one sentence and has it done to it in the other, with the next one.

    ``passive``: the claim is the one in the passive voice.
    """
    pairs = [(t, o) for t, o in matched if o is not None and t.number is None]
    for term, other in pairs:
        mine, theirs = (term, other) if passive else (other, term)
        if known.done_by(mine.folded, theirs.folded):
            rest = [t.text for t, _ in pairs if t is not term]
            return term.text, rest[0] if rest else other.text
    return None


def _form(term: Term, sentence: Sentence) -> str:
    head = sentence.terms[term.index - 1] if term.index else None
    return head.folded if term.quoted and head is not None and not head.quoted else term.folded


def _order_tells(a: Term, b: Term, a2: Term, b2: Term, known: Contrasts) -> bool:
    """True where order tells the roles: in a language of fixed order, or between words whose form tells nothing.

    Where the order is free (Russian), the endings of both words change instead.
    """
    if known.fixed_order(a.folded) and known.fixed_order(b.folded):
        return True
    if a.folded != a2.folded and b.folded != b2.folded:
        return True
    return (
        a.folded == a2.folded
        and b.folded == b2.folded
        and not known.declined(a.folded)
        and not known.declined(b.folded)
    )


def _misplaced(claim: Sentence, source: Sentence, known: Contrasts) -> tuple[str, str] | None:
    """A number or name of the claim, and the one that stands in its place where the sentence has both.

    "It was signed in 1952 and took effect in 1953" does not say that it took effect in 1952: beside
    the word that goes with the year in the claim stands another year, in the same clause.
    """
    named = {o.key for o in source.content if o.kind == "name"}
    for term in claim.content:
        word = _companion(term, claim, name=term.kind == "name" or (term.index == 0 and term.key in named))
        if word is None:
            continue
        companions = [o for o in source.content if same(word, o, claim.lang)]
        # July is also a bare 7, where the sentence has no July.
        places = [o for o in source.content if o.key == term.key]
        places = places or [o for o in source.content if same(term, o, claim.lang)]
        rivals = [
            o for o in source.content
            if _comparable(term, o) and o not in places and not any(same(t, o, claim.lang) for t in claim.content)
        ]  # fmt: skip
        if not companions or not places or not rivals:
            continue

        def distance(place: Term, companions: list[Term] = companions) -> int:
            return min(abs(place.index - w.index) + 2 * abs(place.clause - w.clause) for w in companions)

        rival = min(rivals, key=distance)
        own = min(places, key=distance)
        # "Einstein (born 1879)": brackets are a clause of their own, and still say it of the name.
        if term.number is None and any(w.index - own.index == 1 for w in companions):
            continue
        # Names move more freely than numbers: in a long claim, or beside the rival's own clause, nothing is told.
        if term.number is None and (
            len(claim.content) > 8
            or own.clause == min(companions, key=lambda w: abs(w.index - rival.index)).clause
        ):
            continue
        if (
            distance(rival) + 2 <= distance(own)
            and (term.number is not None or distance(rival) <= 2)
            and not _listed(own, rival, source, known)
        ):
            return term.text, rival.text
    return None


def _companion(term: Term, claim: Sentence, *, name: bool) -> Term | None:
    """The word that a number or name goes with: mostly before it; after it for subjects, and without spaces."""
    others = [t for t in claim.content if t.number is None and t.kind != "name" and t.weight >= 0.4]
    before = [t for t in others if t.index < term.index]
    after = [t for t in others if t.index > term.index]
    if term.number is not None:
        month = next((t for t in claim.content if t.number is not None and t.number.unit == "month"), None)
        if month is not None and term is not month and abs(term.index - month.index) == 1:
            return month
        unspaced = any(t.kind in ("ideographs", "grammar") for t in claim.content)
        order = (after[:1] or before[-1:]) if unspaced else (before[-1:] or after[:1])
    elif name:
        order = before[-1:] if term.link else after[:1]
    elif term.kind == "loanword" and term.link == words(claim.lang).rules.subject:
        order = after[:1]
    else:
        return None
    return order[0] if order else None


def _comparable(term: Term, other: Term) -> bool:
    """True where ``other`` could stand in the place of ``term``: years with years, names with names."""
    if term.number is None or other.number is None:
        names = {"name", "word"} if term.index == 0 else {term.kind}
        return term.number is None and other.number is None and other.kind in names - {"word"}
    return term.number.unit == other.number.unit and _year(term.number) == _year(other.number)


def _listed(one: Term, other: Term, source: Sentence, known: Contrasts) -> bool:
    """True where nothing but items and "and" stands between the two: a list, all of it meant."""
    low, high = sorted((one.index, other.index))
    between = [t for t in source.terms if low < t.index < high]
    return all(t.kind == one.kind or t.text.casefold() in known.rules.list_words for t in between)


def _year(number: Number) -> bool:
    return 1000 <= max(number.readings) <= 2100


def _replacements(
    claim: Sentence, source: Sentence, matched: list[tuple[Term, Term | None]]
) -> tuple[float, list[tuple[str, str]]]:
    """Signal and problems of the words that stand where the sentence has another one."""
    replaced = _replaced(claim, source, matched)
    taken = {other.index for _, other in matched if other is not None}
    # Only a sentence that says little else is about the same; the more so, the less it says.
    close = max(0.0, 2 * _share(source.content, taken) - 1)
    # But another name makes another thing of it, whatever the sentence goes on to say.
    near = _share([t for t in source.content if taken and min(taken) - 1 <= t.index <= max(taken)], taken)
    shares = [near if _is_named(mine) and _is_named(theirs) else close for mine, theirs in replaced]
    problems = [
        ("replaced", f"says {theirs.text} where the claim says {mine.text}") for mine, theirs in replaced
    ]
    return min(2.0, sum(shares)), problems


def _share(terms: Sequence[Term], taken: set[int]) -> float:
    """How much of the terms the claim has, too, by weight."""
    weight = sum(term.weight for term in terms)
    return sum(term.weight for term in terms if term.index in taken) / weight if weight else 0.0


def _is_named(term: Term) -> bool:
    return term.kind in ("name", "loanword") or term.quoted or term.text[:1].isupper()


def _replaced(
    claim: Sentence, source: Sentence, matched: list[tuple[Term, Term | None]]
) -> list[tuple[Term, Term]]:
    """Words of the claim whose neighbours match a place where the sentence has another word."""
    taken = {other.index for _, other in matched if other is not None}
    places = {term.index: place for place, term in enumerate(source.content)}
    found = []
    for i, (term, other) in enumerate(matched):
        if other is not None or term.number is not None or term.weight < 0.6:
            continue
        before = matched[i - 1][1] if i else None
        after = matched[i + 1][1] if i + 1 < len(matched) else None
        slot = None
        if before is not None and after is not None:
            low, high = places[before.index], places[after.index]
            if 1 < high - low <= 3:
                slot = source.content[low + 1 : high]
        elif before is not None and i + 1 == len(matched):
            slot = source.content[places[before.index] + 1 :][:1]
        elif after is not None and i == 0:
            slot = source.content[max(0, places[after.index] - 1) : places[after.index]]
        # A word that another of the claim's matches is said, only elsewhere.
        free = [
            t for t in slot or []
            if t.index not in taken and t.kind != "grammar" and not (term.limit and t.limit)
        ]  # fmt: skip
        if free:
            found.append((term, free[0]))
    return found


def _weight_of_lacking(term: Term, claim: Sentence, source: Sentence, chunk: Chunk) -> float:
    """1 for a number that the chunk lacks, less where it may have been counted or stands elsewhere."""
    if not _absent(term, chunk):
        return 0.6
    number = term.number
    # "Two of them" may be counted from a list of two, as long as the source states no other number.
    small = number is not None and max(number.readings) <= 10 and number.unit in ("", "person")
    stated = [n for n in source.numbers if not any(n.matches(mine) for mine in claim.numbers)]
    return 0.4 if small and not stated else 1.0


def _absent(term: Term, chunk: Chunk) -> bool:
    number = term.number
    return not any(number is not None and number.matches(n) for part in chunk.sentences for n in part.numbers)


def _number_problem(term: Term, chunk: Chunk) -> str:
    if _absent(term, chunk):
        return f"does not have the number {term.text}"
    return f"has {term.text} elsewhere, not for this"
