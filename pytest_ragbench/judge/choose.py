"""Which judge a run uses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pytest_ragbench.engine.recording import load
from pytest_ragbench.http.clients import CHAT, is_client
from pytest_ragbench.judge.base import Judge
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.clients import OpenAIJudge, client_judge
from pytest_ragbench.judge.fallback import FallbackJudge
from pytest_ragbench.judge.panel import Kind, Panel
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.providers import made
from pytest_ragbench.settings import Settings

if TYPE_CHECKING:
    from pytest_ragbench.engine.core import Engine


def judge_from(
    value: object, engine: Engine, settings: Settings, *, environ: Mapping[str, str] = os.environ
) -> Judge:
    """Any of the things that can stand for a judge, as one.

    Parameters
    ----------
    value
        A judge; ``"local"``; ``"PROVIDER"`` or ``"PROVIDER:MODEL"``; ``"gguf:FILE"``; what another package brings
        (:mod:`pytest_ragbench.providers`); a client of the library openai, or an :class:`OpenAIJudge` with one; a
        function of chat messages; several of these in a list, as a panel; or None for the default:
        ``settings.judge``, else the one provider with a model, else OpenAI where ``OPENAI_API_KEY`` is set, else
        the local judge.
    engine
        Makes and keeps the calls.
    settings
        Names the providers.
    environ
        Holds the keys.

    Raises
    ------
    UsageError
        No such provider, no model, no key; none of this configured and ``CI`` set; or ``value`` is
        something else.
    """
    if value is None:
        return _configured(engine, settings, environ)
    if isinstance(value, str):
        return _named(value, engine, settings, environ)
    if isinstance(value, (list, tuple)):
        members = tuple(judge_from(each, engine, settings, environ=environ) for each in value)
        return _panel(members, "panel", settings)
    # A class passes for a callable, and would fail at the first question only.
    if isinstance(value, type):
        raise UsageError(f"a judge is needed, got the class {value.__name__}; make an instance of it")
    if isinstance(value, OpenAIJudge):
        return client_judge(value, engine, settings)
    # A mock has all attributes that it is asked for: a judge's name is a string.
    if isinstance(value, Judge) and isinstance(value.name, str):
        return value
    if is_client(value, CHAT):
        return client_judge(OpenAIJudge(value), engine, settings)
    if callable(value):
        return callable_judge(value, engine=engine, settings=settings)
    raise UsageError(
        f"a judge must be 'local', 'PROVIDER:MODEL', a client of the library openai, a function of chat messages or "
        f"an object with name, tasks and ask(); got {type(value).__name__}"
    )


def _configured(engine: Engine, settings: Settings, environ: Mapping[str, str]) -> Judge:
    """The judge of the configuration, with those beside it."""
    chosen = {
        name: getattr(settings, name) for name in ("judges", "judge_confirm", "judge_cascade", "judge_dual")
    }
    # Each of them says who the second judge is, and there is no order among them that a reader could guess.
    set_here = [name for name, value in chosen.items() if value]
    if len(set_here) > 1 or (settings.judges and settings.judge):
        raise UsageError(
            f"{' and '.join(set_here if len(set_here) > 1 else ['judge', 'judges'])} are both set; choose one"
        )
    if settings.judges:
        members = tuple(_named(name, engine, settings, environ) for name in settings.judges)
        return _panel(members, "panel", settings)
    judge = _named(configured_judge(settings, environ), engine, settings, environ)
    if settings.judge_fallback is not None:
        fallback = _named(settings.judge_fallback, engine, settings, environ)
        judge = FallbackJudge(judge, fallback, engine)
    kinds: tuple[tuple[Literal["confirm", "cascade", "dual"], str | None], ...] = (
        ("confirm", settings.judge_confirm),
        ("cascade", settings.judge_cascade),
        ("dual", settings.judge_dual),
    )
    for kind, second in kinds:
        if second:
            return _panel((judge, _named(second, engine, settings, environ)), kind, settings)
    return judge


def _panel(members: tuple[Judge, ...], kind: Kind, settings: Settings) -> Judge:
    how = settings.panel
    return Panel(members, kind, how.aggregate, how.tolerance, how.margin, how.swap_roles)


def configured_judge(settings: Settings, environ: Mapping[str, str]) -> str:
    """The spec of the judge that a run uses where a test chooses none; raises as :func:`judge_from`."""
    if settings.judges:
        return ", ".join(settings.judges)
    if settings.judge:
        return settings.judge
    # A provider without a model may serve embeddings only.
    with_model = sorted(name for name, provider in settings.providers.items() if provider.model)
    if len(with_model) == 1:
        return with_model[0]
    if with_model:
        raise UsageError(
            f"several providers have a model ({', '.join(with_model)}); say which one judges: "
            f'judge = "{with_model[0]}"'
        )
    if environ.get("OPENAI_API_KEY", "").strip() or _was_recorded(settings, "openai"):
        return "openai"
    # The local judge is weaker than any LLM: a pipeline that lost its key must not go green by it.
    if environ.get("CI", "").strip().casefold() not in ("", "0", "false", "no"):
        raise UsageError(
            "no judge is configured, and in CI none is chosen silently; write "
            'judge = "local" or judge = "PROVIDER:MODEL" into [tool.ragbench], or set RAGBENCH_JUDGE'
        )
    return "local"


def is_chosen(settings: Settings, environ: Mapping[str, str]) -> bool:
    """Whether there is a judge for tests that bring none: False in CI, where nothing names one."""
    named = settings.judges or settings.judge or any(each.model for each in settings.providers.values())
    key = environ.get("OPENAI_API_KEY", "").strip() or _was_recorded(settings, "openai")
    return bool(named or key) or environ.get("CI", "").strip().casefold() in ("", "0", "false", "no")


def _was_recorded(settings: Settings, provider: str) -> bool:
    """Whether the recording to replay has verdicts of this provider: its key need not be there then."""
    if not settings.replays("judge"):
        return False
    entries = load(Path(str(settings.replay)).expanduser())
    return any(entry["kind"] == "judge" and entry["provider"] == provider for entry in entries)


def _named(name: str, engine: Engine, settings: Settings, environ: Mapping[str, str]) -> Judge:
    judge: Judge = made("judge", name, engine, settings, environ)
    return judge
