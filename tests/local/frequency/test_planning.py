"""The planner's figures are the oracles' own, and its order follows from public parameters alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sfumato import local
from sfumato.errors import ParameterError
from sfumato.local.frequency import planning
from tests.cases import cases


def test_variances_and_bytes_are_the_oracles_own() -> None:
    choice = local.choose(local.Frequencies(40, frequency=0.2), epsilon=0.5, n=5000)
    assert not choice.ruled_out
    for plan in choice.plans:
        oracle = getattr(local, plan.name)(epsilon=0.5, domain=local.Domain(range(40)))
        assert plan.variance == oracle.variance(5000, 0.2)
        assert plan.bytes == oracle.device.width == len(oracle.randomize(3, rng=1))
        assert plan.stddev**2 == pytest.approx(plan.variance)
        assert min(plan.client_seconds, plan.server_seconds) >= 0


@pytest.mark.parametrize(
    ("epsilon", "size", "best"),
    [
        (1.0, 2, "RandomizedResponse"),
        (4.0, 16, "RandomizedResponse"),
        (1.0, 1024, "ProjectiveGeometryResponse"),
        (0.5, 5000, "ProjectiveGeometryResponse"),
    ],
)
def test_the_best_is_nearly_as_exact_as_any_and_short(epsilon: float, size: int, best: str) -> None:
    choice = local.choose(local.Frequencies(local.Domain(range(size))), epsilon=epsilon, n=10_000)
    assert choice.best.name == best
    least = min(plan.variance for plan in choice.plans)
    near = [plan for plan in choice.plans if plan.variance <= 1.05 * least]
    assert choice.best in near
    assert choice.best.bytes == min(plan.bytes for plan in near)
    rest = [plan.variance for plan in choice.plans if plan not in near]
    assert rest == sorted(rest)
    oracle = choice.oracle(local.Domain(range(size)))
    assert (type(oracle).__name__, oracle.epsilon) == (best, epsilon)


def test_limits_rule_out_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    choice = local.choose(local.Frequencies(300), epsilon=1.0, n=1000, max_bytes=12)
    assert all(plan.bytes <= 12 for plan in choice.plans)
    assert choice.ruled_out["OptimizedUnaryEncoding"] == "42 bytes a report"
    assert "42 bytes a report" in str(choice)
    assert choice.best.name in str(choice)
    # Which oracle takes longer than a limit is a matter of the machine.
    seconds = {"OptimalLocalHashing": 200.0}
    monkeypatch.setattr(
        planning, "trial_seconds", lambda oracle, *_: (1.0, seconds.get(type(oracle).__name__, 30.0))
    )
    slow = local.choose(local.Frequencies(300), epsilon=1.0, n=10**9, max_bytes=12, max_seconds=40)
    assert slow.ruled_out["OptimalLocalHashing"] == "200 seconds of the server"
    assert slow.plans
    assert {plan.server_seconds for plan in slow.plans} == {30.0}


@cases(
    ("given", "rule"),
    [
        ({"epsilon": 0.0}, "epsilon must be positive"),
        ({"domain": 1}, "domain must be an integer of at least 2"),
        ({"n": 0}, "n must be an integer of at least 1"),
        ({"max_bytes": 0}, "max_bytes must be an integer of at least 1"),
        ({"max_seconds": -1.0}, "max_seconds must be positive"),
        ({"frequency": -0.1}, "frequency must be from 0 to 1"),
        ({"domain": 2**40}, "domain must have at most 16777216 categories, to be tried, got"),
        ({"frequency": 1.5}, "frequency must be from 0 to 1"),
        ({"domain": 10**6, "max_bytes": 1}, "max_bytes and max_seconds must leave some oracle, but all are"),
    ],
)
def test_wrong_parameters_are_named(given: dict[str, float], rule: str) -> None:
    whole: dict[str, Any] = {"epsilon": 1.0, "n": 10, "domain": 10} | given
    asked = {name: whole.pop(name) for name in ("domain", "frequency") if name in whole}
    with pytest.raises(ParameterError, match=rule):
        local.choose(local.Frequencies(**asked), **whole)


def test_what_is_no_question_is_refused_with_the_questions_there_are() -> None:
    wrong: Any = 1024
    with pytest.raises(ParameterError, match=r"question must .*, got a value of type int; pass local.Freq"):
        local.choose(wrong, epsilon=1.0, n=10)
    marginals = local.Marginals([local.Domain(range(2))] * 2)
    for question in (marginals, local.FrequentStrings(local.Strings(length=4))):
        with pytest.raises(ParameterError, match="max_seconds must be left out for this question"):
            local.choose(question, epsilon=1.0, n=10, max_seconds=1.0)


def test_a_cost_is_carried_on_from_the_largest_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only the work moves: 3 ms, and 1 ms a client."""
    clock = [0.0]
    sizes = []

    def prepared(size: int) -> Callable[[], None]:
        def run() -> None:
            clock[0] += 0.003 + 0.001 * size

        sizes.append(size)
        return run

    monkeypatch.setattr("time.process_time", lambda: clock[0])
    assert planning._seconds_of(prepared, 20_000, 10**6) == pytest.approx(1000.003)
    assert sizes == [1, 5, 40, 320]
    assert planning._seconds_of(prepared, 30, 100) == pytest.approx(0.103)
    assert sizes[4:] == [1, 5, 30]
