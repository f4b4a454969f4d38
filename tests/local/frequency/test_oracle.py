"""What every frequency oracle keeps: one law in bulk and one by one, no bias, the variance it states."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato import local
from sfumato.local import Domain
from sfumato.local.frequency.oracle import Oracle, SupportOracle
from sfumato.privacy import Neighboring
from sfumato.privacy.nodes.shuffled import Shuffled
from tests.cases import cases
from tests.chance import accepts_only, rate
from tests.local.laws import SEVEN_SIGMA, covers, have_moments, within

ORACLES: list[Any] = [
    value
    for value in (getattr(face, name) for face in (local, local.baselines) for name in face.__all__)
    if isinstance(value, type) and issubclass(value, Oracle) and value is not Oracle
]
COUNTS = np.array([700, 200, 0, 60, 0, 40, 0])


def ids(kind: type) -> str:
    return kind.__name__


@pytest.mark.parametrize("kind", ORACLES, ids=ids)
def test_the_simulator_has_the_moments_that_are_stated(kind: Any) -> None:
    oracle = kind(epsilon=1.0, domain=Domain(range(7)))
    repeats, n, shares = 12_000, int(COUNTS.sum()), COUNTS / COUNTS.sum()
    generator = np.random.default_rng(1)
    drawn = np.array([oracle.shares(oracle.simulate_counts(COUNTS, generator), n) for _ in range(repeats)])
    stated = oracle.error_model.variance(shares) / n
    have_moments(drawn - shares, stated, tells=0.15)
    assert oracle.variance(n, 0.7) == pytest.approx(stated[0])
    # The mean of seven variances is known to 0.5 %: 6.2 times that is 3 %.
    square = float(((drawn - shares) ** 2).mean(axis=0).sum())
    whole = within(square, 0.03 / SEVEN_SIGMA * square)
    accepts_only(whole, stated.sum(), a_twentieth_less=0.95 * stated.sum(), more=1.05 * stated.sum())
    matrix = (drawn - shares).T @ (drawn - shares) / repeats
    expected = oracle.error_model.covariance(shares, np.arange(7)) / n
    scale = np.sqrt(np.outer(stated, stated) * 2 / repeats)
    accepts_only(
        within(matrix, scale), expected, a_sixth_more=7 / 6 * expected, a_sixth_less=5 / 6 * expected
    )


@pytest.mark.parametrize("kind", ORACLES, ids=ids)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_reports_one_by_one_have_the_law_of_the_simulator(kind: Any, epsilon: float) -> None:
    oracle = kind(epsilon=epsilon, domain=Domain(range(7)))
    n = 200
    values = np.repeat(np.arange(7), COUNTS * n)
    aggregator = oracle.aggregator()
    aggregator.add_batch(oracle.randomize_batch(values, 5))
    estimate = aggregator.estimate()
    assert aggregator.accepted == len(values)
    shares = COUNTS / COUNTS.sum()
    stated = np.sqrt(oracle.error_model.variance(shares) / len(values))
    accepts_only(within(estimate.frequencies, stated), shares, reversed=shares[::-1], even=np.full(7, 1 / 7))


@pytest.mark.parametrize("kind", ORACLES, ids=ids)
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_losses_are_close_to_epsilon_and_never_above(kind: Any, epsilon: float) -> None:
    oracle = kind(epsilon=epsilon, domain=Domain(range(7)))
    loss = oracle.privacy_loss
    assert loss.neighboring is Neighboring.REPLACE_ONE
    assert 0.999 * epsilon <= loss.epsilon(0.0) <= epsilon
    shuffled = Shuffled(loss, clients=100_000)
    assert 0 < shuffled.epsilon(1e-6) < epsilon / 4


@pytest.mark.parametrize("kind", ORACLES, ids=ids)
def test_supports_are_exact(kind: Any) -> None:
    oracle = kind(epsilon=1.0, domain=Domain(range(7)))
    if not isinstance(oracle, SupportOracle):
        pytest.skip("no support")
    support = oracle.support
    # Supports of reports of one value, counted.
    n = 60_000
    records = oracle.randomize_batch(np.full(n, 2), 3).records
    for place, count in enumerate(oracle.tally(records).tolist()):
        chance, wrong = (support.true, support.other)[:: 1 if place == 2 else -1]
        accepts_only(rate(count, n), chance, of_the_other=wrong, a_tenth_more=1.1 * float(chance))
    totals = np.array([oracle.tally(records[i : i + 1]) for i in range(6000)])
    for (one, other), exact in {(2, 5): support.with_true, (1, 5): support.both_others}.items():
        both = int((totals[:, one] * totals[:, other]).sum())
        accepts_only(rate(both, 6000), exact, more=float(exact) + 0.05)


@cases("kind", ORACLES, ids=ids)
def test_a_million_times_a_million_respondents_are_simulated_at_once(kind: Any) -> None:
    oracle = kind(epsilon=1.0, domain=Domain(range(7)))
    estimate = oracle.simulate(COUNTS * 10**9, 1)
    assert estimate.reports == 10**12
    assert np.allclose(estimate.frequencies, COUNTS / 1000, atol=1e-4)


@pytest.mark.parametrize("kind", ORACLES, ids=ids)
def test_intervals_of_many_reports_hold_as_often_as_they_say(kind: Any) -> None:
    oracle = kind(epsilon=1.0, domain=Domain(range(7)))
    generator, shares, repeats = np.random.default_rng(2), COUNTS / COUNTS.sum(), 1500
    held = np.zeros(7)
    for _ in range(repeats):
        lower, upper, _ = oracle.simulate(COUNTS * 1000, generator).interval(0.95)
        held += (lower <= shares) & (shares <= upper)
    covers(held, repeats, most=0.96)


@cases("kind", [local.OptimizedUnaryEncoding, local.SymmetricUnaryEncoding], ids=ids)
def test_unary_reports_cost_what_the_drawn_chances_let_through(kind: Any) -> None:
    for epsilon in (0.1, 1.0, 6.0, 12.0):
        oracle = kind(epsilon=epsilon, domain=Domain(range(4)))
        p, q = oracle.device.true.chance, oracle.device.other.chance
        exact = math.log(p / q * ((1 - q) / (1 - p)))
        assert oracle.privacy_loss.epsilon() == pytest.approx(exact, rel=1e-12)
        assert exact < epsilon * (1 - 1e-6)  # coins are of few bits, rounded down
