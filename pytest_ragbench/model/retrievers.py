"""A system under test among several of one run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NamedRetriever:
    """What a test is parametrised with that does not ask the configured system."""

    name: str
    """As test ids and reports have it; empty for the only one."""
    spec: object
    """Whatever a retriever can be made from."""
