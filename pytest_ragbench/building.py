"""Puts engine, judge, embedder and retriever together from settings."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_ragbench import embeddings, rag
from pytest_ragbench.engine.limits import limits_of
from pytest_ragbench.engine.prices import prices_of
from pytest_ragbench.engine.recording import Recorder, Replay
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.model.redis_url import is_installed, is_redis, shown
from pytest_ragbench.settings import Settings, load_settings

if TYPE_CHECKING:
    from pytest_ragbench.embeddings import Embedder
    from pytest_ragbench.engine import Engine
    from pytest_ragbench.engine.wire import Address
    from pytest_ragbench.judge.base import Judge
    from pytest_ragbench.rag import Retriever


def new_run_id() -> str:
    return uuid.uuid4().hex


def settings(directory: Path | None = None) -> Settings:
    """The configuration as seen from ``directory`` (the working directory), without a command line."""
    return load_settings(directory)


def store_place(settings: Settings, cache: Path | None) -> Path | str | None:
    """The store's file, or the URL of its Redis server: as configured, else a file in ``cache``; None where it
    is switched off.

    Raises
    ------
    UsageError
        What Redis needs is not installed.
    """
    if settings.store == "off":
        return None
    if settings.store and is_redis(settings.store):
        if not is_installed():
            raise UsageError(f"store = {shown(settings.store)!r} needs: pip install 'pytest-ragbench[redis]'")
        return settings.store
    if settings.store:
        return Path(settings.store).expanduser()
    return (cache or Path(".ragbench")) / "store.sqlite"


def engine(
    settings: Settings,
    *,
    run_id: str,
    cache: Path | None = None,
    controller: Address | None = None,
    on_warning: Callable[[str], None] | None = None,
) -> Engine:
    """An engine with the limits of every configured provider and of the RAG service.

    ``controller``: where that of this run listens, whose store, budget and pace are used.
    """
    from pytest_ragbench.engine.budget import Caps
    from pytest_ragbench.engine.core import Engine

    limits = {name: limits_of(provider) for name, provider in settings.providers.items()}
    limits["rag"] = limits_of(settings.rag)
    more: dict[str, Any] = {"on_warning": on_warning} if on_warning else {}
    if settings.record or settings.replay:
        more |= _recording(settings)
    budget, place = settings.budget, store_place(settings, cache)
    return Engine(
        store=place,
        run_id=settings.run or run_id if isinstance(place, str) else run_id,
        session=run_id,
        limits=limits,
        controller=controller,
        caps=Caps(budget.max_calls, budget.max_tokens, budget.max_cost),
        prices=prices_of(settings.providers, os.environ.get("OPENAI_BASE_URL")),
        **more,
    )


def _recording(settings: Settings) -> dict[str, Any]:
    if settings.record:
        return {"recorder": Recorder(Path(settings.record).expanduser().absolute(), settings.recorded)}
    return {"replay": Replay(Path(str(settings.replay)).expanduser().absolute(), settings.recorded)}


def judge(value: object, engine: Engine, settings: Settings) -> Judge:
    """Any of the things that can stand for a judge, as one; None for the configured one."""
    from pytest_ragbench.judge.choose import judge_from

    return judge_from(value, engine, settings)


def retriever(value: object, engine: Engine, settings: Settings) -> Retriever:
    """The configured RAG service, or anything that can stand in its place; a session's questions in order.

    Raises
    ------
    UsageError
        No service is configured.
    """
    from pytest_ragbench.rag.sessions import in_sessions

    return in_sessions(_retriever(value, engine, settings))


def _retriever(value: object, engine: Engine, settings: Settings) -> Retriever:
    if value is None:
        value = settings.rag.retriever
    if value is not None:
        return rag.retriever_from(value, engine, settings)
    if settings.rag.url is None and settings.rag.retrievers:
        raise UsageError(
            f"several retrievers are configured ({', '.join(settings.rag.retrievers)}), and one is wanted here: "
            "name it as retriever in [rag], or give --rag-url"
        )
    if settings.rag.url is None:
        raise UsageError(
            "no RAG service is configured: give --rag-url URL, set RAGBENCH_RAG_URL, write url in the [rag] "
            "table of ragbench.toml, or override the fixture 'retriever'"
        )
    return rag.http_retriever(settings.rag, engine)


def embedder(value: object, engine: Engine, settings: Settings) -> Embedder:
    """The configured embedder (default: the local one), or anything that can stand in its place."""
    chosen = value if value is not None else settings.embedder or "local"
    return embeddings.embedder_from(chosen, engine, settings)


def judge_name(settings: Settings) -> str:
    """What the configured judge is called, without building it."""
    from pytest_ragbench.judge.choose import configured_judge

    return configured_judge(settings, os.environ)
