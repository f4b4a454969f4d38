"""What hypothesis draws: the same examples for everyone, or others, which anyone can replay.

The environment variable ``SFUMATO_TEST_SEED`` chooses others: any text. The gate takes its commit's hash, so
that every commit sees new examples.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys

import pytest
from hypothesis import HealthCheck, core, settings

__all__ = ["SEED", "Drawing"]

SEED = os.environ.get("SFUMATO_TEST_SEED")


class Drawing:
    """The plugin: sets hypothesis up, and says what replays a failure."""

    def pytest_configure(self) -> None:
        """Draw from the seed, and from nothing that depends on the machine, the clock or the other tests."""
        settings.register_profile(
            "sfumato",
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
            derandomize=SEED is None,
            database=None,
        )
        settings.load_profile("sfumato")
        if SEED is not None:
            seed = int.from_bytes(hashlib.sha256(SEED.encode()).digest()[:8])
            core.global_force_seed = seed  # type: ignore[assignment]  # as --hypothesis-seed does
        # Newer versions also draw constants of the modules that happen to be imported by then.
        providers = sys.modules.get("hypothesis.internal.conjecture.providers")
        if providers is not None and hasattr(providers, "_get_local_constants"):
            none = providers._local_constants
            vars(providers)["_get_local_constants"] = lambda: none

    def pytest_report_header(self) -> str:
        """Name the seed."""
        return f"hypothesis: {'the same examples for everyone' if SEED is None else _environment()}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how to draw again what a failed test drew."""
        failed = [report.nodeid for report in terminalreporter.stats.get("failed", ())]
        if SEED is None or not failed:
            return
        terminalreporter.section("to replay a failure")
        for node in failed[:20]:
            terminalreporter.line(f"{_environment()} python -m pytest -n 0 -m '' {shlex.quote(node)}")


def _environment() -> str:
    return f"SFUMATO_TEST_SEED={shlex.quote(SEED or '')}"
