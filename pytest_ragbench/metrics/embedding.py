"""How well an embedder separates known clusters of texts (tier 0).

Computed over a set: samples with a ``cluster``, strings with ``labels``, or vectors with ``labels``. The
formulas and their sources are in :mod:`pytest_ragbench.metrics.formulas.clusters`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pytest_ragbench.metrics import formulas
from pytest_ragbench.metrics.registry import NO_BANDS, metric
from pytest_ragbench.metrics.steps import NOBODY
from pytest_ragbench.metrics.tools import Tools
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.samples import RagSample
from pytest_ragbench.model.scores import Finding, Score

if TYPE_CHECKING:
    from pytest_ragbench.metrics.formulas.vectors import Vectors

TextField = Literal["question", "answer", "reference"]
Labels = Sequence[Hashable] | None


def _kind(items: Any) -> Literal["samples", "texts", "vectors"]:
    # All are of one kind, so the first tells.
    first = next(iter(items), None)
    if isinstance(first, RagSample):
        return "samples"
    return "texts" if isinstance(first, str) else "vectors"


def _adapt_clusters(items: Any, options: Mapping[str, Any]) -> Mapping[str, Any]:
    name = "cluster metrics"
    kind, labels = _kind(items), options.get("labels")
    # Only samples can carry a cluster themselves.
    if labels is None and kind != "samples":
        raise UsageError(f"{name} of {kind} need labels=[...], the cluster of each")
    if labels is not None and len(labels) != len(items):
        raise UsageError(f"{name}: {len(items)} {kind} but {len(labels)} labels; give one for each")
    if kind != "samples":
        return {"needs": (), "embedder": kind == "texts"}
    needs = (options.get("text", "question"), *(() if labels is not None else ("cluster",)))
    return {"needs": needs, "embedder": True}


async def _clusters(items: Any, tools: Tools, labels: Labels, text: str) -> tuple[Vectors, list[Hashable]]:
    kind = _kind(items)
    if kind == "vectors":
        return items, list(labels or ())
    texts = list(items) if kind == "texts" else [getattr(item, text) for item in items]
    names = [item.cluster for item in items] if labels is None else list(labels)
    return await tools.embed(texts), names


@metric(
    "intra_cluster_similarity",
    tier="embedding",
    of="set",
    embedder=True,
    low=-1.0,
    bands=NO_BANDS,
    adapt=_adapt_clusters,
)
async def intra_cluster_similarity(
    items: Any, tools: Tools, *, labels: Labels = None, text: TextField = "question"
) -> Score:
    """How close texts of one cluster lie: mean cosine of their pairs, averaged over clusters; range -1..1.

    Clusters of one text have no pair; they are left out and counted (``n_singletons``).

    Parameters
    ----------
    labels
        The cluster of each string or vector; that of a sample is its ``cluster``.
    text
        Which field of a sample is embedded.
    """
    vectors, names = await _clusters(items, tools, labels, text)
    found = formulas.intra_cluster_similarity(vectors, names)
    return tools.score(
        NOBODY, found.value, reason=f"{found.n_clusters} clusters, {found.n_singletons} singletons left out",
        n_clusters=found.n_clusters, n_singletons=found.n_singletons, n_items=len(names),
    )  # fmt: skip


@metric(
    "inter_cluster_distance",
    tier="embedding",
    of="set",
    embedder=True,
    # Vectors that aren't normalised may lie any distance apart.
    high=float("inf"),
    adapt=_adapt_clusters,
)
async def inter_cluster_distance(
    items: Any,
    tools: Tools,
    *,
    labels: Labels = None,
    text: TextField = "question",
    normalize: bool = True,
) -> Score:
    """How far clusters lie apart: mean Euclidean distance between the centroids of all pairs of clusters.

    Parameters
    ----------
    normalize
        Scale the vectors to length 1 first: the range is 0..2, and embedders can be compared. Without it the
        range has no upper end.
    labels, text
        As for ``intra_cluster_similarity``.
    """
    vectors, names = await _clusters(items, tools, labels, text)
    value = formulas.inter_cluster_distance(vectors, names, normalize=normalize)
    n = len(set(names))
    return tools.score(
        NOBODY, value, reason=f"{n} clusters", n_clusters=n, n_items=len(names), normalized=normalize
    )


@metric(
    "silhouette",
    tier="embedding",
    of="set",
    embedder=True,
    low=-1.0,
    bands={"excellent": 0.7, "good": 0.5},
    adapt=_adapt_clusters,
)
async def silhouette(
    items: Any,
    tools: Tools,
    *,
    labels: Labels = None,
    text: TextField = "question",
    distance: Literal["cosine", "euclidean"] = "cosine",
) -> Score:
    """Whether texts lie nearer to their own cluster than to the next one: the mean silhouette, range -1..1.

    ``(b - a) / max(a, b)`` for each text, a the mean distance to its own cluster and b to the nearest other
    one. ``details`` name the distance: values of the two kinds can't be compared.
    """
    vectors, names = await _clusters(items, tools, labels, text)
    found = formulas.silhouette(vectors, names, distance=distance)
    # The evidence names the ten texts that are nearest to another cluster.
    worst = sorted(range(len(names)), key=lambda place: found.samples[place])[:10]
    findings = [
        Finding(
            _shown(items[place], place, text),
            None,
            f"cluster {names[place]}",
            value=float(found.samples[place]),
        )
        for place in worst
    ]
    return tools.score(
        NOBODY, found.value, reason=f"{distance} distance, {found.n_clusters} clusters", evidence=findings,
        evidence_title="worst", distance=distance, n_clusters=found.n_clusters, n_items=len(names),
    )  # fmt: skip


def _shown(item: Any, place: int, text: str) -> str:
    if isinstance(item, RagSample):
        return str(getattr(item, text))
    return item if isinstance(item, str) else f"vector {place}"
