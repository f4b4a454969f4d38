"""The tiers, the examples that hypothesis draws, and what is collected where an extra is not installed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Set
from pathlib import Path

import pytest

from tests.cost import Cost
from tests.docstrings import Docstrings
from tests.drawing import Drawing
from tests.forks import _end_servers, command_forks, runner_forks
from tests.postgres import postgres, postgres_url
from tests.run_time import RunTime
from tests.spark import spark, spark_cluster
from tests.tiers import Tiers

__all__ = [  # fixtures for all tests
    "_end_servers",
    "command_forks",
    "postgres",
    "postgres_url",
    "runner_forks",
    "spark",
    "spark_cluster",
]

os.environ.setdefault("OMP_NUM_THREADS", "1")
"""Tests run side by side: torch's threads would wait for one another."""

PLUGINS = (Tiers(), RunTime(), Drawing(), Docstrings())

NEED_TORCH = {
    "adapters",
    "checks",
    "clipping",
    "engine",
    "federated",
    "noise",
    "opacus",
    "recipes",
    "test_golden.py",
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
    """Put the plugins in for all paths: this file's own hooks would see none but the tests'."""
    for plugin in PLUGINS:
        config.pluginmanager.register(plugin)
    if wish := os.environ.get("SFUMATO_TEST_COSTS"):
        config.pluginmanager.register(Cost(wish))
    needs = {part: {"torch", *NEED_MORE.get(part, ())} for part in NEED_TORCH}
    absent = {name for names in needs.values() for name in names if importlib.util.find_spec(name) is None}
    parts = {part for part, names in needs.items() if names & absent}
    if parts:
        config.pluginmanager.register(_Without(parts), "without torch")
