"""Hypothesis without wall-clock limits, and the same examples every time where CI runs."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

from tests.postgres import postgres, postgres_url
from tests.spark import spark_cluster

__all__ = ["postgres", "postgres_url", "spark_cluster"]  # fixtures for all tests

settings.register_profile(
    "sfumato",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("sfumato")
