"""HTTP for judges, embedders and RAG services: connections, proxies, endpoints, Retry-After."""
