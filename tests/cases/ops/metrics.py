"""Metrics on odd input: overlap of texts, vectors, verdict lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_ragbench import RagSample, Score, assert_metric, score, score_over
from pytest_ragbench.judge.base import Answered
from pytest_ragbench.judge.tasks import Claims, SplitClaims
from tests.cases import product
from tests.cases.gating import gated
from tests.cases.ops.replies import as_reply, numbered
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op

# Overlap of texts


def _pair(given: Input) -> tuple[str, str]:
    """Answer and reference."""
    answer = next(
        (given[key] for key in ("hypothesis", "answer", "response", "candidate") if key in given), ""
    )
    return str(answer), str(given.get("reference", ""))


def _score(metric: str, answer: str, reference: str, given: Input, **options: Any) -> Score:
    with product.using():
        return score(metric, RagSample("q", answer, reference=reference, lang=given.get("lang")), **options)


def _rouge(answer: str, reference: str, given: Input) -> dict[str, dict[str, float]]:
    tokenizer = given.get("tokenize", given.get("tokenizer", "unicode"))
    found = {}
    for name in ("rouge1", "rouge2", "rougeL"):
        parts = _score(name, answer, reference, given, tokenizer=tokenizer)
        details = parts.details or {"precision": parts.value, "recall": parts.value}
        found[name] = {"p": details["precision"], "r": details["recall"], "f": parts.value}
    return found


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
    outcome.facts["numbers"] = [0.0, 1.0]  # what the problems above compare with
    return outcome


def _text_metric(name: str, answer: str, reference: str, given: Input) -> float:
    """In 0..1, as all metrics of one case are compared with one number."""
    known = {"rouge-1": "rouge1", "rouge-2": "rouge2", "rouge-l": "rougeL", "rougel": "rougeL"}
    name = known.get(name.casefold(), name)
    value = _score(name, answer, reference, given).value
    return value / 100 if name in ("bleu", "chrf") else value


@op("text_metrics", "text_metric")
def text_metrics(given: Input) -> Outcome:
    """Several metrics of one pair: their common value, or the first error."""
    answer, reference = _pair(given)

    def measured() -> Any:
        names = given.get("metrics") or [given.get("metric", "rougeL")]
        values = [_text_metric(name, answer, reference, given) for name in names]
        return values[0] if max(values) - min(values) <= 1e-9 else dict(zip(names, values, strict=True))

    outcome = observe(measured)
    outcome.facts["empty_side"] = (not answer.strip()) or (not reference.strip())
    return outcome


@op("bleu")
def bleu(given: Input) -> Outcome:
    """Sentence BLEU in 0..100, with the tokenizer of the language."""
    outcome = observe(lambda: _bleu(given))
    if outcome.kind == "value" and not 0 <= outcome.value <= 100:
        outcome.problems.append(f"BLEU is {outcome.value!r}")
    outcome.facts["numbers"] = [0, 100]
    return outcome


def _bleu(given: Input) -> float:
    answer, reference = _pair(given)
    return _score(
        "bleu", answer, reference, given, tokenizer=given.get("tokenize", given.get("tokenizer"))
    ).value


@op("bleu_gate", whole=True)
def bleu_gate(given: Input) -> Outcome:
    """BLEU of one pair against several thresholds."""
    found = observe(lambda: _bleu(given))
    if found.kind != "value":
        return found
    gates = [_bleu_gate(given, found.value, str(limit)) for limit in given["thresholds"]]
    return Outcome("property", {"bleu": found.value}, each=gates)


def _bleu_gate(given: Input, value: float, limit: str) -> Outcome:
    if limit.lstrip().startswith("<"):
        # More is better, so that an upper limit is refused; here it asks about the range, as a metric of its own.
        return gated("bleu", value, limit, low=0.0, high=100.0, direction="lower")
    answer, reference = _pair(given)
    sample = RagSample("q", answer, reference=reference, lang=given.get("lang"))
    options = {"tokenizer": given.get("tokenize", given.get("tokenizer"))}

    def run() -> float:
        with product.using():
            return assert_metric("bleu", sample, limit, **options).value

    return observe(run, kind="pass")


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
    """Similarity within clusters, distance between them (as given), silhouette (Euclidean)."""

    def over(columns: Input, name: str, **options: Any) -> Any:
        rows = [vector(row) for row in columns["X"]]

        def measured() -> float:
            with product.using():
                return score_over(rows, name, labels=columns["labels"], **options).value

        return _or_outcome(measured)

    value: dict[str, Any] = {
        "avg_intra_cluster_sim": over(given, "intra_cluster_similarity"),
        "avg_inter_cluster_dist": over(given, "inter_cluster_distance", normalize=False),
        "silhouette_score": over(given, "silhouette", distance="euclidean"),
    }
    errors = [item for item in value.values() if isinstance(item, Outcome)]
    if len(errors) == len(value):
        return errors[0]
    if second := given.get("second"):
        value["second_avg_intra"] = over(second, "intra_cluster_similarity")
    return Outcome("value", value)


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
    useful = list(given["verdicts"])

    def measured() -> float:
        judge = product.Scripted([as_reply({"verdicts": numbered(useful)})])
        chunks = [f"chunk {number}" for number in range(len(useful))]
        with product.using(judge=judge):
            return score("context_precision", RagSample("q", "a", chunks, reference="r")).value

    return observe(measured)


@op("context_recall", single="verdicts")
def context_recall(given: Input) -> Outcome:
    """Share of the reference's claims that the chunks support."""
    claims = [f"claim {number}" for number in range(len(given["verdicts"]))]
    replies = [as_reply({"claims": claims}), as_reply({"verdicts": numbered(given["verdicts"])})]

    def measured() -> float:
        with product.using(judge=product.Scripted(replies)):
            return score("context_recall", RagSample("q", "a", ["c"], reference="r")).value

    return observe(measured)


class _Table:
    """A judge that knows which claims of the answer are wrong, and which chunk says what."""

    name = "table"
    tasks = ("split_claims", "verify_claims")

    def __init__(self, incorrect: Sequence[Any], by_chunk: Mapping[str, Sequence[Any]]) -> None:
        self._claims = [f"claim {number}" for number in range(len(incorrect))]
        self._supported = {"the reference": [not wrong for wrong in incorrect], **by_chunk}

    async def ask(self, task: Any) -> Answered[Any]:
        if isinstance(task, SplitClaims):
            claims = ["said by the reference"] if task.answer == "the reference" else self._claims
            return Answered(Claims(claims=claims), self.name)
        [where] = task.contexts
        verdicts = {
            number: {"verdict": self._says(where, claim)} for number, claim in enumerate(task.claims, 1)
        }
        return Answered(task.reply_type.model_validate({"verdicts": verdicts}), self.name)

    def _says(self, where: str, claim: str) -> Any:
        if claim not in self._claims:
            return where == "a relevant chunk"
        return bool(self._supported[where][self._claims.index(claim)])


@op("noise_sensitivity")
def noise_sensitivity(given: Input) -> Outcome:
    """Share of the answer's claims that are wrong and come from a (relevant) chunk; and its gates."""
    incorrect = list(given["incorrect"])
    none = [0] * len(incorrect)
    by_chunk = {
        "a relevant chunk": given.get("relevant_faithful", none),
        "another chunk": given.get("irrelevant_faithful", none),
    }
    sample = RagSample("q", "the answer", list(by_chunk), reference="the reference")
    mode = given.get("mode", "relevant")

    def with_judge(run: Callable[[], float]) -> float:
        with product.using(judge=_Table(incorrect, by_chunk)):
            return run()

    outcome = observe(lambda: with_judge(lambda: score("noise_sensitivity", sample, mode=mode).value))
    outcome.parts["gates"] = [
        observe(
            lambda limit=limit: with_judge(  # type: ignore[misc]
                lambda: assert_metric("noise_sensitivity", sample, limit, mode=mode).value
            ),
            kind="pass",
        )
        for limit in given.get("thresholds", [])
    ]
    return outcome


@op("ux_metrics")
def ux_metrics(given: Input) -> Outcome:
    """Cache hits, sessions and the agreement of two judges."""

    def measured() -> dict[str, Any]:
        value: dict[str, Any] = {}
        if "cache_max_similarities" in given:
            value["cache_hit_rate"] = _or_outcome(lambda: _cache_hits(given["cache_max_similarities"]))
        if "sessions" in given:
            value["context_preservation"] = [
                _or_outcome(lambda one=one: _preservation(one["vectors"]))  # type: ignore[misc]
                for one in given["sessions"]
            ]
        if "judge_pairs" in given:
            # The cases mean half a scale, where they say nothing.
            delta = float(given.get("delta", 0.5))
            value["consistency"] = _or_outcome(
                lambda: _over(
                    [tuple(pair) for pair in given["judge_pairs"]], "judge_consistency", delta=delta
                )
            )
        return value

    return observe(measured)


def _over(items: Sequence[Any], name: str, embedder: Any = None, **options: Any) -> float:
    with product.using(embedder=embedder):
        return score_over(items, name, **options).value


def _cache_hits(similarities: Sequence[Any]) -> float:
    """Each question has a plane of its own, in which the cached text, where there is one, stands at its angle."""
    vectors: dict[str, list[float]] = {}
    for place, raw in enumerate(similarities):
        question, stored = [0.0] * (2 * len(similarities)), [0.0] * (2 * len(similarities))
        question[2 * place] = 1.0
        vectors[f"question {place}"] = question
        if raw is not None:
            cosine = float(raw)
            stored[2 * place : 2 * place + 2] = [cosine, math.sqrt(max(1 - cosine**2, 0.0))]
            vectors[f"cached {place}"] = stored
    questions = [text for text in vectors if text.startswith("question")]
    return _over(
        [RagSample(text) for text in questions], "cache_hit_rate",
        embedder=lambda texts: [vectors[text] for text in texts],
        cache=[text for text in vectors if text.startswith("cached")],
    )  # fmt: skip


def _preservation(rows: Sequence[Sequence[Any]]) -> float:
    vectors = {f"question {place}": vector(row) for place, row in enumerate(rows)}
    samples = [RagSample(text, session="one") for text in vectors]
    return _over(samples, "context_preservation", embedder=lambda texts: [vectors[text] for text in texts])


class _BothSides:
    """A judge that knows the claims and the entities of both sides, and which of them the other side has."""

    name = "both sides"
    tasks = None

    def __init__(self, ours: Sequence[Any], theirs: Sequence[Any]) -> None:
        self._sides = {"the answer": list(ours), "the reference": list(theirs)}

    async def ask(self, task: Any) -> Answered[Any]:
        return Answered(task.reply_type.model_validate(self._reply(task)), self.name)

    def _reply(self, task: Any) -> dict[str, Any]:
        if task.name == "split_claims":
            side = self._sides[task.answer]
            return {"claims": [f"{task.answer} says {number}" for number in range(len(side))]}
        if task.name == "extract_entities":
            return {"entities": self._sides[task.texts[0]]}
        if task.name == "compare_claims":
            return {"verdicts": numbered([*self._sides["the answer"], *self._sides["the reference"]])}
        side = self._sides["the reference" if task.contexts == ("the answer",) else "the answer"]
        return {"verdicts": numbered(side)}


_BOTH = RagSample("q", "the answer", ["the answer"], reference="the reference")


@op("f_beta", "answer_correctness", "factual_correctness")
def correctness(given: Input) -> Outcome:
    """Answer correctness from counted claims, or from the verdicts of both sides."""

    def measured() -> float:
        beta = float(given.get("beta", 1.0))
        if "answer_verdicts" in given:
            judge = _BothSides(given["answer_verdicts"], given.get("reference_verdicts", ()))
            with product.using(judge=judge):
                mode = given.get("mode", "f1")
                return score("factual_correctness", _BOTH, mode=mode, beta=beta).value
        tp, fp, fn = (int(given[name]) for name in ("tp", "fp", "fn"))
        similarity = given.get("similarity", given.get("cosine"))
        weights = given.get("weights", (1.0, 0.0) if similarity is None else (0.75, 0.25))
        cosine = float(similarity or 0.0)
        vectors = [[1.0, 0.0], [cosine, math.sqrt(max(1 - cosine**2, 0.0))]]
        # A claim that both sides make is one of the reference, too: without any there would be nothing to find.
        judge = _BothSides([True] * tp + [False] * fp, [True] * min(tp, 1) + [False] * fn)
        with product.using(judge=judge, embedder=product.embedder_of(vectors)):
            return score("answer_correctness", _BOTH, weights=tuple(weights), beta=beta).value

    return observe(measured)


@op("entity_recall", "context_entity_recall")
def entity_recall(given: Input) -> Outcome:
    """Entities of the reference that the chunks name."""
    wanted = given.get("reference_entities", given.get("reference", ()))
    there = given.get("context_entities", given.get("contexts", ()))

    def measured() -> float:
        with product.using(judge=_BothSides(there, wanted)):
            return score("context_entity_recall", _BOTH).value

    return observe(measured)


@op("metric", "score", "score_metric")
def any_metric(given: Input) -> Outcome:
    """Any metric of a sample: ``metric``, the sample's columns (or ``sample``), ``judge_replies`` in turn or
    by task (or ``"judge": "local"``), ``vectors`` that the embedder gives, ``options``, ``threshold``.
    """
    name = str(given["metric"]).removeprefix("assert_")
    replies = given.get("judge_replies", given.get("replies", []))
    vectors = [vector(row) for row in given.get("vectors", [])]
    judge: Any = (
        product.ByTask({task: [as_reply(one) for one in script] for task, script in replies.items()})
        if isinstance(replies, Mapping)
        else product.Scripted(
            [product.completion(one) for one in replies] or [AssertionError("judge called")]
        )
    )
    if given.get("judge") == "local":
        judge = None
    options = dict(given.get("options", {}))

    def measured() -> float:
        sample = product.sample_of(given.get("sample", given), question="q")
        with product.using(judge=judge, embedder=product.embedder_of(vectors) if vectors else None):
            if given.get("threshold") is not None:
                return assert_metric(name, sample, given["threshold"], **options).value
            return score(name, sample, **options).value

    return observe(measured, kind="pass" if given.get("threshold") is not None else "value")
