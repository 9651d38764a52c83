"""Services that are configured: Azure's header, version and deployments; tokens; certificates; a proxy."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from pytest_ragbench.embeddings import openai_embedder
from pytest_ragbench.engine import Engine
from pytest_ragbench.http.endpoints import deployment_url, endpoint_of
from pytest_ragbench.http.tokens import token_source
from pytest_ragbench.judge.openai import openai_judge
from pytest_ragbench.judge.tasks import GradeRelevance
from pytest_ragbench.model.errors import JudgeError, UsageError
from pytest_ragbench.settings import ProviderSettings, RetrySettings
from tests.servers.openai_server import OpenAIServer, Reply, error

KEY = "0123FAKE4567azure89ab"
GOOD = {"reason": "ok", "grade": 0.75}
TASK = GradeRelevance(question="Können wir das zurückgeben?", answer="Ja.")
RETRY = RetrySettings(attempts=2, wait=0, max_wait=1)


def ask(engine: Engine, task: Any = TASK, model: str = "gpt-4o", **settings: Any) -> float:
    provider = ProviderSettings(**{"retry": RETRY, "api_key_env": "AZURE_KEY", **settings})
    judge = openai_judge("azure", provider, model, engine, environ={"AZURE_KEY": KEY})
    return float(engine.wait(judge.ask(task)).reply.grade)


def root(server: OpenAIServer) -> str:
    return server.url.removesuffix("/v1")


# Azure


@pytest.mark.parametrize("base", ["{}", "{}/openai", "{}/openai/deployments/gpt-4o"])
def test_a_deployment_is_asked_with_the_key_in_azures_header(engine: Engine, base: str) -> None:
    with OpenAIServer([GOOD]) as server:
        settings = {"auth_header": "api-key", "api_version": "2024-10-21"}
        assert ask(engine, base_url=base.format(root(server)), **settings) == 0.75
        assert server.paths == ["/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"]
        assert server.headers[0]["api-key"] == KEY
        assert "authorization" not in server.headers[0]


def test_a_whole_url_with_its_version_and_the_key_in_a_variable(engine: Engine) -> None:
    with OpenAIServer([GOOD, error(401, f"Access denied to {KEY}")]) as server:
        url = f"{root(server)}/openai/deployments/gpt-4o?api-version=2024-10-21"
        assert ask(engine, base_url=url, auth_header="api-key") == 0.75
        assert server.paths == ["/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"]
        other = GradeRelevance(question="?", answer="Nein.")
        with pytest.raises(JudgeError) as caught:
            ask(engine, other, base_url=url, auth_header="api-key")
    assert KEY not in f"{caught.value} {caught.value.raw}"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({}, ("authorization", f"Bearer {KEY}")),
        ({"auth_scheme": "Token"}, ("authorization", f"Token {KEY}")),
        ({"auth_scheme": ""}, ("authorization", KEY)),
        ({"auth_header": "X-Team-Key", "auth_scheme": "Key"}, ("x-team-key", f"Key {KEY}")),
        ({"auth_header": "authorization"}, ("authorization", f"Bearer {KEY}")),
    ],
)
def test_header_and_scheme_of_a_key(engine: Engine, given: dict[str, str], sent: tuple[str, str]) -> None:
    with OpenAIServer([GOOD]) as server:
        ask(engine, base_url=server.url, **given)
        assert server.headers[0][sent[0]] == sent[1]


@pytest.mark.parametrize(
    ("url", "version", "asked"),
    [
        ("https://a.example/openai/v1", "preview", "https://a.example/openai/v1?api-version=preview"),
        (
            "https://a.example/?x=1",
            "v1",
            "https://a.example/openai/deployments/my%20model?x=1&api-version=v1",
        ),
        (
            "https://a.example?api-version=old",
            "new",
            "https://a.example/openai/deployments/my%20model?api-version=old",
        ),
        ("https://a.example/v1", None, "https://a.example/v1"),
    ],
)
def test_urls_of_deployments(url: str, version: str | None, asked: str) -> None:
    assert deployment_url(url, version, "my model") == asked


def test_an_embedder_of_azures(engine: Engine) -> None:
    vectors = {"data": [{"index": 0, "embedding": [1.0, 2.0]}]}
    with OpenAIServer([Reply(body=vectors)]) as server:
        provider = ProviderSettings(
            base_url=root(server), api_version="v", api_key_env="K", auth_header="api-key"
        )
        embedder = openai_embedder(provider, "ada", engine, provider="azure", environ={"K": KEY})
        assert engine.wait(embedder.embed(["a"])).tolist() == [[1.0, 2.0]]
        assert server.paths == ["/openai/deployments/ada/embeddings?api-version=v"]
        assert server.headers[0]["api-key"] == KEY


# Tokens

TOKENS = """
given = []

def token():
    given.append(f"token-FAKE-0000-{len(given)}")
    return given[-1]

async def later():
    return token()

def broken():
    raise OSError("not signed in")

nothing = 3
"""
AZURE_IDENTITY = """
made = []

class DefaultAzureCredential:
    def __init__(self):
        made.append(self)

def get_bearer_token_provider(credential, scope):
    return lambda: f"entra-FAKE-0000 {scope}"
"""


@pytest.fixture
def tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module of the user's."""
    import sys

    (tmp_path / "our_tokens.py").write_text(TOKENS)
    monkeypatch.syspath_prepend(str(tmp_path))
    token_source.cache_clear()
    yield
    token_source.cache_clear()
    sys.modules.pop("our_tokens", None)


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize("function", ["token", "later"])
def test_a_token_is_asked_for_before_each_call(engine: Engine, function: str) -> None:
    with OpenAIServer([error(503, "later"), GOOD, error(401, "no: token-FAKE-0000-2")]) as server:
        settings: dict[str, Any] = {
            "base_url": server.url,
            "token": f"our_tokens:{function}",
            "api_key_env": None,
        }
        assert ask(engine, **settings) == 0.75
        with pytest.raises(JudgeError) as caught:
            ask(engine, GradeRelevance(question="?", answer="Nein."), **settings)
        sent = [headers["authorization"] for headers in server.headers]
    assert sent == [f"Bearer token-FAKE-0000-{number}" for number in range(3)]
    assert "token-FAKE" not in f"{caught.value} {caught.value.raw}"


@pytest.mark.usefixtures("tokens")
def test_a_function_without_a_token(engine: Engine) -> None:
    with OpenAIServer([GOOD]) as server:
        with pytest.raises(
            JudgeError, match="no token from 'our_tokens:broken': OSError: not signed in"
        ) as caught:
            ask(engine, base_url=server.url, token="our_tokens:broken", api_key_env=None)
        assert (caught.value.code, server.calls) == ("no_token", 0)


@pytest.mark.usefixtures("tokens")
@pytest.mark.parametrize("token", ["our_tokens:nothing", "our_tokens:no_such", "no_such_module:f", "Azure"])
def test_a_token_that_names_nothing(token: str) -> None:
    with pytest.raises(UsageError, match="our_tokens|no_such_module|'azure' or name a function"):
        endpoint_of("lab", ProviderSettings(base_url="http://localhost/v1", token=token), {})


def test_entra_id(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: Any) -> None:
    (tmp_path / "azure" / "identity").mkdir(parents=True)
    (tmp_path / "azure" / "identity" / "__init__.py").write_text(AZURE_IDENTITY)
    with OpenAIServer([GOOD]) as server:
        ask(engine, base_url=server.url, token="azure", api_key_env=None)
        ask(engine, GradeRelevance(question="?", answer="x"), base_url=server.url, token="azure")
        told = {headers["authorization"] for headers in server.headers}
    assert told == {"Bearer entra-FAKE-0000 https://cognitiveservices.azure.com/.default"}


def test_without_azure_identity(monkeypatch: pytest.MonkeyPatch, tokens: Any) -> None:
    monkeypatch.setattr("pytest_ragbench.http.tokens.find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"pip install 'pytest-ragbench\[azure\]'"):
        endpoint_of("lab", ProviderSettings(base_url="http://localhost/v1", token="azure"), {})


# Certificates and proxies


@contextmanager
def https(server: OpenAIServer, authority: trustme.CA, *, wants_client: bool = False) -> Iterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(context)
    if wants_client:
        authority.configure_trust(context)
        context.verify_mode = ssl.CERT_REQUIRED
    server._http.socket = context.wrap_socket(server._http.socket, server_side=True)
    with server:
        yield server.url.replace("http://127.0.0.1", "https://localhost")


def test_an_authority_of_ones_own_and_a_client_certificate(engine: Engine, tmp_path: Path) -> None:
    authority = trustme.CA()
    ours, cert, key = (str(tmp_path / name) for name in ("ca.pem", "client.pem", "client.key"))
    authority.cert_pem.write_to_path(ours)
    client = authority.issue_cert("qa@example.com")
    client.private_key_and_cert_chain_pem.write_to_path(cert)
    client.private_key_pem.write_to_path(key)
    with https(OpenAIServer([GOOD]), authority) as url:
        with pytest.raises(JudgeError, match="certificate verify failed"):
            ask(engine, base_url=url)
        assert ask(engine, base_url=url, ca_file=ours) == 0.75
    with https(OpenAIServer([GOOD]), authority, wants_client=True) as url:
        shown = {"base_url": url, "ca_file": ours}
        with pytest.raises(JudgeError):
            ask(engine, GradeRelevance(question="1", answer="x"), **shown)
        assert ask(engine, GradeRelevance(question="2", answer="x"), **shown, client_cert=cert) == 0.75
        both = {"client_cert": cert, "client_key": key}
        assert ask(engine, GradeRelevance(question="3", answer="x"), **shown, **both) == 0.75


def test_a_proxy_for_one_provider(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with OpenAIServer([GOOD]) as proxy:
        assert ask(engine, base_url="http://gateway.example/v1", proxy=root(proxy)) == 0.75
        assert proxy.paths == ["http://gateway.example/v1/chat/completions"]
    with pytest.raises(JudgeError, match="gateway.example"):
        ask(engine, TASK, model="other", base_url="http://gateway.example:1/v1", proxy="off")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"ca_file": "no-such.pem"}, "providers.lab.ca_file: there is no file '.*no-such.pem'"),
        ({"ca_file": __file__}, "providers.lab: ca_file can't be used"),
        ({"client_key": __file__}, "providers.lab.client_key needs providers.lab.client_cert"),
    ],
)
def test_files_that_can_not_be_used(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        endpoint_of("lab", ProviderSettings(base_url="https://lab.example/v1", **settings), {})


@pytest.mark.parametrize("proxy", ["proxy:3128", "http://user:secret@proxy:3128", "socks5://proxy"])
def test_a_proxy_that_can_not_be_used(proxy: str) -> None:
    with pytest.raises(ValueError, match="must"):
        ProviderSettings(proxy=proxy)
