"""A small but real RAG service over the documentation of pytest-ragbench: the examples' system under test.

``python -m rag_service --port 8080`` serves ``GET /llm/search-rag?questions=TEXT``.
"""
