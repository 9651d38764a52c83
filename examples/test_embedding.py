"""Tier 0, embedding: does the embedder see the same meaning in three languages?"""

from collections import Counter

from rag_service.documents import load_passages

from pytest_ragbench import assert_intra_cluster_similarity, assert_silhouette

PASSAGES = load_passages()


def test_a_passage_and_its_translations_are_alike():
    topics = [passage.id.partition("-")[2] for passage in PASSAGES]  # "ru-exit-codes" is about exit codes
    often = Counter(topics)
    translated = [(p.text, topic) for p, topic in zip(PASSAGES, topics, strict=True) if often[topic] > 1]
    texts, labels = zip(*translated, strict=True)
    assert_intra_cluster_similarity(list(texts), ">=0.5", labels=labels)


def test_languages_are_no_clusters():
    texts, langs = [p.text for p in PASSAGES], [p.lang for p in PASSAGES]
    assert_silhouette(texts, "-0.1..0.1", labels=langs)
