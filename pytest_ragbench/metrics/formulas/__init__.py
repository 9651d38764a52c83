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
"""
