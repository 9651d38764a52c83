"""One line of configuration for what is no HTTP service."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_ragbench import EndpointError, RagSample, UsageError, building
from pytest_ragbench.engine import Engine
from pytest_ragbench.model.samples import Question
from pytest_ragbench.settings import ProviderSettings, RagSettings, RetrySettings, Settings
from tests.servers.openai_server import OpenAIServer, Reply

APP = """
from starlette.applications import Starlette
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Route
from contextlib import asynccontextmanager

events = []

@asynccontextmanager
async def lifespan(app):
    events.append("up")
    yield {"texts": ["A receipt is needed."]}
    events.append("down")

async def search(request):
    asked = request.query_params["questions"]
    if asked == "fail":
        raise RuntimeError("no index")
    return JSONResponse({"answer": f"To {asked}: yes.", "contexts": request.state.texts})

async def post(request):
    body = await request.json()
    return PlainTextResponse(f"{body['q']} {request.headers['content-type']}", 503 if body["q"] == "busy" else 200)

app = Starlette(
    routes=[Route("/llm/search-rag", search), Route("/ask", post, methods=["POST"])], lifespan=lifespan
)

async def bare(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": "да".encode()})

def answer(question):
    return question.upper()

broken = 3
"""


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    (tmp_path / "ragapp.py").write_text(APP, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    once = RagSettings(retry=RetrySettings(attempts=1))
    made = building.engine(Settings(store="off", rag=once), run_id="test")
    yield made
    made.close()
    sys.modules.pop("ragapp", None)


def ask(engine: Engine, question: str, settings: Settings, value: object = None) -> RagSample:
    retriever = building.retriever(value, engine, settings)
    return engine.wait(retriever.ask(Question(id="q", question=question)))


def configured(retriever: str, **rag: Any) -> Settings:
    return Settings(rag=RagSettings(retriever=retriever, **rag))


def test_an_object_of_a_module(engine: Engine) -> None:
    assert ask(engine, "hi", configured("ragapp:answer")).answer == "HI"


def test_an_asgi_app_with_its_lifespan(engine: Engine) -> None:
    settings = configured("asgi:ragapp:app")
    sample = ask(engine, "возврат?", settings)
    assert (sample.answer, sample.contexts) == ("To возврат?: yes.", ("A receipt is needed.",))
    import ragapp  # type: ignore[import-not-found]

    engine.close()
    assert ragapp.events == ["up", "down"]


def test_an_asgi_app_that_is_posted_to(engine: Engine) -> None:
    settings = configured(
        "asgi:ragapp:app", method="POST", path="/ask", parameter=None, body={"q": "{question}"}
    )
    assert ask(engine, "hi", settings).answer == "hi application/json"


def test_an_asgi_app_without_lifespan(engine: Engine) -> None:
    assert ask(engine, "hi", configured("asgi:ragapp:bare")).answer == "да"


def test_an_asgi_app_that_fails(engine: Engine) -> None:
    with pytest.raises(EndpointError, match=r"500|no index"):
        ask(engine, "fail", configured("asgi:ragapp:app"))


def test_an_asgi_app_that_is_busy(engine: Engine) -> None:
    post = {"method": "POST", "path": "/ask", "parameter": None, "body": {"q": "{question}"}}
    with pytest.raises(EndpointError, match="503"):
        ask(engine, "busy", configured("asgi:ragapp:app", **post))


def test_a_command_with_an_argument_or_stdin(engine: Engine) -> None:
    program = f"{sys.executable} -c"
    assert (
        ask(
            engine, "a b", configured(f"command:{program} 'import sys; print(sys.argv[1])' {{question}}")
        ).answer
        == "a b"
    )
    code = 'import sys, json; print(json.dumps({"answer": sys.stdin.read(), "contexts": ["c"]}))'
    sample = ask(engine, "да?", configured(f"command:{program} '{code}'"))
    assert (sample.answer, sample.contexts) == ("да?", ("c",))


def test_a_command_that_fails(engine: Engine) -> None:
    code = 'import sys; sys.exit("no index")'
    with pytest.raises(EndpointError, match="ended with 1: no index"):
        ask(engine, "hi", configured(f"command:{sys.executable} -c '{code}'"))
    with pytest.raises(EndpointError, match="within 0.2 s"):
        settings = configured("command:sleep 20", timeout=0.2)
        ask(engine, "hi", settings)


def test_a_chat_endpoint_that_returns_contexts(engine: Engine) -> None:
    citations = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "A receipt.", "context": {
        "citations": [{"content": "A receipt is needed.", "id": "d2"}]}}}]}  # fmt: skip
    with OpenAIServer([Reply(body=citations)]) as server:
        provider = ProviderSettings(base_url=server.url, extra_body={"top_k": 3})
        settings = Settings(rag=RagSettings(retriever="chat:mine:rag-1"), providers={"mine": provider})
        sample = ask(engine, "What is needed?", settings)
    assert (sample.answer, sample.contexts, sample.context_ids) == (
        "A receipt.",
        ("A receipt is needed.",),
        ("d2",),
    )
    assert server.requests == [
        {"model": "rag-1", "messages": [{"role": "user", "content": "What is needed?"}], "top_k": 3}
    ]
    assert server.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("localhost:8080", "can't import localhost"),
        ("ragapp", "must be a URL"),
        ("ragapp:nothing", "has no 'nothing'"),
        ("ragapp:broken", "a int can't be a retriever"),
        ("nowhere:app", "can't import nowhere"),
        ("command:no-such-program-here x", "there is no program"),
        ("command:echo 'x", "closing quotation"),
        ("chat:nobody", "no provider 'nobody'"),
        ("http://", "http://"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_asked(engine: Engine, spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        building.retriever(None, engine, configured(spec))
