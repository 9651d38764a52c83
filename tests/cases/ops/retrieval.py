"""Rankings against relevant ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_ragbench import RagSample, assert_over, score
from tests.cases import product
from tests.cases.ops.metrics import _or_outcome
from tests.cases.outcomes import Outcome, observe
from tests.cases.registry import Input, op

_AT_K = ("recall", "precision", "ndcg", "hit_rate", "mrr", "map", "judged")
_WHOLE = ("mrr", "map", "ndcg", "r_precision")
_CUTS = (1, 3, 5, 10)


@op("retrieval")
def retrieval(given: Input) -> Outcome:
    """All ranking metrics of one query."""
    value = _measured(given)
    if isinstance(second := given.get("second"), dict):
        value["second"] = _measured({"k": given.get("k"), **second})
    found = observe(lambda: value)
    errors = [item for item in value.values() if isinstance(item, Outcome)]
    if errors and len(errors) == len([item for item in value.values() if not isinstance(item, dict)]):
        return errors[0]  # nothing can be computed from this query
    return found


def _measured(given: Mapping[str, Any]) -> dict[str, Any]:
    relevant = given.get("relevant", given.get("relevant_ids", given.get("qrels")))
    ranking = given.get("ranking", given.get("retrieved", given.get("run")))
    cuts = sorted({int(given[key]) for key in ("k", "k2", "k3") if given.get(key) is not None})
    names = [*_WHOLE, *(f"{name}@{k}" for k in cuts for name in _AT_K)]

    def one(name: str) -> float:
        options = {key: given[key] for key in ("collapse",) if key in given}
        if name.startswith("ndcg") and "gain" in given:
            options["gain"] = given["gain"]
        with product.using():
            return score(name, RagSample("q", context_ids=ranking, relevant_ids=relevant), **options).value

    return {name: _or_outcome(lambda name=name: one(name)) for name in names}  # type: ignore[misc]


@op("retrieval_mean")
def retrieval_mean(given: Input) -> Outcome:
    """Means over queries; what the run lacks found nothing."""
    measures = [*_WHOLE, *(f"{name}@{k}" for k in _CUTS for name in _AT_K)]

    def measured() -> dict[str, float]:
        samples = [
            RagSample("q", context_ids=given["run"].get(query, ()), relevant_ids=relevant)
            for query, relevant in given["qrels"].items()
        ]
        with product.using():
            return {name: assert_over(samples, name, ">=0").value for name in measures}

    return observe(measured)
