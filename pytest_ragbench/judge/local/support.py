"""Does a chunk support a claim? Word coverage, lowered by the facts that differ."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_ragbench.judge.local.conflicts import conflicts
from pytest_ragbench.judge.local.matching import match
from pytest_ragbench.judge.local.terms import Chunk, Sentence, analyse, analyse_chunk
from pytest_ragbench.judge.local.words import words
from pytest_ragbench.text import fold, is_blank

# The formula: support = sigmoid(BIAS + sum of weight x signal), signals as explained in docs/local-judge.md.
# BIAS and the weights of coverage, sentence, negation, replaced and personal are a rounded logistic
# fit to labelled answers. Those of the other facts are set by hand, so that one wrong fact outweighs full
# coverage (BIAS + 4.2 + 2.0 = 2.2): the labelled answers hold too few of them to fit.
BIAS = -4.0
SUPPORTED = 0.5
"""From here on a claim counts as supported."""

WEIGHTS = {
    "coverage": 4.2,  # weighted share of the claim's terms in the best one to three sentences of a chunk
    "sentence": 2.0,  # the same in the best single sentence
    "number": -2.5,  # numbers and dates that the sentences lack, at most two
    "misplaced": -2.5,  # a number of the sentence, but another one stands next to the words of the claim
    "name": -1.0,  # names that the chunk lacks, at most two
    "negation": -3.0,  # a word denied on one side only
    "contrast": -2.5,  # opposites and exclusive values (before/after, red/blue)
    "swap": -4.5,  # the same words in each other's roles
    "quantifier": -2.5,  # all where the chunk says some; only where it does not
    "hedge": -2.5,  # the chunk says may, almost, plans to; the claim does not
    "replaced": -1.7,  # a word stands where the chunk has another one between the same neighbours
    "personal": -2.0,  # "I", "my": what no chunk says of the speaker
    "addition": -1.0,  # a clause that the sentences have next to nothing of
}


NEXT_TO_NOTHING = 0.3
"""Share of a clause's words that the sentences have, below which it is an addition."""
_LEAST_CLAUSE = 1.0
"""Weight of the words that a clause must have for that."""
_ALL_WORDS = 0.999
_MOST_STEEPNESS = 3.0
ASKED = 0.4
"""Weight of words that the question has already: the answer does not claim them."""


@dataclass(frozen=True, slots=True)
class Support:
    """How well the chunks support one claim."""

    value: float
    """0..1; the claim counts as supported from 0.5."""
    chunk: int | None
    """1-based number of the chunk it rests on (or that contradicts it), None where none comes near."""
    reason: str
    """One short English sentence."""


@dataclass(slots=True)
class Evidence:
    """A claim held against one chunk: the signals of the formula and the words that explain them."""

    signals: dict[str, float]
    missing: list[str]
    problems: list[tuple[str, str]]
    """(signal, what is wrong), worst first."""
    steepness: float = 1.0
    """How much the logit tells. In a chunk of many sentences the words of a claim do not meet by chance in a few
    sentences; beside a single one, written to be nearly the same, they tell less. By one a factor e of sentences,
    up to :data:`_MOST_STEEPNESS`."""
    verbatim: bool = False
    """Whether the claim stands in a sentence of the chunk word for word, and nothing there says otherwise."""

    @property
    def probability(self) -> float:
        """That the chunk supports the claim, 0..1, in hundredths; 1 for a claim that it has word for word."""
        # More digits would pretend to a precision that the signals don't have.
        return 1.0 if self.verbatim else round(1.0 / (1.0 + math.exp(-self.steepness * self.logit)), 2)

    @property
    def logit(self) -> float:
        return BIAS + sum(weight * self.signals[name] for name, weight in WEIGHTS.items())


def verify(claim: str, contexts: Sequence[str], question: str = "") -> Support:
    """How well ``contexts`` (ranked chunks) support ``claim``.

    The claim is held against each chunk alone; the best chunk counts. ``question`` only tells which
    names are the topic: those weigh less when a chunk calls them otherwise. Deterministic, no network.
    """
    chunks = [(number, text) for number, text in enumerate(contexts, start=1) if not is_blank(text)]
    if not chunks:
        return Support(0.0, None, "no chunk was retrieved")
    sentence = analyse(claim)
    if not sentence.content:
        return Support(0.0, None, "it says nothing that can be checked")
    found = [(number, weigh(sentence, analyse_chunk(text), question)) for number, text in chunks]
    number, best = max(found, key=lambda pair: (pair[1].probability, -pair[0]))
    value = best.probability
    if value < SUPPORTED:
        # Why not: told by the chunk that comes nearest, which may be one that differs in a fact.
        number, best = max(found, key=lambda pair: (pair[1].signals["coverage"], -pair[0]))
        if best.problems:  # the chunk that is about it says otherwise: stray words of another don't count
            value = min(value, best.probability)
    return Support(
        value,
        number if value >= SUPPORTED or best.signals["coverage"] >= 0.5 else None,
        _reason(value, number, best, [evidence for _, evidence in found]),
    )


def weigh(claim: Sentence, chunk: Chunk, question: str = "", asked_weight: float = ASKED) -> Evidence:
    """The signals of the formula for one claim and one chunk."""
    scores = match(claim, chunk)
    asked = analyse(question).keys if question else frozenset()
    # What the question says already is not what the answer claims.
    weights = [
        term.weight * (asked_weight if term.key in asked and term.content else 1.0) for term in claim.terms
    ]
    total = sum(weights)

    count = len(chunk.sentences)
    gains = [[weight * score / total for score in row] for weight, row in zip(weights, scores, strict=True)]
    gains = [row for row in gains if any(row)]
    single = [sum(row[s] for row in gains) for s in range(count)]
    top = max(single)
    window = [single.index(top)]
    best = [row[window[0]] for row in gains]
    while len(window) < 4:
        extra, more = max(
            (
                (s, sum(max(0.0, row[s] - had) for row, had in zip(gains, best, strict=True)))
                for s in range(count)
            ),
            key=lambda pair: (pair[1], -pair[0]),
        )
        if more <= 1e-9:
            break
        window.append(extra)
        best = [max(row[extra], had) for row, had in zip(gains, best, strict=True)]
    # Sentences that say nearly as much are heard too: the one that agrees most speaks for the chunk.
    near = [s for s, value in enumerate(single) if value >= 0.9 * top][:4]
    candidates = [conflicts(claim, chunk, s, window=window, scores=scores, question=question) for s in near]
    signals, problems = max(candidates, key=lambda pair: sum(WEIGHTS[k] * v for k, v in pair[0].items()))
    # A sentence that is about something else contradicts nothing.
    # (The opposite itself is missing from the coverage, so that there the bar is lower.)
    for name in ("negation", "contrast", "swap", "quantifier", "hedge", "replaced", "misplaced"):
        signals[name] *= min(1.0, max(0.0, (top - (0.25 if name == "contrast" else 0.5)) * 4))
    added, clause = _addition(claim, weights, [max(row[s] for s in window) for row in scores])
    # Of a claim that the chunk is not about, everything is added.
    signals["addition"] = added * min(1.0, max(0.0, (top - 0.25) * 4))
    if clause:
        problems.append(("addition", f"says nothing of: {clause}"))
    signals = {"coverage": sum(best), "sentence": top} | signals
    missing = [
        term.text
        for i, term in enumerate(claim.terms)
        if term.content and max(scores[i][s] for s in window) < 0.5
    ]
    problems = [problem for problem in problems if signals[problem[0]] > 0.1]
    problems.sort(key=lambda problem: WEIGHTS[problem[0]] * signals[problem[0]])
    return Evidence(
        signals,
        missing,
        problems,
        steepness=min(_MOST_STEEPNESS, 1.0 + math.log(count)),
        verbatim=top > _ALL_WORDS and not problems and _stands_in(claim, chunk),
    )


def _addition(claim: Sentence, weights: Sequence[float], had: Sequence[float]) -> tuple[float, str]:
    """(0..1, its words) of the clause whose words the chunk has least of: "it leaves at 8 and *has a restaurant*".

    The first clause is what the others are added to, and "not on the hook" adds nothing. ``had``: how far the chunk
    has each term of the claim.
    """
    rules = words(claim.lang)
    clauses: dict[int, list[tuple[float, float]]] = {}
    begun, denied = set(), set()
    for term, weight, score in zip(claim.terms, weights, had, strict=True):
        if term.content:
            clauses.setdefault(term.clause, []).append((weight, score))
        word = fold(term.text, claim.lang)
        if term.clause not in begun and word not in rules.rules.joins:
            begun.add(term.clause)
            if rules.denies(word):
                denied.add(term.clause)
    shares = {
        clause: sum(weight * score for weight, score in terms) / total
        for clause, terms in list(clauses.items())[1:]
        if clause not in denied and (total := sum(weight for weight, _ in terms)) >= _LEAST_CLAUSE
    }
    if not shares:
        return 0.0, ""
    least = min(shares, key=shares.__getitem__)
    said = (term.text for term in claim.terms if term.content and term.clause == least)
    return max(0.0, 1.0 - shares[least] / NEXT_TO_NOTHING), ", ".join(said)


def _stands_in(claim: Sentence, chunk: Chunk) -> bool:
    said = f" {_bare(claim)} "
    return any(said in f" {_bare(part)} " for part in chunk.sentences)


def _bare(sentence: Sentence) -> str:
    return re.sub(r"[\W_]+", " ", sentence.folded).strip()


def fault(evidence: Evidence) -> str:
    """What speaks against the claim, where there is one chunk only."""
    return _reason(0.0, 1, evidence, [evidence])


def _reason(value: float, number: int, evidence: Evidence, everyone: Sequence[Evidence]) -> str:
    if value >= SUPPORTED:
        return f"chunk {number} says so"
    if evidence.problems and evidence.signals["coverage"] >= 0.4:
        _, problem = evidence.problems[0]
        if problem.startswith(("does not mention ", "does not have ")) and all(
            any(other == problem for _, other in each.problems) for each in everyone
        ):
            if problem.startswith("does not mention "):
                return "no chunk mentions " + problem.removeprefix("does not mention ")
            return problem.removeprefix("does not have ") + " is in no chunk"
        return f"chunk {number} {problem}"
    if evidence.missing:
        return "no chunk says so; missing: " + ", ".join(dict.fromkeys(evidence.missing[:4]))
    return "no chunk says so"
