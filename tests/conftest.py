from __future__ import annotations

from hypothesis import HealthCheck, settings

# How long an example takes says more about the machine, and what else runs on it, than about the code.
settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tests")
