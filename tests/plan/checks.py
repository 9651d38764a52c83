# mypy: ignore-errors
"""Helper functions of a project, as its tests import them."""

import pytest_ragbench as rb


def check(sample, least=">=0.8"):
    rb.assert_faithfulness(sample, least)


def check_twice(first, *, second):
    check(first)
    check(sample=second, least=">=0.5")


def check_with_way_out(sample):
    if not sample.answer:
        return
    check(sample)


def check_again(sample):
    check_again(sample)
    check(sample)


async def acheck(it):
    await rb.aassert_metric("faithfulness", it, ">=0.8")
