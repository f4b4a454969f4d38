"""What each test costs, in CPU seconds of one and the same machine; in the gate, a dear one fails the run.

How fast a machine is follows from a loop that every process times before and after its tests: a cost is the
CPU time of a test and of the processes that it waited for, over that of the loop, times what the loop takes
on the machine that `REFERENCE` was read on. Setting up fixtures, importing among it, is left out.

With ``SFUMATO_TEST_COSTS=list`` the dear tests of the default tier are listed at the end, and what all
doctests cost together; with ``check``, a test that costs more than twice `LIMIT` fails the run, and so do
doctests that cost more than `DOCTESTS` together."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from typing import Any

import pytest

__all__ = ["DOCTESTS", "LIMIT", "Cost"]

LIMIT = 2.0
"""CPU seconds that a test of the default tier should take at most."""

DOCTESTS = 60.0
"""CPU seconds that all doctests may take together."""

REFERENCE = 0.1
"""CPU seconds of the loop on the machine that costs are told for."""

_KEY = "cpu_seconds"
_DOCTEST = "doctest_cpu_seconds"
_LOOP = "loop_seconds"


def loop_seconds() -> float:
    """Return the least CPU time of three runs of a fixed loop."""
    taken = []
    for _ in range(3):
        start, value = time.process_time(), 1
        for _ in range(1_000_000):
            value = value * 48271 % 2147483647
        taken.append(time.process_time() - start)
    return min(taken)


def cpu_seconds() -> float:
    """Return the CPU time of this process and of the children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


class Cost:
    """The plugin: measures in the processes that run tests, and tells in the one that was started."""

    def __init__(self, wish: str) -> None:
        self.wish = wish
        self.costs: dict[str, float] = {}
        self.doctests = 0.0
        self.loop = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Measure a test's own part."""
        self.loop = self.loop or loop_seconds()
        start = cpu_seconds()
        try:
            return (yield)
        finally:
            taken = cpu_seconds() - start
            if taken > LIMIT / 4:  # a slower moment of the machine shows in the loop, too
                self.loop = max(self.loop, loop_seconds())
            if item.get_closest_marker("exhaustive") is None:
                cost = taken * REFERENCE / self.loop
                item.user_properties.append((_KEY, cost))
                if isinstance(item, pytest.DoctestItem):
                    item.user_properties.append((_DOCTEST, cost))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a test cost, from whichever process ran it."""
        if report.when == "teardown":
            for key, cost in report.user_properties:
                if key == _KEY:
                    self.costs[report.nodeid] = float(str(cost))
                elif key == _DOCTEST:
                    self.doctests += float(str(cost))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the dear tests, the dearest first, and what fails the run."""
        dear = self.dear(LIMIT)
        terminalreporter.section(f"tests that cost more than {LIMIT:g} CPU seconds: {len(dear)}")
        for node, cost in dear.items():
            terminalreporter.line(f"{cost:7.1f}  {node}")
        terminalreporter.line(f"{self.doctests:7.1f}  all doctests, of at most {DOCTESTS:g}")
        for failure in self.failures():
            terminalreporter.line(failure)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run for a test above twice the limit, and for doctests above theirs."""
        if self.failures() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def failures(self) -> list[str]:
        """Return a line, as pytest's own for a test that failed, for each thing that is too dear."""
        if self.wish != "check":
            return []
        most = 2 * LIMIT
        lines = [
            f"FAILED {node} - costs {cost:.1f} CPU seconds, of at most {most:g}"
            for node, cost in self.dear(most).items()
        ]
        if self.doctests > DOCTESTS:
            lines.append(f"FAILED doctests - cost {self.doctests:.1f} CPU seconds, of at most {DOCTESTS:g}")
        return lines

    def dear(self, limit: float) -> dict[str, float]:
        """Return the tests that cost more, the dearest first."""
        found = sorted(self.costs.items(), key=lambda pair: -pair[1])
        return {node: cost for node, cost in found if cost > limit}
