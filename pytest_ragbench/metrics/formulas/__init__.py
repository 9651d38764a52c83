"""The formulas behind the metrics: plain functions of numbers, ids, texts and vectors.

No judge, no embedder and no pytest in here. A formula returns a finite number, or raises
:class:`~pytest_ragbench.model.errors.UsageError` (the caller's data is wrong) or
:class:`~pytest_ragbench.model.errors.UndefinedScore` (there is no such number for this data).

=============  ======================================================================
``retrieval``  hit rate, MRR, recall, precision, AP, NDCG, R-precision, judged share
``overlap``    ROUGE, BLEU, chrF, exact match, token F1, string similarity
``vectors``    cosine
``clusters``   intra-cluster similarity, inter-cluster distance, silhouette
``verdicts``   what follows from a judge's verdicts and ratings
``dialogue``   cache hit rate, context preservation
=============  ======================================================================

Those that need numpy are imported on first use: most judged metrics never do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ragbench.lazy import lazily

if TYPE_CHECKING:
    from pytest_ragbench.metrics.formulas.clusters import inter_cluster_distance as inter_cluster_distance
    from pytest_ragbench.metrics.formulas.clusters import intra_cluster_similarity as intra_cluster_similarity
    from pytest_ragbench.metrics.formulas.clusters import silhouette as silhouette
    from pytest_ragbench.metrics.formulas.dialogue import best_cosines_to_cache as best_cosines_to_cache
    from pytest_ragbench.metrics.formulas.dialogue import cache_hit_rate as cache_hit_rate
    from pytest_ragbench.metrics.formulas.dialogue import context_preservation as context_preservation
    from pytest_ragbench.metrics.formulas.vectors import cosine as cosine

__getattr__ = lazily(
    __name__,
    clusters="inter_cluster_distance intra_cluster_similarity silhouette",
    dialogue="best_cosines_to_cache cache_hit_rate context_preservation",
    vectors="cosine",
)
