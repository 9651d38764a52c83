"""Configuration: one frozen, validated object, built once.

Layers, later ones win: defaults; ``[tool.ragbench]`` in ``pyproject.toml``; ``ragbench.toml``;
``RAGBENCH_*`` variables; command-line options.
"""

from pytest_ragbench.settings.loading import load_settings
from pytest_ragbench.settings.model import (
    BudgetSettings,
    GatingSettings,
    GgufSettings,
    HttpUrl,
    MetricSettings,
    PanelSettings,
    PreflightSettings,
    PriceSettings,
    ProviderSettings,
    RagSettings,
    RecordedKind,
    ReplyMapping,
    RetrySettings,
    ServiceSettings,
    Settings,
)
from pytest_ragbench.settings.systems import systems_of

__all__ = [
    "BudgetSettings",
    "GatingSettings",
    "GgufSettings",
    "HttpUrl",
    "MetricSettings",
    "PanelSettings",
    "PreflightSettings",
    "PriceSettings",
    "ProviderSettings",
    "RagSettings",
    "RecordedKind",
    "ReplyMapping",
    "RetrySettings",
    "ServiceSettings",
    "Settings",
    "load_settings",
    "systems_of",
]
