"""What tokens cost: as configured, else as the library genai-prices knows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from pytest_ragbench.settings import ProviderSettings

_OPENAI = "https://api.openai.com/v1"
_LISTED_AS = {
    **{name: name for name in ("anthropic", "cohere", "deepseek", "groq", "mistral", "together")},
    "bedrock": "aws",
    "gemini": "google",
    "vertexai": "google",
    "vertexaianthropic": "google",
    "xai": "x-ai",
}
"""Services without a URL of the user's, as any-llm calls them: what the price list calls them."""
_IN_PROCESS = "gguf"
"""A model from a file: nobody is paid for it."""


@dataclass(frozen=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float

    def of(self, prompt_tokens: float, completion_tokens: float) -> float:
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1_000_000


Prices = Callable[[str, "str | None"], "Price | None"]
"""(provider, model) -> its price, where it is known. Without a model: the dearest that is configured."""
FUNCTION = "judge:"
"""What the provider of a function's calls begins with, before the function's name."""


def prices_of(providers: Mapping[str, ProviderSettings], openai_url: str | None = None) -> Prices:
    """Prices of the configured providers' models.

    A configured price wins. The library's holds only where the provider's URL is that of a service that it
    knows: the same model may cost something else elsewhere, or nothing. ``openai_url``: where the provider
    ``openai`` is, if not at OpenAI's.
    """
    known: dict[tuple[str, str | None], Price | None] = {}

    def price(provider: str, model: str | None) -> Price | None:
        # The library searches its list at each lookup, and each call of a run asks.
        key = provider, model
        if key not in known:
            settings = providers.get(provider) or providers.get(provider.removeprefix(FUNCTION))
            if model is None:
                known[key] = _dearest(settings)
                return known[key]
            if settings is None and provider == _IN_PROCESS:
                known[key] = Price(0.0, 0.0)
                return known[key]
            configured = settings.prices.get(model) if settings is not None else None
            url = settings.base_url if settings is not None else None
            url = url or ((openai_url or _OPENAI) if provider == "openai" else None)
            # A client object of the user's goes by the host of its URL, where no provider has that URL.
            url = url or (f"https://{provider}" if settings is None and "." in provider else None)
            if configured is not None:
                known[key] = Price(configured.input, configured.output)
            else:
                known[key] = _listed(model, url=url) if url else _listed(model, service=provider)
        return known[key]

    return price


def _dearest(settings: ProviderSettings | None) -> Price | None:
    listed = [] if settings is None else list(settings.prices.values())
    if not listed:
        return None
    return Price(max(each.input for each in listed), max(each.output for each in listed))


def _listed(model: str, *, url: str | None = None, service: str | None = None) -> Price | None:
    """The library's price, caching and other discounts left out: an upper bound."""
    host = urlsplit(url or "").hostname or ""
    # localhost, a container, an address: nobody lists that.
    if url is not None and ("." not in host or host.replace(".", "").isdigit()):
        return None
    if service is not None and service not in _LISTED_AS:  # the library would take a name that is like one
        return None
    where: dict[str, Any] = {"provider_api_url": url}
    if service is not None:
        where = {"provider_id": _LISTED_AS[service]}
    from genai_prices import Usage, calc_price

    try:
        million = 1_000_000
        prompt = calc_price(Usage(input_tokens=million), model_ref=model, **where)
        reply = calc_price(Usage(output_tokens=million), model_ref=model, **where)
    except LookupError:
        return None
    return Price(float(prompt.total_price), float(reply.total_price))
