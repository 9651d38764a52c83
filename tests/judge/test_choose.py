from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.base import Answered, Judge, Task
from pytest_ragbench.judge.choose import judge_from
from pytest_ragbench.judge.openai import DEFAULT_OPENAI_MODEL
from pytest_ragbench.model.errors import UsageError
from pytest_ragbench.settings import ProviderSettings, Settings

KEY = {"OPENAI_API_KEY": "sk-test-FAKE-0000-abcd"}
LAB = ProviderSettings(base_url="http://localhost:8000/v1")
LAB_MODEL = ProviderSettings(base_url="http://localhost:8000/v1", model="m1")


def name(
    engine: Engine,
    value: Any = None,
    *,
    judge: str | None = None,
    environ: Mapping[str, str] | None = None,
    **providers: ProviderSettings,
) -> str:
    settings = Settings(judge=judge, providers=providers)
    return judge_from(value, engine, settings, environ=environ or {}).name


class Mine:
    name = "mine"
    tasks = None

    async def ask(self, task: Task[Any]) -> Answered[Any]:
        raise NotImplementedError

    def __call__(self) -> None:
        raise NotImplementedError


def test_judges_and_functions(engine: Engine) -> None:
    mine = Mine()
    assert judge_from(mine, engine, Settings(), environ={}) is mine

    def grader(messages: list[dict[str, str]]) -> str:
        return "{}"

    found = judge_from(grader, engine, Settings(), environ={})
    assert isinstance(found, Judge)
    assert found.name == "grader"


@pytest.mark.parametrize(
    ("value", "environ", "providers", "expected"),
    [
        ("local", {}, {}, "local"),
        ("openai:gpt-4.1", KEY, {}, "openai:gpt-4.1"),
        ("openai", KEY, {}, f"openai:{DEFAULT_OPENAI_MODEL}"),
        ("openai", KEY, {"openai": ProviderSettings(model="m9")}, "openai:m9"),
        ("lab:llama3:8b", {}, {"lab": LAB}, "lab:llama3:8b"),
        ("lab", {}, {"lab": LAB_MODEL}, "lab:m1"),
        ("lab:m2", {}, {"lab": LAB_MODEL}, "lab:m2"),
        (None, {}, {}, "local"),
        (None, {"CI": "false"}, {}, "local"),
        (None, KEY, {}, f"openai:{DEFAULT_OPENAI_MODEL}"),
        (None, {**KEY, "CI": "true"}, {}, f"openai:{DEFAULT_OPENAI_MODEL}"),
        (None, KEY, {"lab": LAB_MODEL}, "lab:m1"),
        (None, {"CI": "1"}, {"lab": LAB_MODEL, "other": LAB}, "lab:m1"),
    ],
)
def test_names_and_defaults(
    engine: Engine, value: str | None, environ: dict[str, str], providers: dict[str, Any], expected: str
) -> None:
    assert name(engine, value, environ=environ, **providers) == expected


def test_the_configured_judge_comes_first(engine: Engine) -> None:
    assert name(engine, judge="local", environ={**KEY, "CI": "true"}, lab=LAB_MODEL) == "local"
    assert name(engine, "lab:m5", judge="local", lab=LAB) == "lab:m5"


@pytest.mark.parametrize(
    ("value", "environ", "providers", "message"),
    [
        (None, {"CI": "true"}, {}, 'judge = "local"'),
        (None, {}, {"a": LAB_MODEL, "b": LAB_MODEL}, "several providers"),
        ("opnai:x", {}, {}, "did you mean 'openai'"),
        ("qwerty", {}, {"lab": LAB}, "known: local, openai, gguf, any, lab"),
        ("local:big", {}, {}, "no models"),
        ("lab", {}, {"lab": LAB}, r"providers\.lab\.model"),
        ("openai:m", {}, {}, "OPENAI_API_KEY"),
        (5, {}, {}, "got int"),
        (Mine, {}, {}, "class Mine"),
    ],
)
def test_what_can_not_be_a_judge(
    engine: Engine, value: Any, environ: dict[str, str], providers: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        name(engine, value, environ=environ, **providers)
