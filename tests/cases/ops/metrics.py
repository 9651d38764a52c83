"""Metrics on odd input: overlap of texts, vectors, verdict lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from pytest_ragbench import RagSample, UndefinedScore, score
from pytest_ragbench.metrics.formulas import agreement, clusters, dialogue, overlap, verdicts
from tests.cases import product
from tests.cases.gating import gated
from tests.cases.ops.replies import as_reply
from tests.cases.outcomes import Outcome, failure, observe
from tests.cases.registry import Input, op

# Overlap of texts


def _pair(given: Input) -> tuple[str, str]:
    """Answer and reference."""
    answer = next(
        (given[key] for key in ("hypothesis", "answer", "response", "candidate") if key in given), ""
    )
    return str(answer), str(given.get("reference", ""))


def _rouge(answer: str, reference: str, given: Input) -> dict[str, dict[str, float]]:
    tokenizer: Any = given.get("tokenize", given.get("tokenizer", "unicode"))
    found = overlap.rouge(answer, reference, tokenizer=tokenizer)
    return {name: {"p": r.precision, "r": r.recall, "f": r.f1} for name, r in found.items()}


@op("rouge")
def rouge(given: Input) -> Outcome:
    """ROUGE-1, -2 and -L; texts that are identical to the reference or share nothing with it are told."""
    answer, reference = _pair(given)
    problems = []

    def measured() -> dict[str, Any]:
        value: dict[str, Any] = _rouge(answer, reference, given)
        for key in ("also_identical", "identical"):
            if key in given:
                value["identical_f"] = _rouge(given[key], reference, given)["rouge1"]["f"]
                if given[key] == reference and value["identical_f"] != 1.0:
                    problems.append(f"identical texts have an F of {value['identical_f']}")
        if "disjoint" in given:
            value["disjoint_f"] = _rouge(given["disjoint"], reference, given)["rouge1"]["f"]
            if value["disjoint_f"] != 0.0:
                problems.append(f"texts that share nothing have an F of {value['disjoint_f']}")
            if not 0 < value["rouge1"]["f"] < 1:
                problems.append(f"the given pair has an F of {value['rouge1']['f']}")
        return value

    outcome = observe(measured)
    outcome.problems += problems
    return outcome


def _text_metric(name: str, answer: str, reference: str, given: Input) -> float:
    """In 0..1, as all metrics of one case are compared with one number."""
    if name.casefold().startswith("rouge"):
        return _rouge(answer, reference, given)[name]["f"]
    if name in ("bleu", "sentence_bleu"):
        return overlap.bleu(answer, reference, lang=given.get("lang")).value / 100
    if name.startswith("chrf"):
        return overlap.chrf(answer, reference).value / 100
    if name == "token_f1":
        return overlap.token_f1(answer, reference)
    if name == "exact_match":
        return overlap.exact_match(answer, reference)
    return overlap.string_similarity(answer, reference)


@op("text_metrics", "text_metric")
def text_metrics(given: Input) -> Outcome:
    """Several metrics of one pair: their common value, or the first error."""
    answer, reference = _pair(given)

    def measured() -> Any:
        names = given.get("metrics") or [given.get("metric", "rougeL")]
        values = [_text_metric(name, answer, reference, given) for name in names]
        return values[0] if max(values) - min(values) <= 1e-9 else dict(zip(names, values, strict=True))

    outcome = observe(measured)
    if outcome.kind == "not_applicable":  # docs/policies.md: texts without a token are no usable pair
        outcome.kind = "usage_error"
    return outcome


@op("bleu")
def bleu(given: Input) -> Outcome:
    """Sentence BLEU in 0..100, with the tokenizer of the language."""
    answer, reference = _pair(given)
    tokenizer = given.get("tokenize", given.get("tokenizer"))
    outcome = observe(
        lambda: overlap.bleu(answer, reference, lang=given.get("lang"), tokenizer=tokenizer).value
    )
    if outcome.kind == "value" and not 0 <= outcome.value <= 100:
        outcome.problems.append(f"BLEU is {outcome.value!r}")
    return outcome


@op("bleu_gate", whole=True)
def bleu_gate(given: Input) -> Outcome:
    """BLEU of one pair against several thresholds."""
    answer, reference = _pair(given)
    found = observe(lambda: overlap.bleu(answer, reference, lang=given.get("lang")).value)
    if found.kind != "value":
        return found
    # An upper limit on BLEU is a question about its range: a gate of its own with that direction.
    gates = [
        gated(
            "bleu",
            found.value,
            limit,
            low=0.0,
            high=100.0,
            direction="lower" if str(limit).lstrip().startswith("<") else "higher",
        )
        for limit in given["thresholds"]
    ]
    return Outcome("property", {"bleu": found.value}, each=gates)


# Vectors


def vector(numbers: Sequence[Any]) -> list[float]:
    """JSON has no NaN: a text stands for it."""
    return [float(number) for number in numbers]


@op("semantic_similarity", "cosine")
def semantic_similarity(given: Input) -> Outcome:
    """``semantic_similarity`` where the embedder returns these two vectors."""

    def measured() -> float:
        with product.using(embedder=product.embedder_of([vector(given["a"]), vector(given["b"])])):
            return score("semantic_similarity", RagSample("q", "answer", reference="reference")).value

    return observe(measured)


@op("cluster_metrics")
def cluster_metrics(given: Input) -> Outcome:
    """Similarity within clusters, distance between them, silhouette."""

    def measured() -> dict[str, Any]:
        rows = [vector(row) for row in given["X"]]
        labels = given["labels"]
        value: dict[str, Any] = {
            "avg_intra_cluster_sim": _or_outcome(
                lambda: clusters.intra_cluster_similarity(rows, labels).value
            ),
            "avg_inter_cluster_dist": _or_outcome(lambda: clusters.inter_cluster_distance(rows, labels)),
            "silhouette_score": _or_outcome(
                lambda: clusters.silhouette(rows, labels, distance="euclidean").value
            ),
        }
        if second := given.get("second"):
            value["second_avg_intra"] = _or_outcome(
                lambda: clusters.intra_cluster_similarity(second["X"], second["labels"]).value
            )
        return value

    return observe(measured)


def _or_outcome(run: Callable[[], float]) -> Any:
    """The value, or the outcome that stands in its place."""
    found = observe(run)
    return found.value if found.kind == "value" else found


@op("response_relevancy", "answer_relevancy")
def response_relevancy(given: Input) -> Outcome:
    """``answer_relevancy`` where the judge flags its questions so, and their vectors have these cosines."""
    flags, cosines = given["noncommittal"], [float(cosine) for cosine in given["similarities"]]
    questions = [
        {"question": f"question number {number}", "noncommittal": flag}
        for number, flag in enumerate(flags, 1)
    ]
    vectors = [[1.0, 0.0], *([cosine, math.sqrt(max(1 - cosine**2, 0.0))] for cosine in cosines)]

    def measured() -> float:
        judge = product.Scripted([as_reply({"questions": questions})])
        with product.using(judge=judge, embedder=product.embedder_of(vectors)):
            sample = RagSample("the question", "an answer")
            options = {"noncommittal": given["rule"]} if "rule" in given else {}
            return score("answer_relevancy", sample, strictness=max(len(flags), 1), **options).value

    return observe(measured)


# Verdict lists


@op("context_precision", single="verdicts")
def context_precision(given: Input) -> Outcome:
    """Average precision of the chunks found useful."""
    return observe(lambda: verdicts.average_precision(given["verdicts"]))


@op("context_recall", single="verdicts")
def context_recall(given: Input) -> Outcome:
    """Share of the reference's claims that the chunks support."""
    return observe(lambda: verdicts.share(given["verdicts"]))


@op("noise_sensitivity")
def noise_sensitivity(given: Input) -> Outcome:
    """Share of the answer's claims that are wrong and come from a (relevant) chunk."""
    incorrect = given["incorrect"]
    relevant = given.get("relevant_faithful", [0] * len(incorrect))
    irrelevant = given.get("irrelevant_faithful", [0] * len(incorrect))

    def measured() -> float:
        shares = verdicts.noise_sensitivity(
            [[1, 0]], list(zip(relevant, irrelevant, strict=True)), [not wrong for wrong in incorrect]
        )
        return float(getattr(shares, given.get("mode", "relevant")))

    outcome = observe(measured)
    if outcome.kind == "value":
        limits = given.get("thresholds", [])
        outcome.parts["gates"] = [
            gated("noise_sensitivity", outcome.value, limit, direction="lower") for limit in limits
        ]
    return outcome


@op("ux_metrics")
def ux_metrics(given: Input) -> Outcome:
    """Cache hits, sessions and the agreement of two judges."""

    def measured() -> dict[str, Any]:
        value: dict[str, Any] = {}
        if "cache_max_similarities" in given:
            value["cache_hit_rate"] = _or_outcome(
                lambda: dialogue.cache_hit_rate(given["cache_max_similarities"])
            )
        if "sessions" in given:
            value["context_preservation"] = [
                _or_outcome(lambda one=one: dialogue.context_preservation([one["vectors"]]).value)  # type: ignore[misc]
                for one in given["sessions"]
            ]
        if "judge_pairs" in given:
            first, second = zip(*given["judge_pairs"], strict=True)
            value["consistency"] = _or_outcome(  # the cases mean the founding document's half a scale
                lambda: agreement.consistency(first, second, delta=float(given.get("delta", 0.5))).value
            )
        return value

    return observe(measured)


@op("f_beta", "answer_correctness", "factual_correctness")
def correctness(given: Input) -> Outcome:
    """Answer correctness from counted claims, or from the verdicts of both sides."""

    def measured() -> float:
        beta = float(given.get("beta", 1.0))
        if "answer_verdicts" in given:
            return verdicts.factual_correctness(
                given["answer_verdicts"], given.get("reference_verdicts", ()), given.get("mode", "f1"), beta
            ).value
        tp, fp, fn = (int(given[name]) for name in ("tp", "fp", "fn"))
        weights = given.get("weights", (1.0, 0.0) if given.get("similarity") is None else (0.75, 0.25))
        first, second = (float(weight) for weight in weights)
        return verdicts.answer_correctness(
            tp, fp, fn, given.get("similarity", given.get("cosine")), weights=(first, second), beta=beta
        )

    return observe(measured)


@op("entity_recall", "context_entity_recall")
def entity_recall(given: Input) -> Outcome:
    """Entities of the reference that the chunks name."""
    wanted = given.get("reference_entities", given.get("reference", ()))
    return observe(
        lambda: verdicts.entity_recall(wanted, given.get("context_entities", given.get("contexts", ())))
    )


__all__ = ["UndefinedScore", "failure"]
