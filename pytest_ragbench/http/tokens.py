"""Tokens that end, and are asked for again: Entra ID's for Azure, or a function's of the user's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any

from pytest_ragbench.extensions import imported
from pytest_ragbench.model.errors import UsageError

AZURE = "azure"
AZURE_SCOPE = "https://cognitiveservices.azure.com/.default"


# One for each spec: a credential of Azure keeps its token, and takes a new one some minutes before that ends.
@cache
def token_source(spec: str) -> Callable[[], Any]:
    """What gives a token whenever it is called, at once or awaited.

    Parameters
    ----------
    spec
        ``"azure"``, or ``"azure:SCOPE"``: the credential that azure-identity finds (environment, managed identity,
        ``az login``); ``"MODULE:FUNCTION"``: a function without arguments, which keeps its token as long as that
        holds.

    Raises
    ------
    UsageError
        azure-identity is not installed, or there is no such function.
    """
    name, _, scope = spec.partition(":")
    if name == AZURE:
        return _azures(scope or AZURE_SCOPE)
    function = imported(spec) if ":" in spec else None
    if not callable(function):
        raise UsageError(f"token = {spec!r} must be 'azure' or name a function: 'MODULE:FUNCTION'")
    made: Callable[[], Any] = function
    return made


def _azures(scope: str) -> Callable[[], str]:
    try:
        found = find_spec("azure.identity") is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise UsageError("token = 'azure' needs: pip install 'pytest-ragbench[azure]' (azure-identity)")
    provider: list[Callable[[], str]] = []

    def token() -> str:
        # In the thread of the first call: the library takes half a second to import.
        if not provider:
            from azure.identity import DefaultAzureCredential, get_bearer_token_provider

            provider.append(get_bearer_token_provider(DefaultAzureCredential(), scope))
        return provider[0]()

    return token
