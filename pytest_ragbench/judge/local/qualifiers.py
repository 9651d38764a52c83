"""All or some, surely or perhaps: how far a claim and a sentence say what they say."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_ragbench.judge.local.contrasts import Contrasts, first
from pytest_ragbench.judge.local.terms import Sentence, Term

CONDITION = 0.6
"""How much "if" weakens a statement: what holds under a condition holds mostly."""


def other_quantifier(claim: Sentence, source: Sentence, known: Contrasts) -> str | None:
    """All where the sentence says some, only where it does not say so."""
    rules = known.rules
    mine = {term.key for term in claim.terms} | claim.words
    theirs = {term.key for term in source.terms} | source.words
    # A chunk that says both "all" and "some" decides nothing here.
    universal = _said(claim, known.universal, rules.universal_pieces)
    if universal and not known.universal & theirs and not first(rules.universal_pieces, source.folded):
        partial = _said(source, known.partial, rules.partial_pieces)
        if partial and not known.partial & mine and not first(rules.partial_pieces, claim.folded):
            return f"says {partial}, not {universal}"
    only = next(iter(sorted(rules.exclusive & mine)), None) or known.exclusive_piece(claim.folded)
    if only and not rules.exclusive & theirs and not first(rules.exclusive_pieces, source.folded):
        return f"does not say {only}"
    return None


def _said(sentence: Sentence, stems: frozenset[str], pieces: Sequence[str]) -> str | None:
    """The first word of the sentence with one of the stems, or else the first of the pieces that it has."""
    return next((t.text for t in sentence.terms if t.key in stems), None) or first(pieces, sentence.folded)


def dropped_hedge(
    claim: Sentence, source: Sentence, matched: list[tuple[Term, Term | None]], known: Contrasts
) -> tuple[str, float] | None:
    """A word like "may" or "almost" in the clause that the claim repeats without it, and how much it weakens, 0..1."""
    rules = known.rules
    forms = {form for term in claim.terms for form in (term.key, term.folded)}
    careful = forms & (known.hedges | rules.able) or known.hedges_in(claim)
    if careful or first(rules.hedge_pieces, claim.folded):
        return None
    repeated = [other for _, other in matched if other is not None]
    clauses = [other.clause for other in repeated]
    for term in known.hedges_in(source):
        condition = term.folded in rules.conditions
        # What it weakens may be nothing that the claim says: "may work at home after a probation of six months".
        weakened = next((t for t in source.content if t.index > term.index), None)
        said = weakened is None or any(other.index == weakened.index for other in repeated)
        if (said or condition) and clauses.count(term.clause) * 2 > len(clauses):
            return term.text, CONDITION if condition else 1.0
    piece = first(rules.hedge_pieces, source.folded)
    return (piece, 1.0) if piece is not None else None
