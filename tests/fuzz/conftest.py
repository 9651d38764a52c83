from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Longer: FUZZ_EXAMPLES=20000 pytest tests/fuzz
settings.register_profile(
    "fuzz",
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
FUZZ = settings.get_profile("fuzz")


def says_why(error: Exception, name: str = "") -> None:
    """An error of ours has words (and names the file), and a code where it stands for a score."""
    assert str(error).strip()
    assert name in str(error)
    assert getattr(error, "code", "x")
