"""What is taken out of messages, and what is left in."""

from __future__ import annotations

import pytest

from pytest_ragbench.engine import Engine
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.tasks import GradeSearchRag
from pytest_ragbench.rag.target import target_of
from pytest_ragbench.secrets import Redactor, Secret, environment_secrets, fingerprint
from pytest_ragbench.settings import ProviderSettings, RagSettings

KEY = "sk-test-FAKE-0005-abcd"


def test_a_key_of_the_environment_is_masked_whoever_sends_it_back() -> None:
    redact = Redactor([Secret("given-000-1")], {"SERVICE_API_KEY": KEY, "HOME_TOWN": "Тверь-2026-12-31"})
    assert (
        redact(f"bad key {KEY} and given-000-1 in Тверь-2026-12-31")
        == "bad key *** and *** in Тверь-2026-12-31"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("MAX_TOKENS", "4096"),
        ("PASSWORD_HINT", "the name of the cat and 2 more"),
        ("KEY_FILE_TOKEN", "/run/secrets/token-1"),
        ("HISTORY", "abc-1234567890"),
    ],
)
def test_plain_words_of_the_environment_stay(name: str, value: str) -> None:
    assert environment_secrets({name: value}) == []


def test_no_repr_of_settings_or_targets_shows_a_key() -> None:
    rag = RagSettings(
        url=f"http://127.0.0.1/ask?api_key={KEY}",
        headers={"X-Api-Key": KEY, "X-Tenant": "shop"},
        body={"user": {"token": KEY}},
    )
    provider = ProviderSettings(
        base_url=f"http://127.0.0.1/v1?key={KEY}", headers={"Authorization": KEY}, extra_body={"secret": KEY}
    )
    shown = repr([rag, provider, target_of(rag)]) + str(rag)
    assert KEY not in shown
    assert "shop" in shown
    assert rag.headers["X-Api-Key"] == KEY
    assert KEY in target_of(rag).url("q")


def test_a_key_in_the_body_is_sent_and_is_in_no_store_key_and_no_recording() -> None:
    body = {"auth": [{"token": KEY}], "max_tokens": 512, "session_token": "{session}", "q": "{question}"}
    target = target_of(RagSettings(url="http://127.0.0.1/ask", method="POST", body=body))
    sent, key = target.filled_body("Да?", "s1"), target.key_body("Да?", "s1")
    assert sent == {"auth": [{"token": KEY}], "max_tokens": 512, "session_token": "s1", "q": "Да?"}
    assert key == {**sent, "auth": [{"token": fingerprint(KEY)}]}
    assert target.secrets == (KEY,)  # the service may send it back


def test_a_judge_whose_body_holds_a_key() -> None:
    settings = ProviderSettings(base_url="http://127.0.0.1/v1", extra_body={"user_token": KEY, "top_p": 1})
    engine = Engine(store=None, run_id="r")
    judge = openai_judge("lab", settings, "m", engine, environ={})
    key = judge._key(GradeSearchRag(question="q", answer="a", contexts=("c",)), [])
    assert key["extra_body"] == {"user_token": fingerprint(KEY), "top_p": 1}
    assert Redactor(judge._endpoint.secrets)(f"bad {KEY}") == "bad ***"
    engine.close()
