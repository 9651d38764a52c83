"""What a worker's guess fetched, handed to a test: to its own without a question, to another's once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pytest_ragbench.engine import Engine, Limits
from pytest_ragbench.engine.client import RemoteCoordinator
from pytest_ragbench.engine.lookahead import Receipt, for_own_test, looking_ahead, receipts
from pytest_ragbench.model.errors import JudgeError
from tests.engine.helpers import Asked, Service, fetched, unavailable

MakeTeam = Callable[..., list[Engine]]


async def guess(engine: Engine, asked: Asked, *, own: bool) -> list[Receipt]:
    looking_ahead.set(True)
    for_own_test.set(own)
    kept: list[Receipt] = []
    receipts.set(kept)
    await fetched(engine, asked)
    return kept


@pytest.fixture
def takes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What workers asked the controller: who is the first to take a reply."""
    asked: list[str] = []
    take = RemoteCoordinator.take

    async def noted(self: RemoteCoordinator, digest: str) -> bool:
        asked.append(digest)
        return await take(self, digest)

    monkeypatch.setattr(RemoteCoordinator, "take", noted)
    return asked


def test_ones_own_test_takes_it_without_asking(make_team: MakeTeam, takes: list[str]) -> None:
    (controller, one, other), service = make_team(2), Service()
    kept = one.wait(guess(one, service.ask("a"), own=True))
    got = other.wait(fetched(other, service.ask("a")))
    assert (got.cached, got.usage.calls) == (True, 0)  # it is another test's, which has not come yet
    assert one.take_over(kept)
    for each in (one, other):
        each.settle()
    assert (takes, service.calls) == ([], 1)
    assert not one.take_over(kept)
    sums = controller.usage()["judge"]
    assert (sums["calls"], sums["stored"]) == (1, 1)


def test_a_test_that_waits_for_the_guess_takes_it_without_asking(
    make_team: MakeTeam, takes: list[str]
) -> None:
    (_, one, _), service = make_team(2), Service()

    async def scene() -> Any:
        service.open.clear()
        ahead = asyncio.ensure_future(guess(one, service.ask("a"), own=True))
        while not service.calls:
            await asyncio.sleep(0.001)
        test = asyncio.ensure_future(fetched(one, service.ask("a")))
        await asyncio.sleep(0)
        service.open.set()
        await ahead
        return await test

    got = one.wait(scene(), timeout=20)
    assert (got.cached, got.usage.calls) == (False, 1)
    assert (takes, service.calls) == ([], 1)


@pytest.mark.parametrize("own", [True, False], ids=["its own", "anyone's"])
def test_a_test_that_comes_before_the_guess_has_claimed_pays_for_it(make_team: MakeTeam, own: bool) -> None:
    (controller, one, _), service = make_team(2), Service()

    async def scene() -> Any:
        # The guess launches its request; the test is next in the loop, before the first step of that.
        ahead = asyncio.ensure_future(guess(one, service.ask("a"), own=own))
        test = asyncio.ensure_future(fetched(one, service.ask("a")))
        await ahead
        return await test

    got = one.wait(scene(), timeout=20)
    one.settle()
    assert (got.cached, got.usage.calls, service.calls) == (False, 1, 1)
    sums = controller.usage()["judge"]
    assert (sums["calls"], sums["stored"]) == (1, 0)


def test_of_two_workers_tests_the_first_takes_what_was_fetched_for_either(
    make_team: MakeTeam, takes: list[str]
) -> None:
    (_, one, other), service = make_team(2), Service()
    kept = one.wait(guess(one, service.ask("a"), own=False))
    got = other.wait(fetched(other, service.ask("a")))
    assert (got.cached, got.usage.calls) == (False, 1)
    assert not one.take_over(kept)
    assert one.wait(fetched(one, service.ask("a"))).cached
    assert len(takes) == 1
    assert service.calls == 1


def test_a_guess_that_failed_is_its_tests_error_once(make_team: MakeTeam) -> None:
    (_, one, _), service = make_team(2), Service([unavailable(400)] * 4)
    one.set_limits("p", Limits(attempts=1))
    with pytest.raises(JudgeError):
        one.wait(guess(one, service.ask("a"), own=True))
    with pytest.raises(JudgeError):
        one.wait(fetched(one, service.ask("a")))
    assert service.calls == 1
    service.troubles.clear()
    again = one.wait(fetched(one, service.ask("a")))
    assert (again.cached, again.usage.calls, service.calls) == (False, 1, 2)


def test_the_reply_that_a_guess_could_not_use_is_shown_by_another_workers_test(make_team: MakeTeam) -> None:
    unusable = JudgeError("grade: missing", code="not_json", raw='{"verdict": "良い"}')
    (_, one, other), service = make_team(2), Service([unusable])
    with pytest.raises(JudgeError):
        one.wait(guess(one, service.ask("a"), own=False))
    with pytest.raises(JudgeError) as met:
        other.wait(fetched(other, service.ask("a")))
    assert (met.value.code, met.value.raw, service.calls) == ("not_json", unusable.raw, 1)


def test_what_another_worker_paid_for_is_put_down_to_the_test_that_comes_for_it(make_team: MakeTeam) -> None:
    """Though this worker's guess read it, too: only the controller can say whether its test is the first."""
    (_, one, other), service = make_team(2), Service()
    one.wait(guess(one, service.ask("a"), own=False))
    kept = other.wait(guess(other, service.ask("a"), own=True))
    assert not other.take_over(kept)
    got = other.wait(fetched(other, service.ask("a")))
    assert (got.cached, got.usage.calls, service.calls) == (False, 1, 1)
