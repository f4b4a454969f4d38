"""A/B tests: level and power by the exact distribution of the noisy counts, intervals, plans."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest

from sfumato.adaptive import ABTest
from sfumato.adaptive.testing import ab_test
from sfumato.adaptive.testing.count_distributions import ROUNDING
from sfumato.errors import ParameterError
from sfumato.mechanisms import Laplace
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution
from sfumato.privacy import Neighboring

SMALL = ABTest(records=7, epsilon=4.0, false_positive_rate=0.1)
SEEN = range(-2, 10)


def released(test: ABTest, first: int, second: int) -> Any:
    """Return a release of these noisy counts."""
    flags = np.zeros(test.records)
    made = test.release(flags, flags, rng=1)
    object.__setattr__(made, "steps", np.array([first, second]))
    return made


def p_values(test: ABTest) -> dict[tuple[int, int], float]:
    """Return the p-value of all noisy counts that are not very rare."""
    found = {(a, b): test.result(released(test, a, b)).p_value for a in SEEN for b in SEEN if a >= b}
    return found | {(b, a): value for (a, b), value in found.items()}


def noisy_count(share: float) -> dict[int, float]:
    """Return the probabilities of a noisy count of seven, by sums over counts and noises."""
    noise = DiscreteLaplaceDistribution(0.25)
    found = dict.fromkeys(SEEN, 0.0)
    for count in range(8):
        mass = math.comb(7, count) * share**count * (1 - share) ** (7 - count)
        for seen in SEEN:
            found[seen] += mass * noise.pmf(seen - count).upper
    return found


def test_level_and_power_by_enumeration() -> None:
    values = p_values(SMALL)

    def reached(first: float, second: float, rate: float) -> float:
        one, other = noisy_count(first), noisy_count(second)
        return sum(one[a] * other[b] for (a, b), p in values.items() if p <= rate)

    sizes = {rate: max(reached(p, p, rate) for p in np.linspace(0, 1, 21)) for rate in (0.1, 0.2, 0.4)}
    assert all(size <= rate for rate, size in sizes.items())
    assert all(size >= rate / 3 for rate, size in sizes.items())
    for first, second in ((0.1, 0.9), (0.95, 0.2), (0.5, 0.1)):
        exact, bound = reached(first, second, 0.1), SMALL.power(first=first, second=second)
        assert exact - 1e-4 <= bound <= exact + 2e-5  # what is not among the counts that are seen


def test_a_plan_is_near_the_least_number_of_records_with_the_power() -> None:
    """Against the power with a critical value for each total by itself, which is exact."""
    first, second, epsilon = 0.02, 0.3, 3.0
    plan = ABTest.planned(first=first, second=second, epsilon=epsilon, power=0.9)

    def exact(records: int) -> float:
        return ABTest(records=records, epsilon=epsilon)._power(first, second, 10**6)

    assert exact(plan.records) >= 0.9
    fewer = [ABTest(records=plan.records - less, epsilon=epsilon) for less in range(1, 9)]
    assert max(test.power(first=first, second=second) for test in fewer) < 0.9
    assert exact(plan.records - 1 - plan.records // 20) < 0.9
    assert plan.power(first=first, second=second) == pytest.approx(exact(plan.records), abs=1e-3)
    # One block of totals, as a plan was before, needs more: a rare property's variance is far from its worst.
    coarse = ABTest(records=plan.records, epsilon=epsilon)._power(first, second, 1)
    assert coarse < 0.9 < exact(plan.records)
    assert ABTest.planned(first=0.0, second=1.0, epsilon=8.0).records < 10


def test_power_is_symmetric_and_rises_with_the_difference() -> None:
    test = ABTest(records=400, epsilon=0.5)
    powers = [test.power(first=0.3, second=second) for second in (0.3, 0.35, 0.4, 0.5, 0.7)]
    assert powers == sorted(powers)
    assert powers[0] < 0.05
    assert powers[-1] > 0.99
    assert test.power(first=0.5, second=0.3) == pytest.approx(powers[3], abs=1e-9)
    assert test.power(first=0.7, second=0.5) == pytest.approx(powers[3], abs=1e-6)


def test_a_release_costs_epsilon_and_counts_what_is_there() -> None:
    test = ABTest(records=5, epsilon=40.0)
    assert test.privacy_loss.neighboring is Neighboring.REPLACE_ONE
    assert test.privacy_loss.epsilon(0.0) == pytest.approx(40.0)
    release = test.release([True, False, True, False, False], np.array([0.0, np.nan, 2.0, -1.0, 1.0]))
    assert np.asarray(release.steps).tolist() == [2, 3]
    assert release.loss == test.privacy_loss
    assert not release.simulated
    assert test.result(release).statistic == pytest.approx(-0.2)
    assert test.result(released(test, 3, 3)).p_value == 1.0


def test_intervals_hold_the_difference_and_shrink() -> None:
    wide = [ABTest(records=n, epsilon=1.0) for n in (100, 1000, 10_000)]
    widths = []
    for test in wide:
        n = test.records
        lower, upper, _ = test.interval(released(test, n // 2, 3 * n // 10), 0.95)
        assert lower < 0.2 < upper
        widths.append(upper - lower)
    assert widths[0] > 2 * widths[1] > 4 * widths[2]
    error = math.sqrt((0.25 + 0.21) / 10_000)
    assert 3.92 * error < widths[2] < 7 * error
    test = ABTest(records=3, epsilon=0.1)
    assert test.interval(released(test, 3, 0))[:2] == (-1.0, 1.0)


def test_bad_parameters_and_releases_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    test: Any = ABTest(records=5, epsilon=1.0)
    make: Any = ABTest
    flags = np.zeros(5)
    other = ABTest(records=5, epsilon=2.0).release(flags, flags, rng=1)
    three = Laplace.calibrated(sensitivity=1, epsilon=1.0, neighboring=Neighboring.REPLACE_ONE)
    refused: list[tuple[Any, str]] = [
        (lambda: make(records=0, epsilon=1.0), "records"),
        (lambda: make(records=1 << 29, epsilon=1.0), "at most 2"),
        (lambda: make(records=5, epsilon=0.0), "epsilon"),
        (lambda: make(records=5, epsilon=1e-5), "from 0.0001 to 50"),
        (lambda: make(records=5, epsilon=1.0, false_positive_rate=0.0), "false_positive_rate"),
        (lambda: make(records=5, epsilon=1.0, false_positive_rate=1e-7), "at least 1e-6"),
        (lambda: test.release(flags[:4], flags), "first must have 5 records"),
        (lambda: test.release(flags, flags[:, None]), "second must be one number"),
        (lambda: test.result(other), "another privacy loss"),
        (lambda: test.result(three.release(np.zeros(3, dtype=int), rng=1)), "be of two noisy counts"),
        (lambda: test.interval(7), "be of two noisy counts"),
        (lambda: test.power(first=1.5, second=0.1), "first"),
        (lambda: make.planned(first=0.3, second=0.3, epsilon=1.0), "be another proportion"),
        (lambda: make.planned(first=0.3, second=0.4, epsilon=1.0, power=1.0), "power"),
    ]
    for call, message in refused:
        with pytest.raises(ParameterError, match=message):
            call()
    monkeypatch.setattr(ab_test, "_LARGEST", 64)
    with pytest.raises(ParameterError, match="second must be found with 2"):
        make.planned(first=0.5, second=0.51, epsilon=1.0)
    assert test.result(released(test, 2, 3)).p_value == test.result(released(test, 3, 2)).p_value


def test_the_tail_of_a_small_variance_has_all_its_digits() -> None:
    records, variance = 1 << 28, 6e-11
    with mpmath.workdps(40):
        share = (1 - mpmath.sqrt(1 - 4 * mpmath.mpf(variance))) / 2
        masses = [mpmath.binomial(records, k) * share**k * (1 - share) ** (records - k) for k in range(12)]
        above = mpmath.fsum(masses[i] * masses[j] for i in range(12) for j in range(i))
    found = ABTest(records=records, epsilon=50.0)._difference(variance).at_least(1)
    assert abs(found - float(above)) < ROUNDING
