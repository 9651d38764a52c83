"""What is said first where no usable reply came."""

from __future__ import annotations

import pytest

from pytest_ragbench.http.outages import no_reply, refusal
from pytest_ragbench.model.errors import cause_of, with_details

URL = "http://rag.example:8080"


@pytest.mark.parametrize(
    ("code", "reason", "said"),
    [
        ("connection", "ClientConnectorError: Cannot connect to host x:1 ssl:default [Connect call failed ('::1', 1)]",
         f"no connection to {URL} (refused): is the service running? try ragbench doctor"),
        ("connection", "ClientConnectorDNSError: Cannot connect to host x:80 [Name or service not known]",
         f"no connection to {URL} (no such host): is the address right? try ragbench doctor"),
        ("connection", "ClientConnectorError: [Errno 113] Connect call failed: No route to host",
         f"no connection to {URL} (unreachable): is the service running? try ragbench doctor"),
        ("connection", "ServerDisconnectedError: Server disconnected",
         f"no connection to {URL} (closed before it replied): is the service running? try ragbench doctor"),
        ("connection", "ClientProxyConnectionError: Cannot connect to host proxy:3128",
         f"no connection to {URL} (its proxy): are HTTP_PROXY, HTTPS_PROXY and NO_PROXY right? try ragbench doctor"),
        ("connection", "OSError: something else",
         f"no connection to {URL}: is the service running? try ragbench doctor"),
        ("timeout", "", f"no reply from {URL} within 5 s: is the service overloaded, or its timeout too short? "
         "try ragbench doctor"),
        ("tls", "SSLCertVerificationError: (1, '[SSL: X] "
         "certificate verify failed: self-signed certificate (_ssl.c:1)')",
         f"no secure connection to {URL} (certificate verify failed: self-signed certificate): is its certificate "
         "right? try ragbench doctor"),
        ("tls", "ClientConnectorSSLError: [SSL: WRONG_VERSION_NUMBER] wrong version number",
         f"no secure connection to {URL} (it does not speak TLS, is it http://?): is its certificate right? "
         "try ragbench doctor"),
        ("not_http", "", f"no HTTP from {URL}: does another kind of server listen there? try ragbench doctor"),
    ],
)  # fmt: skip
def test_the_cause_and_the_cure(code: str, reason: str, said: str) -> None:
    told = no_reply(code, reason, URL, "the service", seconds=5)
    assert told == said
    # However often it was tried, and whatever the library said: one cause.
    assert cause_of(with_details(told, f"GET {URL}: {reason} (after 2 attempts in 0.1 s)")) == said


def test_a_refused_key_names_its_setting() -> None:
    assert refusal(401, "auth_env") == " (the key is refused: is the right variable named in auth_env?)"
    assert [refusal(status, "auth_env") for status in (400, 429, 500)] == ["", "", ""]
