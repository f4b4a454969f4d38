"""Hypothesis without clocks and the same examples each time in CI; without torch, no tests that need it."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Set
from pathlib import Path

import pytest
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

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tests run side by side: torch's threads would wait for one another."""

NEED_TORCH = {
    "adapters",
    "checks",
    "clipping",
    "engine",
    "federated",
    "noise",
    "parity",
    "recipes",
    "training",
}
"""The parts of the room ``learning`` that load torch; the mirror of each in the tests has the same name."""


NEED_MORE = {"adapters": ("lightning", "peft", "transformers")}
"""What else parts need."""


class _Without:
    """Leaves out, doctests too, what cannot be imported: the tests install torch on one CPython only."""

    def __init__(self, parts: Set[str]) -> None:
        self.parts = parts

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        room, part = collection_path.parent.name, collection_path.name
        return True if room == "learning" and part in self.parts else None


def pytest_configure(config: pytest.Config) -> None:
    """Put the plugin in for all paths: this file's own hooks would see none but the tests'."""
    needs = {part: {"torch", *NEED_MORE.get(part, ())} for part in NEED_TORCH}
    absent = {name for names in needs.values() for name in names if importlib.util.find_spec(name) is None}
    parts = {part for part, names in needs.items() if names & absent}
    if parts:
        config.pluginmanager.register(_Without(parts), "without torch")
