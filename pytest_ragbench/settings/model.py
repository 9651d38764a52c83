"""What can be configured: one frozen, validated object.

A field's type, range, default and description stand here alone: docs/configuration.md is checked against them.
Where an option of the command line sets the field, it is described there.
"""

from __future__ import annotations

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
    PrivateAttr,
    model_validator,
)

from pytest_ragbench.languages import known_languages
from pytest_ragbench.model.redis_url import Address, is_redis, shown
from pytest_ragbench.options import help_of
from pytest_ragbench.secrets import fingerprinted, masked_mapping, masked_url


def _http_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError("must be an http:// or https:// URL")
    # It would be shown wherever the URL is.
    if parts.username or parts.password:
        raise ValueError("must not carry a password; name the variable that holds it in auth_env")
    return url.rstrip("/")


def _names(value: Any) -> Any:
    """A list of names may be written with commas."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _as_keys(value: Any) -> Any:
    """One line stands for the keys of ``[rag]`` that differ: a URL, or another form of ``retriever``."""
    if not isinstance(value, str):
        return value
    return {"url" if "://" in value else "retriever": value}


# The length is checked apart: as a part of the pattern, {1,100} takes 40 ms to compile in every run.
_NAME = r"^[\w.-]+$"

RecordedKind = Literal["rag", "judge", "embedding"]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
ProxyUrl = Annotated[str, AfterValidator(lambda value: value if value == "off" else _http_url(value))]
Seconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


class Section(BaseModel):
    """A table of the configuration."""

    # A misspelt key that is ignored would leave its default in force, unseen.
    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """Without keys: ``pytest -l`` prints the settings that a frame holds."""
        for name, value in super().__repr_args__():
            if name == "store":
                yield name, value and shown(value)
            elif name == "headers":
                yield name, masked_mapping(value)
            elif name in ("body", "extra_body"):
                yield name, fingerprinted(value)
            else:
                yield name, masked_url(value) if value and name in ("url", "base_url") else value


def _known_language(value: str) -> str:
    if value not in known_languages():
        raise ValueError(f"must be one of {', '.join(known_languages())}")
    return value


def _store(value: str) -> str:
    if is_redis(value):
        Address.parse(value)
    elif "://" in value:
        raise ValueError("must be a file, 'off', or redis://HOST:PORT/DB")
    return value


def _trace_url(value: str) -> str:
    # It becomes a link in a page.
    if not value.startswith(("http://", "https://")) or "{trace_id}" not in value:
        raise ValueError("must be an http:// or https:// URL with {trace_id} in it")
    return value


class RetrySettings(Section):
    """Retries of what can heal: timeouts, connection errors, 408, 409, 429, 5xx."""

    attempts: int = Field(
        default=4, ge=1, le=20, description="Times that a call is sent, the first one included."
    )
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


class PriceSettings(Section):
    """US dollars for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False, description="For what is sent.")
    output: float = Field(default=0.0, ge=0, allow_inf_nan=False, description="For what comes back.")


class BudgetSettings(Section):
    """What a run may use at most, all its workers together. What is over it is an error, never a score."""

    max_calls: int | None = Field(default=None, ge=0, description=help_of("budget.max_calls"))
    max_tokens: int | None = Field(default=None, ge=0, description=help_of("budget.max_tokens"))
    max_cost: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description=help_of("budget.max_cost")
    )


class ProviderSettings(Section):
    """An OpenAI-compatible service."""

    base_url: HttpUrl | None = Field(default=None, description="Of the API, up to /v1 where it has that.")
    api_key_env: str | None = Field(default=None, description="Variable that holds the key.")
    auth_header: str = Field(
        default="Authorization", min_length=1, description="Header that carries the key; Azure's is api-key."
    )
    auth_scheme: str = Field(
        default="Bearer",
        description="Word before the key in Authorization; other headers have none unless set.",
    )
    token: str | None = Field(
        default=None,
        description="Asked for a token before each call, in place of a key: MODULE:FUNCTION, or 'azure' for Entra ID.",
    )
    api_version: str | None = Field(
        default=None, description="Azure's api-version; each model is then a deployment of its own URL."
    )
    ca_file: str | None = Field(
        default=None, description="PEM file of certificates to trust beside the system's."
    )
    client_cert: str | None = Field(default=None, description="PEM file of the certificate to show.")
    client_key: str | None = Field(default=None, description="PEM file of its key, where that is apart.")
    proxy: ProxyUrl | None = Field(
        default=None, description="Proxy's URL, or 'off'. Default: that of the environment."
    )
    model: str | None = Field(default=None, description="Of a judge that names none.")
    embedding_model: str | None = Field(default=None, description="Of an embedder that names none.")
    structured_output: Literal["auto", "json_schema", "json_object", "prompt"] = Field(
        default="auto", description="How the service is asked for JSON; 'auto' finds out what it can."
    )
    temperature: float | None = Field(default=0.0, ge=0, le=2, description="Of the judge's replies.")
    seed: int | None = Field(default=None, description="Sent with each call, where the service takes one.")
    max_tokens: int = Field(default=2048, ge=16, description="Of a reply.")
    timeout: Seconds = Field(default=30.0, description="Seconds that a call may take.")
    max_concurrency: int = Field(
        default=16, ge=1, description="Calls under way at once, of all workers together."
    )
    requests_per_minute: int | None = Field(default=None, ge=1, description="Of all workers together.")
    tokens_per_minute: int | None = Field(default=None, ge=1, description="Of all workers together.")
    prices: Mapping[str, PriceSettings] = Field(
        default={}, description="By model; where unset, those that are publicly known."
    )
    headers: Mapping[str, str] = Field(default={}, description="Sent with each call.")
    extra_body: Mapping[str, Any] = Field(default={}, description="Added to the body of each call.")
    retry: RetrySettings = RetrySettings()


class ReplyMapping(Section):
    """JMESPath expressions over the service's JSON reply; unset ones are found by usual names."""

    answer: str | None = Field(default=None, description="The answer.")
    contexts: str | None = Field(default=None, description="The texts of the retrieved chunks, best first.")
    context_ids: str | None = Field(default=None, description="Their ids.")
    context_scores: str | None = Field(default=None, description="Their scores.")
    context_urls: str | None = Field(default=None, description="Where they come from.")
    metadata: str | None = Field(default=None, description="Whatever else is to be kept of the reply.")


class ServiceSettings(Section):
    """How a system under test is asked."""

    url: HttpUrl | None = Field(default=None, description=help_of("rag.url"))
    retriever: str | None = Field(
        default=None, description="In place of a service: 'MODULE:OBJECT' and other one-line forms."
    )
    method: Literal["GET", "POST", "PUT"] = Field(default="GET", description="How a question is sent.")
    path: str = Field(default="/llm/search-rag", description="Added to the URL.")
    parameter: str | None = Field(
        default="questions", description="Query parameter that carries the question."
    )
    session_parameter: str | None = Field(
        default=None, description="Query parameter that carries the session of a question that has one."
    )
    headers: Mapping[str, str] = Field(default={}, description="Sent with each question.")
    body: Any = Field(
        default=None, description="JSON body; {question} and {session} inside its texts are filled in."
    )
    auth_env: str | None = Field(default=None, description="Variable whose value goes into auth_header.")
    auth_header: str = Field(default="Authorization", description="Header that carries the key.")
    auth_scheme: str = Field(default="Bearer", description="Word before the key; may be empty.")
    timeout: Seconds = Field(default=60.0, description="Seconds that an answer may take.")
    max_bytes: int = Field(default=20_000_000, ge=1000, description="Of a reply; a longer one is an error.")
    reply: ReplyMapping = ReplyMapping()
    reuse_answers: bool = Field(default=False, description="Keep answers for later runs too.")


class RagSettings(ServiceSettings):
    """The system under test."""

    retrievers: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        default=(), description=help_of("rag.retrievers")
    )
    max_concurrency: int = Field(
        default=8, ge=1, description="Questions under way at once, of all workers together."
    )
    latency_concurrency: int = Field(
        default=1,
        ge=1,
        description="In place of max_concurrency in a run that asserts latency or has a gate for it.",
    )
    requests_per_minute: int | None = Field(default=None, ge=1, description="Of all workers together.")
    retry: RetrySettings = RetrySettings()


SystemName = Annotated[str, Field(pattern=_NAME, max_length=60)]
NamedSettings = Annotated[ServiceSettings, BeforeValidator(_as_keys)]


class PanelSettings(Section):
    """How several judges become one."""

    aggregate: Literal["mean", "median", "min", "max", "majority", "consensus"] = Field(
        default="median", description="The score that stands for those of all judges."
    )
    tolerance: float = Field(
        default=0.2, ge=0, allow_inf_nan=False, description="How far apart scores may lie for a consensus."
    )
    margin: float = Field(
        default=0.1,
        ge=0,
        allow_inf_nan=False,
        description="How near to the threshold a score is that judge_cascade decides.",
    )
    # Off, since it doubles the calls.
    swap_roles: bool = Field(
        default=False, description="With judge_dual: also with the judges in each other's role, and the mean."
    )


class MetricSettings(Section):
    """How one metric is computed, wherever it is asked for. Its own options, too: ``units``, ``mode`` ..."""

    # Held against the registry when a test asks for a metric: conftest.py may bring more of them.
    model_config = ConfigDict(frozen=True, extra="allow")

    verdicts: Literal["json", "probability"] | None = Field(
        default=None, description="How the judge gives yes-or-no verdicts: as JSON, or by P(yes) of one word."
    )
    # Not 0 or 1: every verdict would be the same.
    yes_from: float = Field(
        default=0.5, gt=0, lt=1, description="By probability: the P(yes) from which on a verdict is yes."
    )

    @property
    def options(self) -> Mapping[str, Any]:
        """The metric's own options, as they are written."""
        return self.model_extra or {}


class GgufSettings(Section):
    """How ``judge = "gguf:FILE"`` runs its model."""

    n_ctx: int | None = Field(
        default=None,
        ge=512,
        description="Tokens of prompt and reply together. Default: 8192, or what the model has.",
    )
    parallel: int = Field(default=2, ge=1, le=64, description="Questions at once, each with a whole context.")
    threads: int | None = Field(default=None, ge=1, le=1024, description="Default: one a core.")
    max_tokens: int = Field(default=2048, ge=16, description="Of a reply.")
    # On a CPU a large model takes minutes for a long prompt.
    timeout: Seconds = Field(default=600.0, description="Seconds that a reply may take.")


class PreflightSettings(Section):
    """What the judge has to show before the first test."""

    enabled: bool = Field(default=False, description="As the option --ragbench-preflight.")
    anchors: str | None = Field(
        default=None, description="Labels file with verdicts that the judge has to agree with."
    )


class GatingSettings(Section):
    """What holds for all gates."""

    # A warning by default: few questions can't decide much, and would fail every small suite.
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
    max_unpaired: float = Field(
        default=0.2,
        ge=0,
        le=1,
        allow_inf_nan=False,
        description="Share of the questions that may be in one of two runs only; above it they aren't compared.",
    )
    clusters: bool = Field(
        default=True,
        description="Questions with the same cluster or relevant document count as one cluster.",
    )
    baseline: str | None = Field(default=None, description=help_of("gating.baseline"))


class Settings(Section):
    """All settings of a run."""

    judge: str | None = Field(default=None, description=help_of("judge"))
    judge_fallback: str | None = Field(
        default=None, description="Asked where the configured judge is down or has no quota left."
    )
    embedder: str | None = Field(default=None, description=help_of("embedder"))
    rag: RagSettings = RagSettings()
    retrievers: Mapping[SystemName, NamedSettings] = Field(
        default={}, description="By name: a URL, 'MODULE:OBJECT', or the keys of [rag] that differ."
    )
    gguf: GgufSettings = GgufSettings()
    providers: Mapping[str, ProviderSettings] = {}
    lang: Annotated[str, AfterValidator(_known_language)] = Field(
        default="en", description="Language in which reports explain metrics."
    )
    questions: str | None = Field(default=None, description=help_of("questions"))
    store: Annotated[str, AfterValidator(_store)] | None = Field(default=None, description=help_of("store"))
    run: str | None = Field(
        default=None,
        pattern=_NAME,
        max_length=100,
        description="Name of a run that is made by several commands: with Redis they share slots and budget.",
    )
    history: str | None = Field(default=None, description=help_of("history"))
    junit_properties: bool = Field(
        default=True, description="Scores as properties of test cases in --junitxml."
    )
    report_replies: int = Field(default=2000, ge=0, le=1_000_000, description=help_of("report_replies"))
    history_reports: str | None = Field(default=None, description=help_of("history_reports"))
    history_keep: int = Field(default=500, ge=1, description="Runs that the history keeps, the latest ones.")
    thresholds: Mapping[str, str | float] = Field(
        default={}, description="By metric, for assertions that name none."
    )
    metrics: Mapping[str, MetricSettings] = Field(
        default={}, description="Options by metric; ndcg stands for ndcg@5 and ndcg@10, too."
    )
    budget: BudgetSettings = BudgetSettings()
    gates: Mapping[str, str | float | bool] = Field(
        default={}, description="Metric to rule, decided at the end of a run: docs/gates.md."
    )
    gating: GatingSettings = GatingSettings()
    trace_url: Annotated[str, AfterValidator(_trace_url)] | None = Field(
        default=None, description="Where traces are shown: a URL with {trace_id} in it."
    )
    votes: int = Field(default=1, ge=1, le=15, description=help_of("votes"))
    judges: Annotated[tuple[str, ...], BeforeValidator(_names)] = Field(
        default=(), description="Several judges, in place of judge."
    )
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
        description=help_of("lookahead"),
    )

    record: str | None = Field(default=None, description=help_of("record"))
    replay: str | None = Field(default=None, description=help_of("replay"))
    recorded: Annotated[frozenset[RecordedKind], BeforeValidator(_names)] = Field(
        default=frozenset({"rag", "judge", "embedding"}),
        min_length=1,
        description=help_of("recorded"),
    )

    # Not a setting: equal settings from other files are equal.
    _sources: tuple[str, ...] = PrivateAttr(default=())
    _places: Mapping[tuple[str, ...], str] = PrivateAttr(default={})
    _folder: Path | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _one_recording(self) -> Settings:
        if self.record and self.replay:
            raise ValueError("record and replay exclude each other: a run writes replies down or reads them")
        return self

    @model_validator(mode="after")
    def _reports_of_a_history(self) -> Settings:
        if self.history_reports and not self.history:
            raise ValueError("history_reports keeps the reports of a history's runs: set history, too")
        return self

    @property
    def sources(self) -> tuple[str, ...]:
        """The files that were read; "environment" and "command line" where they say something."""
        return self._sources

    @property
    def folder(self) -> Path | None:
        """Where the files stand that were read; None where there are none."""
        return self._folder

    def read_from(
        self,
        sources: tuple[str, ...],
        places: Mapping[tuple[str, ...], str] | None = None,
        folder: Path | None = None,
    ) -> Settings:
        """The same, knowing its ``sources``, their ``folder``, and in which file and line (or variable) keys of
        ``places`` stand.
        """
        # Frozen: only a copy of its own can be told.
        found = self.model_copy()
        found._sources, found._places, found._folder = sources, places or {}, folder
        return found

    def place_of(self, *path: str) -> str:
        """Where a metric's option stands, and its key: ``ragbench.toml:7: metrics.faithfulness.verdicts``."""
        place = self._places.get(path)
        return f"{place}: {'.'.join(path)}" if place else ".".join(path)

    def replays(self, kind: str) -> bool:
        """Whether replies of this kind come from a recording."""
        return self.replay is not None and kind in self.recorded
