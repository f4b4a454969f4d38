"""Odometers against adversaries that choose each charge, and when to stop, from the answers and readings."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import NeighboringMismatch, ParameterError, UnsupportedView
from sfumato.ledger.budget.odometer import Odometer
from sfumato.privacy.accountant.moments import approximate_rdp
from sfumato.privacy.conversion import zcdp_epsilon
from sfumato.privacy.leaves.declared import ZCDP, ApproximateDP, PureDP
from sfumato.privacy.leaves.gaussian import Gaussian
from sfumato.privacy.leaves.laplace import Laplace
from sfumato.privacy.loss import PrivacyLoss
from sfumato.privacy.neighboring import Neighboring
from sfumato.privacy.nodes.poisson import PoissonSubsampled
from tests.chance import accepts_only, at_most

MENU = (ZCDP(0.1), ApproximateDP(0.4, 0.01), PureDP(0.8))
"""What is charged; the mechanism behind the first is randomized response, whose rho it bounds."""
ANSWERS = (0.447, 0.4, 0.8)


def read(odometer: Odometer) -> tuple[float, float]:
    spent = odometer.spent()
    assert spent.epsilon is not None
    assert spent.delta is not None
    return spent.epsilon, spent.delta


def odometer_of(*charges: tuple[PrivacyLoss, int], delta: float = 1e-6) -> Odometer:
    odometer = Odometer(delta=delta)
    for loss, count in charges:
        for _ in range(count):
            odometer.add(loss)
    return odometer


@cache
def reading(counts: tuple[int, ...], delta: float) -> tuple[float, float]:
    return read(odometer_of(*zip(MENU, counts, strict=True), delta=delta))


def worst(rounds: int, delta: float, epsilon: float, mass: float) -> float:
    """Return the greatest P(S) - e^epsilon Q(S) over all adversaries, S ending with a reading that small."""

    @cache
    def value(counts: tuple[int, ...], loss: float, both: bool) -> float:
        # The transcript's probabilities are factored out: Q is 1 and P is e^loss, or Q is 0 and P is 1.
        said, more = reading(counts, delta)
        best = 0.0
        if said <= epsilon and more <= delta + mass + 1e-12:
            best = max(0.0, math.exp(loss) - math.exp(epsilon)) if both else 1.0
        if sum(counts) == rounds:
            return best
        for item, size in enumerate(ANSWERS):
            after = tuple(n + (i == item) for i, n in enumerate(counts))
            told = MENU[item].split()[0]
            if not both:
                best = max(best, value(after, 0.0, False))
                continue
            share = (1 - told) / (1 + math.exp(size))
            # Probabilities under Q, which never says the telling answer that P gives.
            gain = share * math.exp(size) * value(after, round(loss - size, 9), True)
            gain += share * value(after, round(loss + size, 9), True)
            gain += told * math.exp(loss) * value(after, 0.0, False)
            best = max(best, gain)
        return best

    return value((0,) * len(MENU), 0.0, True)


@pytest.mark.parametrize("delta", [0.02, 0.2])
def test_no_adversary_who_stops_at_will_passes_a_reading(delta: float) -> None:
    assert PureDP(ANSWERS[0]).zcdp().rho <= 0.1
    for counts in ((2, 0, 0), (4, 1, 0), (3, 3, 1), (0, 0, 6)):
        epsilon, total = reading(counts, delta)
        assert worst(8, delta, epsilon, total - delta) <= total


def readings_of(odometer: Odometer, count: int, mu: float) -> NDArray[np.float64]:
    """Return the readings after each of so many answers with Gaussian noise."""
    readings = []
    for _ in range(count):
        odometer.add(Gaussian(1 / mu))
        readings.append(read(odometer)[0])
    return np.array(readings)


def test_readings_hold_at_all_times_at_once() -> None:
    """The loss of Gaussian noise, a random walk, is ever above a reading with a chance of at most delta."""
    delta, mu, rng = 0.05, 0.1, np.random.default_rng(1)
    walks = np.cumsum(rng.normal(mu * mu / 2, mu, (4000, 1000)), axis=1)

    def check(readings: NDArray[np.float64]) -> None:
        at_most(int((walks > readings).any(axis=1).sum()), len(walks))(delta)

    steps = walks.shape[1]
    # What holds at one time that was fixed beforehand does not hold at all times.
    fixed = np.array([zcdp_epsilon(n * mu * mu / 2, delta) for n in range(1, steps + 1)])
    many = readings_of(Odometer(delta=delta), steps, mu)
    accepts_only(check, many, fixed_time=fixed, lower=0.7 * many)
    # One order makes a straight line of readings, which a walk passes with nearly all of delta.
    line = readings_of(Odometer(delta=delta, orders=(3.0,)), steps, mu)
    accepts_only(check, line, lower=0.85 * line)


def test_a_reading_is_above_what_was_spent_and_not_far() -> None:
    jobs: list[tuple[PrivacyLoss, int]] = [
        (Gaussian(20.0), 100),
        (PoissonSubsampled(Gaussian(1.0), 0.01), 1000),
        (Laplace(10.0), 300),
        (Gaussian(0.5), 1),
    ]
    for loss, count in jobs:
        epsilon, delta = read(odometer_of((loss, count)))
        truth = (loss * count).epsilon_interval(1e-6)
        assert truth.lower <= epsilon <= 2 * truth.upper
        assert delta == pytest.approx(1e-6)


def test_pure_charges_are_never_read_above_their_sum() -> None:
    odometer = odometer_of((Laplace(4.0), 3))
    assert read(odometer)[0] == 0.75
    odometer.add(ZCDP(0.001))
    assert read(odometer)[0] > 0.75


def test_masses_add_to_delta_and_too_much_of_them_proves_nothing() -> None:
    odometer = odometer_of((ApproximateDP(0.1, 1e-3), 5))
    assert read(odometer)[1] == pytest.approx(1e-6 + 5e-3)
    odometer.add(ApproximateDP(0.1, 0.999))
    assert odometer.spent().delta == 1.0


def test_readings_rise_and_the_order_of_charges_does_not_matter() -> None:
    charges = [Gaussian(3.0), Laplace(2.0), PoissonSubsampled(Gaussian(0.7), 0.1), PureDP(0.3)]
    odometer, last = Odometer(delta=1e-9), 0.0
    for loss in charges * 3:
        odometer.add(loss)
        now = read(odometer)[0]
        assert now > last
        last = now
    other = Odometer(delta=1e-9)
    for loss in reversed(charges * 3):
        other.add(loss)
    assert read(other)[0] == pytest.approx(last, rel=1e-9)
    assert odometer.charges == 12


def test_fewer_orders_near_the_best_one_read_less() -> None:
    few, many = Odometer(delta=1e-6, orders=(11.0, 13.0)), Odometer(delta=1e-6)
    for odometer in (few, many):
        for _ in range(100):
            odometer.add(Gaussian(30.0))
    assert read(few)[0] < read(many)[0]


def test_nothing_costs_nothing_and_no_noise_costs_everything() -> None:
    assert read(Odometer(delta=1e-6))[0] == 0.0
    assert read(odometer_of((Gaussian(0.0), 1)))[0] == math.inf


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="delta must be strictly between 0 and 1"):
        Odometer(delta=0.0)
    for orders in ((), (1.0,), (2.0, 0.5)):
        with pytest.raises(ParameterError, match="orders must be one or more numbers above 1"):
            Odometer(delta=1e-6, orders=orders)
    odometer = Odometer(delta=1e-6)
    with pytest.raises(ParameterError, match="loss must be a PrivacyLoss"):
        odometer.add(0.5)  # type: ignore[arg-type]
    with pytest.raises(NeighboringMismatch, match="odometer's relation"):
        odometer.add(Gaussian(1.0, neighboring=Neighboring.REPLACE_ONE))
    assert odometer.charges == 0


def test_a_loss_without_curve_or_pair_is_refused() -> None:
    class Silent(PrivacyLoss):
        @property
        def neighboring(self) -> Neighboring:
            return Neighboring.ADD_REMOVE

    with pytest.raises(UnsupportedView):
        Odometer(delta=1e-6).add(Silent())
    with pytest.raises(UnsupportedView):
        approximate_rdp(Silent().terms, (2.0,))
