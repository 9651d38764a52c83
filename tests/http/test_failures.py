"""Which replies of a service are worth another try."""

from __future__ import annotations

import json

import pytest

from pytest_ragbench.engine.calls import Transient
from pytest_ragbench.http.api import ApiClient, ApiReply
from pytest_ragbench.http.endpoints import Endpoint
from pytest_ragbench.model.errors import JudgeError

CLIENT = ApiClient(Endpoint("lab", "http://127.0.0.1:9/v1"), JudgeError, lambda close: None)


def failure(status: int, **error: str) -> Exception:
    return CLIENT.failure(ApiReply(status, {"Retry-After": "3"}, json.dumps({"error": error})))


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_asked_again(status: int) -> None:
    error = failure(status, message="busy")
    assert isinstance(error, Transient)
    assert (error.code, error.retry_after) == (f"http_{status}", 3.0)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 413, 422, 499])
def test_given_up_at_once(status: int) -> None:
    error = failure(status, message="wrong model")
    assert isinstance(error, JudgeError)
    assert error.code == f"http_{status}"
    assert "wrong model" in str(error)


@pytest.mark.parametrize(
    ("status", "code"), [(429, "insufficient_quota"), (500, "billing_not_active"), (402, "")]
)
def test_no_waiting_brings_money(status: int, code: str) -> None:
    error = failure(status, message="pay", code=code)
    assert isinstance(error, JudgeError)
    assert error.code == "insufficient_quota"
