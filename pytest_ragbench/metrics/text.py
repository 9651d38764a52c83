"""How far the words of answer and reference overlap; without a judge or embedder, and blind to meaning.

Formulas, sources and tokenizers: :mod:`pytest_ragbench.metrics.formulas.overlap`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pytest_ragbench.metrics.formulas import overlap
from pytest_ragbench.metrics.registry import NO_BANDS, metric
from pytest_ragbench.metrics.steps import NOBODY, head
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


def _rouge(kind: str, what: str, bands: Mapping[str, float]) -> None:
    """Register one of the three ROUGE metrics; they differ only in what they count."""

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
            # A usage error: a reference without a single word is the test's mistake.
            raise _no_tokens(kind, sample) from None
        return tools.score(
            sample, getattr(found, part), reason=_differs(sample), **found._asdict(), part=part,
            signature=overlap.rouge_signature(**how),
        )  # fmt: skip

    rouge.__doc__ = f"""How many {what} (F1); ``details`` hold precision, recall and signature.

    Parameters
    ----------
    part
        What to return.
    tokenizer
        ``"unicode"``: words in any script, characters in Chinese, Japanese and Thai; ``"whitespace"`` for
        text that is segmented already; or a function from a string to its tokens.
    stem
        Porter stemmer, on English words only.
    fold_yo
        Read the Russian ё as е.
    """
    # Registered here, because the decorator needs the docstring that was just made.
    metric(kind, tier="generation", needs=_NEEDS, bands=bands)(rouge)


_rouge("rouge1", "words answer and reference share", {"good": 0.4})
_rouge("rouge2", "pairs of neighbouring words answer and reference share", NO_BANDS)
_rouge("rougeL", "words of the reference the answer has in the same order", {"good": 0.5})


@metric("bleu", tier="generation", needs=_NEEDS, high=100.0, bands=NO_BANDS)
async def bleu(
    sample: RagSample, tools: Tools, *, tokenizer: str | None = None, lowercase: bool = False
) -> Score:
    """How many word sequences of the answer are in the reference: sentence BLEU, 0..100.

    By sacrebleu with effective order; ``details["signature"]`` is sacrebleu's. Below 20 is usual for short
    answers in other words.

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
    """How many character sequences answer and reference share: chrF, 0..100.

    F2 of character n-grams up to 6, by sacrebleu; ``word_order=2`` is chrF++.
    """
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
    """BLEU of all answers of a set taken as one document, 0..100.

    By sacrebleu, without effective order; the mean of ``bleu`` over the samples is another number. ``lang``
    chooses the tokenizer; by default the language of the first reference does.
    """
    found = overlap.corpus_bleu(
        [sample.answer or "" for sample in samples],
        [sample.reference or "" for sample in samples],
        # One tokenizer for all, or n-grams of the document could not be counted together.
        lang=lang or next((sample.lang for sample in samples if sample.lang), None),
        tokenizer=tokenizer,
        lowercase=lowercase,
    )
    return tools.score(
        NOBODY, found.value, reason=f"{len(samples)} answers", signature=found.signature, n_items=len(samples)
    )


@metric("exact_match", tier="generation", needs=_NEEDS, bands={"good": 1.0})
async def exact_match(sample: RagSample, tools: Tools) -> Score:
    """Whether the answer equals the reference (1, else 0), apart from case, width, spaces and outer punctuation."""
    value = overlap.exact_match(sample.answer or "", sample.reference or "")
    return tools.score(sample, value, reason=_differs(sample))


@metric("token_f1", tier="generation", needs=_NEEDS)
async def token_f1(sample: RagSample, tools: Tools) -> Score:
    """How many words answer and reference share, in any order (F1 of SQuAD; any script, articles kept)."""
    try:
        value = overlap.token_f1(sample.answer or "", sample.reference or "")
    except UndefinedScore:
        raise _no_tokens("token_f1", sample) from None
    return tools.score(sample, value, reason=_differs(sample))


@metric("string_similarity", tier="generation", needs=_NEEDS)
async def string_similarity(sample: RagSample, tools: Tools) -> Score:
    """How similar answer and reference are, letter by letter: 1 - Levenshtein distance / longer length."""
    value = overlap.string_similarity(sample.answer or "", sample.reference or "")
    findings = [Finding(sample.reference or "", None, "reference")]
    return tools.score(sample, value, reason=_differs(sample), evidence=findings, evidence_title="texts")
