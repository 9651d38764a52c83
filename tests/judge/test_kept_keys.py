"""What identifies a stored reply stays as it is: stores and recordings written before must still serve."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_ragbench.embeddings import openai_embedder
from pytest_ragbench.engine.keys import digest_of
from pytest_ragbench.judge.base import again
from pytest_ragbench.judge.callable import callable_judge
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.tasks import GradeSearchRag, VerifyClaims, in_a_word
from pytest_ragbench.model.samples import Question
from pytest_ragbench.rag import http_retriever
from pytest_ragbench.settings import ProviderSettings, RagSettings

GRADE = GradeSearchRag("Срок возврата?", "45 дней", ("Возврат за 7 дней.",))
VERIFY = VerifyClaims(claims=("It takes 30 days.", "A receipt is needed."), contexts=("30 days.", "Receipt."))
LAB = ProviderSettings(
    base_url="http://lab.example/v1?tier=2&api_key=hidden",
    headers={"X-Team": "qa", "X-Api-Key": "hidden"},
    extra_body={"top_k": 1, "api_key": "hidden"},
    temperature=0.2,
    seed=7,
    max_tokens=300,
    structured_output="json_object",
)


class Noted(Exception):
    """Ends a request where it would have been made."""


class Noting:
    """An engine that only notes what it is asked for."""

    run_id = "run"

    def __init__(self) -> None:
        self.digests: list[str] = []

    def replays(self, kind: str) -> bool:
        return False

    def set_limits(self, provider: str, limits: object) -> None:
        pass

    def on_close(self, close: object) -> None:
        pass

    async def fetch(self, request: Any, *how: Any, **more: Any) -> Any:
        self.digests.append(digest_of(request, self.run_id))
        raise Noted


def digest(make: Any, *asked: Any) -> str:
    engine = Noting()
    service = make(engine)
    ask = getattr(service, "ask", None) or service.embed
    with pytest.raises(Noted):
        asyncio.run(ask(*asked))
    return engine.digests[0]


def keyed(messages: list[dict[str, str]]) -> str:
    raise AssertionError("not called")


keyed.ragbench_key = {"model": "mine", "temperature": 0}  # type: ignore[attr-defined]


def judge(engine: Any) -> Any:
    return openai_judge("lab", LAB, "m1", engine, environ={})


def plain_judge(engine: Any) -> Any:
    return openai_judge("openai", ProviderSettings(), "gpt-4o-mini", engine, environ={"OPENAI_API_KEY": "k"})


def embedder(engine: Any) -> Any:
    return openai_embedder(LAB, "e1", engine, provider="lab", dimensions=256, environ={})


def get_rag(engine: Any) -> Any:
    settings = RagSettings(url="http://rag.example", headers={"X-Token": "hidden", "X-Team": "qa"})
    return http_retriever(settings, engine, {})


def post_rag(engine: Any) -> Any:
    settings = RagSettings(
        url="http://rag.example/ask?api_key=hidden",
        path="",
        method="POST",
        body={"q": "{question}", "chat": "{session}", "token": "hidden"},
        auth_env="RAG_KEY",
    )
    return http_retriever(settings, engine, {"RAG_KEY": "hidden"})


FIRST = Question(id="1", question="Hello?", session="s")


@pytest.mark.parametrize(
    ("make", "asked", "known"),
    [
        pytest.param(
            judge, GRADE, "5867e18f86b94e9f9d57d3108af38182efbc9f658836b46065e853718523526b", id="judge"
        ),
        pytest.param(
            judge,
            again(VERIFY, 2),
            "c3f618ed478dd32e29e9d877be691a49619c6445d0997bfccf3f902864dafaf9",
            id="judge, third vote",
        ),
        pytest.param(
            judge,
            in_a_word(VERIFY)[1],
            "3e03b663b7eaf40bb023f908c49d343b8d95171f3864afe7f63b043a66c5ec27",
            id="judge, one word",
        ),
        pytest.param(
            plain_judge,
            VERIFY,
            "48bdffbd8a81c550c797a62ee4c2b6d03f587afbb53547da951c068c1fd004f7",
            id="OpenAI",
        ),
        pytest.param(
            lambda engine: callable_judge(keyed, engine=engine),
            GRADE,
            "2a42eaa7fc8d59d5fcb395375a67765129895d744c1e4ee9fe1b0c9ecd679d89",
            id="function",
        ),
        pytest.param(
            embedder,
            ["Привет"],
            "782095c7fc87c4e7483fc0e1f824bdc438118f3fd5d022c96240ae974db94439",
            id="embedding",
        ),
        pytest.param(
            get_rag,
            Question(id="q", question="Сколько?"),
            "2fb3b007d04d28d4cd34083228f8744fbfc421e34705048fddffc8ab4bf0d741",
            id="GET",
        ),
        pytest.param(
            post_rag,
            Question(id="2", question="And then?", session="s", previous=FIRST),
            "2f00527a65ae273475723611bbb42a074ea0c119b83b8fa0e47b2911802d8a9d",
            id="POST",
        ),
    ],
)
def test_the_key_of_a_call(make: Any, asked: Any, known: str) -> None:
    assert digest(make, asked) == known
