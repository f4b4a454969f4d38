"""What tests cost is reported, and fails a run where it is checked."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import cases
from tests.cost import DOCTESTS, LIMIT, Cost


def exit_code(cost: Cost) -> int:
    """The exit code of a run whose tests have passed."""
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    cost.pytest_sessionfinish(session)
    return int(session.exitstatus)


def report(node: str, **properties: float) -> Any:
    """What comes of one test in the process that runs it."""
    return SimpleNamespace(nodeid=node, when="teardown", user_properties=[*properties.items()])


@cases(
    "wish, costs, code",
    [
        ("check", [LIMIT, 2 * LIMIT], 0),
        ("check", [2 * LIMIT + 0.1], 1),
        ("list", [2 * LIMIT + 0.1], 0),
    ],
)
def test_a_dear_test_fails_a_run_that_checks(wish: str, costs: list[float], code: int) -> None:
    cost = Cost(wish)
    for number, taken in enumerate(costs):
        cost.pytest_runtest_logreport(report(f"test_{number}", cpu_seconds=taken))
    assert exit_code(cost) == code
    assert [*cost.dear(LIMIT).values()] == [taken for taken in costs if taken > LIMIT]


@cases("wish, number, code", [("check", 60, 0), ("check", 61, 1), ("list", 61, 0)])
def test_doctests_that_cost_too_much_together_fail_a_run_that_checks(
    wish: str, number: int, code: int
) -> None:
    cost, each = Cost(wish), DOCTESTS / 60
    for at in range(number):
        cost.pytest_runtest_logreport(report(f"doctest_{at}", cpu_seconds=each, doctest_cpu_seconds=each))
    assert exit_code(cost) == code
    assert not cost.dear(LIMIT)
    assert cost.doctests == pytest.approx(number * each)
