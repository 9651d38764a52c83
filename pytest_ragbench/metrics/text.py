"""Overlap of the words of answer and reference: no judge, no embedder, no idea of the meaning.

Formulas and tokenizers: :mod:`pytest_ragbench.metrics.formulas.overlap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pytest_ragbench.metrics.formulas import overlap
from pytest_ragbench.metrics.registry import NO_BANDS, metric
from pytest_ragbench.metrics.steps import NOBODY, choice, head
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UndefinedScore, UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score

_NEEDS = ("answer", "reference")
Part = Literal["f1", "precision", "recall"]
Tokenizer = Literal["unicode", "whitespace"] | Callable[[str], list[str]]


def _differs(sample: RagSample) -> str:
    return f"the reference is: {head(sample.reference or '', 160)}"


def _no_tokens(name: str, sample: RagSample) -> UsageError:
    return UsageError(
        f"{name} for sample {sample.label}: no token to compare, neither the answer nor the reference "
        f"{head(sample.reference or '', 40)!r} holds a letter or digit; give a reference in words"
    )


def _check_part(sample: RagSample, options: Mapping[str, Any]) -> Mapping[str, Any]:
    choice("rouge", "part", options.get("part", "f1"), ("f1", "precision", "recall"))
    return {}


def _rouge(kind: str, what: str, bands: Mapping[str, float]) -> None:
    """Register one of the three; they differ in what they count."""

    async def rouge(
        sample: RagSample,
        tools: Tools,
        *,
        part: Part = "f1",
        tokenizer: Tokenizer = "unicode",
        stem: bool = False,
        fold_yo: bool = False,
    ) -> Score:
        answer, reference = sample.answer or "", sample.reference or ""
        how: dict[str, Any] = {"tokenizer": tokenizer, "stem": stem, "fold_yo": fold_yo}
        try:
            found = overlap.rouge(answer, reference, [kind], **how)[kind]
        except UndefinedScore:
            raise _no_tokens(kind, sample) from None
        return tools.score(
            sample, getattr(found, part), reason=_differs(sample), **found._asdict(), part=part,
            signature=overlap.rouge_signature(**how),
        )  # fmt: skip

    rouge.__doc__ = f"""F1 of {what}; ``details`` hold precision, recall and signature.

    Parameters
    ----------
    part
        What to return.
    tokenizer
        ``"unicode"``: words in any script, characters in Chinese, Japanese and Thai; ``"whitespace"`` for
        texts that are segmented already; or a function from text to tokens.
    stem
        Porter stemmer, on English words only.
    fold_yo
        Read the Russian ё as е.
    """
    metric(kind, tier="generation", needs=_NEEDS, bands=bands, adapt=_check_part)(rouge)


_rouge("rouge1", "the words that answer and reference share", {"good": 0.4})
_rouge("rouge2", "the pairs of neighbouring words that answer and reference share", NO_BANDS)
_rouge("rougeL", "the longest common subsequence of words", {"good": 0.5})


@metric("bleu", tier="generation", needs=_NEEDS, high=100.0, bands=NO_BANDS)
async def bleu(
    sample: RagSample, tools: Tools, *, tokenizer: str | None = None, lowercase: bool = False
) -> Score:
    """Sentence BLEU, 0..100: sacrebleu with effective order; the mean over samples is avg_sentence_bleu.

    ``details["signature"]`` is sacrebleu's. Below 20 is usual for short answers in other words.

    Parameters
    ----------
    tokenizer
        One of sacrebleu's; by default that of the sample's language: 13a (en), intl (ru and others), zh,
        ja-mecab where it is installed, else char (ja).
    """
    found = overlap.bleu(
        sample.answer or "",
        sample.reference or "",
        lang=sample.lang,
        tokenizer=tokenizer,
        lowercase=lowercase,
    )
    return tools.score(sample, found.value, reason=_differs(sample), signature=found.signature)


@metric("chrf", tier="generation", needs=_NEEDS, high=100.0, bands=NO_BANDS)
async def chrf(sample: RagSample, tools: Tools, *, word_order: int = 0, lowercase: bool = False) -> Score:
    """F2 of character n-grams up to 6, 0..100 (sacrebleu); ``word_order=2`` is chrF++."""
    found = overlap.chrf(
        sample.answer or "", sample.reference or "", word_order=word_order, lowercase=lowercase
    )
    return tools.score(sample, found.value, reason=_differs(sample), signature=found.signature)


@metric("corpus_bleu", tier="generation", of="set", needs=_NEEDS, high=100.0, bands=NO_BANDS)
async def corpus_bleu(
    samples: Sequence[RagSample],
    tools: Tools,
    *,
    lang: str | None = None,
    tokenizer: str | None = None,
    lowercase: bool = False,
) -> Score:
    """BLEU of all answers of a set as one text, 0..100 (sacrebleu, no effective order).

    Not the mean of the sentence scores (that is the mean of ``bleu``). ``lang`` chooses the tokenizer;
    by default it is told from the first reference.
    """
    found = overlap.corpus_bleu(
        [sample.answer or "" for sample in samples],
        [sample.reference or "" for sample in samples],
        lang=lang or next((sample.lang for sample in samples if sample.lang), None),
        tokenizer=tokenizer,
        lowercase=lowercase,
    )
    return tools.score(
        NOBODY, found.value, reason=f"{len(samples)} answers", signature=found.signature, n_items=len(samples)
    )


@metric("exact_match", tier="generation", needs=_NEEDS, bands={"good": 1.0})
async def exact_match(sample: RagSample, tools: Tools) -> Score:
    """1 where the answer is the reference, up to case, width, spaces and punctuation at the ends."""
    value = overlap.exact_match(sample.answer or "", sample.reference or "")
    return tools.score(sample, value, reason=_differs(sample))


@metric("token_f1", tier="generation", needs=_NEEDS)
async def token_f1(sample: RagSample, tools: Tools) -> Score:
    """F1 of the bags of words of answer and reference (SQuAD's, for any script, articles kept)."""
    try:
        value = overlap.token_f1(sample.answer or "", sample.reference or "")
    except UndefinedScore:
        raise _no_tokens("token_f1", sample) from None
    return tools.score(sample, value, reason=_differs(sample))


@metric("string_similarity", tier="generation", needs=_NEEDS)
async def string_similarity(sample: RagSample, tools: Tools) -> Score:
    """1 - Levenshtein distance / length of the longer text, in 0..1."""
    value = overlap.string_similarity(sample.answer or "", sample.reference or "")
    findings = [Finding(sample.reference or "", None, "reference")]
    return tools.score(sample, value, reason=_differs(sample), evidence=findings, evidence_title="texts")
