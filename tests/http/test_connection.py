from __future__ import annotations

import pytest

from pytest_ragbench.http.connection import proxy_for


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://rag.example.com/x", "http://proxy:3128"),
        ("https://rag.example.com/x", "http://secure:3128"),
        ("http://inside.corp/x", None),
        ("http://localhost:8080/x", None),
        ("http://127.0.0.1:8080/x", None),
        ("http://[::1]:8080/x", None),
    ],
)
def test_the_environments_proxy_but_never_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, url: str, proxy: str | None
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("https_proxy", "secure:3128")
    monkeypatch.setenv("no_proxy", ".corp")
    assert proxy_for(url) == proxy
