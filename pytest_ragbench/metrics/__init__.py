"""Metrics: one file a family, a registry that knows what each needs.

Importing this package imports no formula; :func:`pytest_ragbench.metrics.registry.find` does.
"""
