"""Configuration: one frozen, validated object, built once.

Layers, later ones win: defaults; ``[tool.ragbench]`` in ``pyproject.toml``; ``ragbench.toml``;
``RAGBENCH_*`` variables; command-line options.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from pytest_ragbench.model.errors import UsageError

Layer = tuple[str, Mapping[str, Any]]
"""Where values come from (for messages), and the values."""

PREFIX = "RAGBENCH_"


def _http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("must be an http:// or https:// URL")
    if parts.username or parts.password:
        raise ValueError("must not carry a password; name the variable that holds it in auth_env")
    return url.rstrip("/")


def _names(value: Any) -> Any:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


RecordedKind = Literal["rag", "judge", "embedding"]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Without keys: ``pytest -l`` prints the settings that a frame holds."""
        from pytest_ragbench.secrets import fingerprinted, masked_mapping, masked_url

        for name, value in super().__repr_args__():
            if name == "store":
                from pytest_ragbench.engine.on_redis.address import shown

                yield name, value and shown(value)
            elif name == "headers":
                yield name, masked_mapping(value)
            elif name in ("body", "extra_body"):
                yield name, fingerprinted(value)
            else:
                yield name, masked_url(value) if value and name in ("url", "base_url") else value


def _known_language(value: str) -> str:
    from pytest_ragbench.languages import known_languages  # only a run that sets it looks for languages

    if value not in known_languages():
        raise ValueError(f"must be one of {', '.join(known_languages())}")
    return value


def _store(value: str) -> str:
    from pytest_ragbench.engine.on_redis.address import Address, is_redis

    if is_redis(value):
        Address.parse(value)
    elif "://" in value:
        raise ValueError("must be a file, 'off', or redis://HOST:PORT/DB")
    return value


class RetrySettings(_Section):
    """Retries of what can heal: timeouts, connection errors, 408, 409, 429, 5xx."""

    attempts: int = Field(default=4, ge=1, le=20)
    wait: float = Field(default=0.5, ge=0, le=60, description="First wait in seconds; doubles, with jitter.")
    patience: float | None = Field(
        default=None,
        ge=0,
        le=3600,
        description="Seconds to wait in all for a service that answers 429, beyond attempts. "
        "Default: 20, or 0 where attempts is set.",
    )
    max_wait: Seconds = Field(
        default=30.0, description="No single wait is longer, whatever Retry-After says."
    )

    @property
    def waits_for_busy(self) -> float:
        """``patience``, or its default: who sets ``attempts`` means just that many."""
        if self.patience is not None:
            return self.patience
        return 0.0 if "attempts" in self.model_fields_set else 20.0


class PriceSettings(_Section):
    """US dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False)
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False)


class BudgetSettings(_Section):
    """What a run may use at most, all its workers together. What is over it is an error, never a score."""

    max_calls: int | None = Field(default=None, ge=0, description="Requests sent, retries included.")
    max_tokens: int | None = Field(default=None, ge=0)
    max_cost: float | None = Field(default=None, ge=0, allow_inf_nan=False, description="US dollars.")


class ProviderSettings(_Section):
    """An OpenAI-compatible service."""

    base_url: HttpUrl | None = None
    api_key_env: str | None = Field(default=None, description="Variable that holds the key.")
    model: str | None = None
    embedding_model: str | None = None
    structured_output: Literal["auto", "json_schema", "json_object", "prompt"] = "auto"
    temperature: float | None = Field(default=0.0, ge=0, le=2)
    seed: int | None = None
    max_tokens: int = Field(default=2048, ge=16)
    timeout: Seconds = 30.0
    max_concurrency: int = Field(default=16, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    prices: Mapping[str, PriceSettings] = Field(
        default={}, description="By model; where unset, those that are publicly known."
    )
    headers: Mapping[str, str] = {}
    extra_body: Mapping[str, Any] = {}
    retry: RetrySettings = RetrySettings()


class ReplyMapping(_Section):
    """JMESPath expressions over the service's JSON reply; unset ones are found by usual names."""

    answer: str | None = None
    contexts: str | None = None
    context_ids: str | None = None
    context_scores: str | None = None
    context_urls: str | None = None
    metadata: str | None = None


class RagSettings(_Section):
    """The system under test."""

    url: HttpUrl | None = None
    retriever: str | None = Field(
        default=None, description="In place of a service: 'MODULE:OBJECT' and other one-line forms."
    )
    method: Literal["GET", "POST", "PUT"] = "GET"
    path: str = "/llm/search-rag"
    parameter: str | None = Field(
        default="questions", description="Query parameter that carries the question."
    )
    session_parameter: str | None = Field(
        default=None, description="Query parameter that carries the session of a question that has one."
    )
    headers: Mapping[str, str] = {}
    body: Any = Field(
        default=None, description="JSON body; {question} and {session} inside its texts are filled in."
    )
    auth_env: str | None = Field(default=None, description="Variable whose value goes into auth_header.")
    auth_header: str = "Authorization"
    auth_scheme: str = "Bearer"
    timeout: Seconds = 60.0
    max_concurrency: int = Field(default=8, ge=1)
    requests_per_minute: int | None = Field(default=None, ge=1)
    max_bytes: int = Field(default=20_000_000, ge=1000)
    retry: RetrySettings = RetrySettings()
    reply: ReplyMapping = ReplyMapping()
    reuse_answers: bool = Field(default=False, description="Keep answers for later runs too.")


class PanelSettings(_Section):
    """How several judges become one."""

    aggregate: Literal["mean", "median", "min", "max", "majority", "consensus"] = "median"
    tolerance: float = Field(
        default=0.2, ge=0, allow_inf_nan=False, description="How far apart scores may lie for a consensus."
    )
    margin: float = Field(
        default=0.1,
        ge=0,
        allow_inf_nan=False,
        description="How near to the threshold a score is that judge_cascade decides.",
    )
    swap_roles: bool = Field(
        default=False, description="With judge_dual: also with the judges in each other's role, and the mean."
    )


class MetricSettings(_Section):
    """How one metric is computed, wherever it is asked for."""

    verdicts: Literal["json", "probability"] | None = Field(
        default=None, description="How the judge gives yes-or-no verdicts: as JSON, or by P(yes) of one word."
    )
    yes_from: float = Field(
        default=0.5, gt=0, lt=1, description="By probability: the P(yes) from which on a verdict is yes."
    )


class GgufSettings(_Section):
    """How ``judge = "gguf:FILE"`` runs its model."""

    n_ctx: int | None = Field(
        default=None,
        ge=512,
        description="Tokens of prompt and reply together. Default: 8192, or what the model has.",
    )
    parallel: int = Field(default=2, ge=1, le=64, description="Questions at once, each with a whole context.")
    threads: int | None = Field(default=None, ge=1, le=1024, description="Default: one a core.")
    max_tokens: int = Field(default=2048, ge=16)
    timeout: Seconds = 600.0


class PreflightSettings(_Section):
    """What the judge has to show before the first test."""

    enabled: bool = False
    anchors: str | None = Field(
        default=None, description="Labels file with verdicts that the judge has to agree with."
    )


class GatingSettings(_Section):
    """What holds for all gates."""

    undecided: Literal["warn", "fail"] = Field(
        default="warn", description="What becomes of a run in which a gate can't tell."
    )
    max_unscored: float = Field(
        default=0.05,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Share of the questions that may be without a score; above it a gate can't decide.",
    )
    clusters: bool = Field(
        default=True,
        description="Questions with the same cluster or relevant document count as one cluster.",
    )
    baseline: str | None = Field(
        default=None, description="Run to compare with: a JSON report, or a branch in the history."
    )


class Settings(_Section):
    """All settings of a run."""

    judge: str | None = Field(
        default=None, description="'local', 'PROVIDER', 'PROVIDER:MODEL' or 'gguf:FILE'."
    )
    judge_fallback: str | None = Field(
        default=None, description="Asked where the configured judge is down or has no quota left."
    )
    embedder: str | None = Field(
        default=None, description="'local', 'PROVIDER:MODEL' or 'sentence-transformers:MODEL'."
    )
    rag: RagSettings = RagSettings()
    gguf: GgufSettings = GgufSettings()
    providers: Mapping[str, ProviderSettings] = {}
    lang: Annotated[str, AfterValidator(_known_language)] = Field(
        default="en", description="Language in which reports explain metrics."
    )
    questions: str | None = Field(default=None, description="Question file for tests that name none.")
    store: Annotated[str, AfterValidator(_store)] | None = Field(
        default=None,
        description="Store file, 'off', or the URL of a Redis server. Default: a file in the pytest cache.",
    )
    run: str | None = Field(
        default=None,
        pattern=r"^[\w.-]{1,100}$",
        description="Name of a run that is made by several commands: with Redis they share slots and budget.",
    )
    history: str | None = Field(default=None, description="SQLite file that each run is added to.")
    junit_properties: bool = Field(
        default=True, description="Scores as properties of test cases in --junitxml."
    )
    report_replies: int = Field(
        default=2000,
        ge=0,
        le=1_000_000,
        description="Characters of each judge's reply that the JSON report holds; 0: no replies.",
    )
    history_keep: int = Field(default=500, ge=1, description="So many runs are kept in it, the latest ones.")
    thresholds: Mapping[str, str | float] = {}
    metrics: Mapping[str, MetricSettings] = Field(default={}, description="Options by metric.")
    budget: BudgetSettings = BudgetSettings()
    gates: Mapping[str, str | float | bool] = Field(
        default={}, description="Metric to rule, decided at the end of a run: docs/gates.md."
    )
    gating: GatingSettings = GatingSettings()
    votes: int = Field(
        default=1, ge=1, le=15, description="Times that a judge scores a sample; the median counts."
    )
    judges: tuple[str, ...] = Field(default=(), description="Several judges, in place of judge.")
    judge_confirm: str | None = Field(default=None, description="Judge that has to confirm each failure.")
    judge_cascade: str | None = Field(
        default=None, description="Judge that decides where the first one's score is near the threshold."
    )
    judge_dual: str | None = Field(
        default=None, description="Judge that is the second examiner of metrics that have two."
    )
    panel: PanelSettings = PanelSettings()
    preflight: PreflightSettings = PreflightSettings()

    lookahead: int | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="For how many of the tests to come calls may be under way while a test waits; 0: none. "
        "Default: as many as there are call slots.",
    )

    record: str | None = Field(default=None, description="Recording to write the run's replies to.")
    replay: str | None = Field(default=None, description="Recording to take replies from; nobody is asked.")
    recorded: Annotated[frozenset[RecordedKind], BeforeValidator(_names)] = Field(
        default=frozenset({"rag", "judge", "embedding"}),
        min_length=1,
        description="Whose replies record and replay are about: rag, judge, embedding.",
    )

    sources: tuple[str, ...] = Field(default=(), description="The files and variables that were read.")

    @model_validator(mode="after")
    def _one_recording(self) -> Settings:
        if self.record and self.replay:
            raise ValueError("record and replay exclude each other: a run writes replies down or reads them")
        return self

    def replays(self, kind: str) -> bool:
        """Whether replies of this kind come from a recording."""
        return self.replay is not None and kind in self.recorded


def load_settings(
    directory: Path | None = None,
    *,
    root: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """Read and merge all layers.

    Parameters
    ----------
    directory
        Where to start looking for the configuration files; the nearest directory upwards, to
        ``root``, that holds one is taken.
    options
        Dotted keys from the command line: ``{"rag.url": "http://..."}``; None values are left out.

    Raises
    ------
    UsageError
        Naming the key and the file, variable or option it came from.
    """
    start = (directory or Path.cwd()).resolve()
    layers = _file_layers(start, (root or start).resolve())
    layers.append(("environment", _environment(os.environ if environ is None else environ)))
    layers.append(("command line", _nested({k: v for k, v in (options or {}).items() if v is not None})))
    merged: dict[str, Any] = {}
    for _, values in layers:
        merged = _merged(merged, values)
    merged["sources"] = tuple(name for name, values in layers if values)
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise UsageError(_explain(error, layers)) from None


def _file_layers(start: Path, root: Path) -> list[Layer]:
    """The nearest directory from ``start`` up to ``root`` that configures ragbench."""
    candidates = [start, *start.parents]
    if root in candidates:
        candidates = candidates[: candidates.index(root) + 1]
    for directory in candidates:
        layers = []
        if (pyproject := directory / "pyproject.toml").is_file():
            table = _toml(pyproject).get("tool", {}).get("ragbench")
            if table is not None:
                layers.append((f"{pyproject} [tool.ragbench]", table))
        if (own := directory / "ragbench.toml").is_file():
            layers.append((str(own), _toml(own)))
        if layers:
            return layers
    return []


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: can't be read as TOML: {error}") from None


# The short names are what people type most; every other key is RAGBENCH_SECTION__KEY.
_SHORT = {"RAG_URL": "rag.url"}


def _environment(environ: Mapping[str, str]) -> dict[str, Any]:
    known = set(Settings.model_fields)
    values: dict[str, Any] = {}
    for name, value in environ.items():
        if not name.upper().startswith(PREFIX) or not value:
            continue
        rest = name[len(PREFIX) :].upper()
        dotted = _SHORT.get(rest, rest.lower().replace("__", "."))
        if dotted.split(".")[0] in known:  # other RAGBENCH_ names may belong to someone else
            values[dotted] = value
    return _nested(values)


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for dotted, value in values.items():
        *path, last = dotted.split(".")
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = value
    return tree


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        both = isinstance(old, Mapping) and isinstance(value, Mapping)
        result[key] = _merged(old, value) if both else value  # type: ignore[arg-type]
    return result


def _explain(error: ValidationError, layers: list[Layer]) -> str:
    lines = []
    for problem in error.errors():
        path = [str(part) for part in problem["loc"]]
        origin = next((name for name, values in reversed(layers) if _has(values, path)), "configuration")
        message = problem["msg"].removeprefix("Value error, ")
        if problem["type"] == "extra_forbidden":
            message = f"unknown key{_near(path)}"
        lines.append(f"{origin}: {'.'.join(path)}: {message}")
    return "\n".join(lines)


def _has(values: Any, path: list[str]) -> bool:
    for part in path:
        if not isinstance(values, Mapping) or part not in values:
            return False
        values = values[part]
    return True


def _near(path: list[str]) -> str:
    import difflib

    sections: dict[str, type[BaseModel]] = {
        "": Settings,
        "rag": RagSettings,
        "rag.reply": ReplyMapping,
        "rag.retry": RetrySettings,
        "budget": BudgetSettings,
        "gating": GatingSettings,
        "panel": PanelSettings,
        "gguf": GgufSettings,
        "preflight": PreflightSettings,
    }
    parent = ".".join(path[:-1])
    named: dict[str, type[BaseModel]] = {"providers": ProviderSettings, "metrics": MetricSettings}
    model = named.get(path[0]) if len(path) == 3 and path[0] in named else sections.get(parent)
    if model is None:
        return ""
    close = difflib.get_close_matches(path[-1], model.model_fields, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(model.model_fields))}"
