"""What the service receives."""

from __future__ import annotations

import json
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_ragbench.model.errors import EndpointError, UsageError
from pytest_ragbench.rag.target import target_of
from pytest_ragbench.settings import RagSettings
from tests.rag.conftest import Ask
from tests.rag.server import Service, as_json, reply

HARD = [
    "A&B=C#D",
    "C++ и 100%",
    "b%61r",
    "x=1&admin=true",
    "строка 1\nстрока 2",
    "返金は?",
    "a;b/c?d",
    "'\"<>\\",
    "  пробел  ",
    "😀",
    "{question} and {TEXT}",
    "../../etc",
]


@pytest.mark.parametrize(
    "shape", ["", "/llm/search-rag", "/llm/search-rag/", "/llm/search-rag?questions={TEXT}"]
)
@pytest.mark.parametrize("text", HARD)
def test_question_arrives_byte_for_byte(ask: Ask, service: Service, shape: str, text: str) -> None:
    ask(text, url=service.url + shape)
    (seen,) = service.seen
    assert seen.query == [("questions", text)]
    assert seen.path.rstrip("/") == "/llm/search-rag"
    assert "+" not in seen.target


def test_spaces_are_percent_encoded(ask: Ask, service: Service) -> None:
    ask("C++ и 100%")
    assert service.seen[0].target == "/llm/search-rag?questions=C%2B%2B%20%D0%B8%20100%25"


@pytest.mark.parametrize(
    ("url", "more", "target"),
    [
        ("/v2", {}, "/v2/llm/search-rag?questions=a%2Fb"),
        ("/v2/?lang=ru", {}, "/v2/llm/search-rag?lang=ru&questions=a%2Fb"),
        ("", {"path": "/ask?k=3&x=%61", "parameter": "q"}, "/ask?k=3&x=%61&q=a%2Fb"),
        ("/ask", {"path": "/ask?k=3"}, "/ask?k=3&questions=a%2Fb"),
        ("/ask", {"path": "", "parameter": "q"}, "/ask?q=a%2Fb"),
        ("/ask?questions=old&k=3", {}, "/ask?k=3&questions=a%2Fb"),
        ("", {"path": "/ask/{question}/now"}, "/ask/a%2Fb/now"),
        ("/x?a=%7BTEXT%7D&b={text}", {}, "/x?a=a%2Fb&b=a%2Fb"),
        ("/поиск", {"path": "", "parameter": "вопрос"}, None),
        ("?q={question}", {}, "/?q=a%2Fb"),
    ],
)
def test_other_urls(ask: Ask, service: Service, url: str, more: dict[str, str], target: str | None) -> None:
    ask("a/b", url=service.url + url, **more)
    seen = service.seen[0].target
    if target is None:
        assert unquote_to_bytes(seen).decode() == "/поиск?вопрос=a/b"
        assert seen.isascii()
    else:
        assert seen == target


def test_post_body_is_filled_and_other_braces_stay(ask: Ask, service: Service) -> None:
    body = {
        "messages": [{"role": "user", "content": "Q: {question}"}],
        "template": "{context} {0} {{question}",
        "top_k": 5,
        "on": True,
    }
    text = 'кавычки " и {context}\n'
    ask(text, method="POST", body=body, headers={"X-Tenant": "shop"})
    (seen,) = service.seen
    assert (seen.method, seen.target) == ("POST", "/llm/search-rag")
    assert json.loads(seen.body) == {
        "messages": [{"role": "user", "content": f"Q: {text}"}],
        "template": "{context} {0} {" + text,
        "top_k": 5,
        "on": True,
    }
    assert seen.headers["Content-Type"] == "application/json"
    assert seen.headers["X-Tenant"] == "shop"


def test_body_from_a_variable_is_json(ask: Ask, service: Service) -> None:
    ask("返金は?", method="POST", body='{"q": "{question}"}')
    assert json.loads(service.seen[0].body) == {"q": "返金は?"}


def test_body_and_named_parameter_both_carry_it(ask: Ask, service: Service) -> None:
    ask("a", method="POST", body={"q": "{question}"}, parameter="q")
    assert service.seen[0].query == [("q", "a")]
    assert json.loads(service.seen[0].body) == {"q": "a"}


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"url": None}, "--rag-url"),
        ({"parameter": None}, "nowhere"),
        ({"method": "POST", "body": {"q": "{TEXT}"}, "parameter": None}, r"\{question\}"),
        ({"url": "http://h/x?q={prompt}"}, r"\{prompt\}"),
        ({"url": "http://{question}.example/x"}, "host"),
    ],
)
def test_a_question_that_goes_nowhere_is_a_usage_error(values: dict[str, object], names: str) -> None:
    with pytest.raises(UsageError, match=names):
        target_of(RagSettings.model_validate({"url": "http://h:1", **values}))


def test_half_a_surrogate_pair_is_a_usage_error(ask: Ask, service: Service) -> None:
    with pytest.raises(UsageError, match="surrogate"):
        ask("bad \ud83d")
    assert not service.seen


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_round_trips_through_the_url(text: str) -> None:
    from urllib.parse import parse_qsl, urlsplit

    target = target_of(RagSettings(url="http://h:1/x?a=1"))
    url = target.url(text)
    assert url.isascii()
    assert parse_qsl(urlsplit(url).query, strict_parsing=True) == [("a", "1"), ("questions", text)]


def test_same_origin_redirects_are_followed_with_credentials(ask: Ask, service: Service) -> None:
    service.acts = [reply(status=307, Location="/new?questions=moved"), as_json({"answer": "here"})]
    sample = ask(auth_env="KEY", environ={"KEY": "abcd-secret"})
    assert sample.answer == "here"
    assert service.seen[1].target == "/new?questions=moved"
    assert service.seen[1].headers["Authorization"] == "Bearer abcd-secret"


def test_no_redirect_to_another_origin(ask: Ask, service: Service) -> None:
    other = service.url.replace("127.0.0.1", "localhost")
    service.acts = [reply(status=302, Location=f"{other}/login?back=1")]
    with pytest.raises(EndpointError, match=r"302.*another origin.*/login") as caught:
        ask(auth_env="KEY", environ={"KEY": "abcd-secret"})
    assert len(service.seen) == 1
    assert caught.value.code == "http_302"


def test_post_is_not_redirected_and_loops_end(ask: Ask, service: Service) -> None:
    service.acts = [reply(status=308, Location="/llm/search-rag?again")]
    with pytest.raises(EndpointError, match="POST is not redirected"):
        ask(method="POST", body={"q": "{question}"})
    with pytest.raises(EndpointError, match="more than 5 redirects"):
        ask()
    assert len(service.seen) == 1 + 6
