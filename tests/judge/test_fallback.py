from __future__ import annotations

from typing import Any

import pytest

from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.choose import judge_from
from pytest_ragbench.judge.tasks import SplitClaims
from pytest_ragbench.model.errors import JudgeError
from pytest_ragbench.settings import Settings
from tests.servers.openai_server import OpenAIServer, error

TASK = SplitClaims("A receipt is needed.")
CLAIMS = {"claims": ["A receipt is needed."]}


def asked(first: Any, second: Any) -> tuple[Any, list[str]]:
    """What the configured judge said, and what was warned of."""
    warned: list[str] = []
    with OpenAIServer([first]) as one, OpenAIServer([second]) as two:
        providers = {
            name: {"base_url": server.url, "model": "m", "retry": {"attempts": 1}}
            for name, server in (("one", one), ("two", two))
        }
        settings = Settings.model_validate(
            {"judge": "one", "judge_fallback": "two:m2", "providers": providers}
        )
        engine = Engine(store=None, run_id="r", on_warning=warned.append)
        try:
            judge = judge_from(None, engine, settings, environ={})
            return engine.wait(judge.ask(TASK)), warned
        finally:
            engine.close()


def test_while_the_first_answers_it_judges() -> None:
    answered, warned = asked(CLAIMS, error(500, "never asked"))
    assert (answered.judge, warned) == ("one:m", [])


@pytest.mark.parametrize(
    "outage", [error(500, "down"), error(401, "bad key"), error(429, "no money", code="insufficient_quota")]
)
def test_where_it_can_not_be_asked_the_second_judges_and_is_named(outage: Any) -> None:
    answered, warned = asked(outage, CLAIMS)
    assert answered.judge == "two:m2"
    assert answered.reply.claims == ["A receipt is needed."]
    assert len(warned) == 1
    assert "one:m could not be asked" in warned[0]
    assert "two:m2 judged instead" in warned[0]


def test_a_useless_reply_is_no_outage() -> None:
    with pytest.raises(JudgeError) as caught:
        asked("no json at all", CLAIMS)
    assert "fallback" not in str(caught.value)


def test_where_both_are_down_both_are_told() -> None:
    with pytest.raises(JudgeError, match=r"(?s)500.*one down.*fallback.*503.*two down") as caught:
        asked(error(500, "one down"), error(503, "two down"))
    assert caught.value.code == "http_500"
