"""Epsilon where nothing may fail: one order holds throughout a composition."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import NoReturn

import pytest

from sfumato.errors import ParameterError, PrecisionWarning
from sfumato.numerics.decimals import at_most_decimal
from sfumato.numerics.interval import Interval
from sfumato.privacy import (
    ZCDP,
    ApproximateDP,
    BallsInBins,
    DiscreteGaussian,
    DiscretePair,
    Gaussian,
    Laplace,
    Mixture,
    PoissonSubsampled,
    Precision,
    PrivacyLoss,
    PureDP,
    RandomAllocation,
    SeparatedPoisson,
)
from sfumato.privacy.accountant import certified, intervals
from sfumato.privacy.accountant.planning import Pairs
from tests.cases import cases

# The greatest losses are log 1.8 in one order and log 5 in the other; then the other way round.
FIRST = DiscretePair([0.9, 0.1], [0.5, 0.5])
SECOND = DiscretePair([0.5, 0.5], [0.9, 0.1])


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
def test_greatest_losses_of_different_orders_do_not_add() -> None:
    lower, upper, _ = (FIRST + SECOND * 2).epsilon_interval(0.0)
    assert lower <= math.log(5) * 2 + math.log(1.8) <= upper
    assert lower >= math.log(5) * 2 + math.log(1.8) - 1e-12


@pytest.mark.filterwarnings("ignore::sfumato.errors.PrecisionWarning")
def test_sampling_does_not_keep_the_order_of_the_greatest_loss() -> None:
    lower, upper, _ = PoissonSubsampled(FIRST, 0.1).epsilon_interval(0.0)
    truth = -math.log(0.9 + 0.1 * 0.2)
    assert truth - 1e-12 <= lower <= truth <= upper


def test_what_is_known_of_both_orders_stays_exact() -> None:
    for loss, truth in (
        (FIRST * 3, 3 * math.log(5)),
        (Laplace(0.5) + PureDP(1.0), 3.0),
        (PoissonSubsampled(Laplace(1.0), 0.1) * 7, 7 * math.log1p(0.1 * math.expm1(1.0))),
        (Mixture((FIRST, SECOND), (0.5, 0.5), index_public=True), math.log(5)),
    ):
        lower, upper, tight = loss.epsilon_interval(0.0)
        assert tight
        assert lower <= truth <= upper <= lower + 1e-9


def test_infinite_losses_and_endless_counts_have_a_lower_end() -> None:
    assert Gaussian(1.0).epsilon_interval(0.0).lower == math.inf
    assert Gaussian(0.0).epsilon_interval(0.0)[:2] == (0.0, math.inf)
    assert (PureDP(1.0) * 10**400).epsilon(0.0) == math.inf


def test_an_infinite_end_is_tight_only_where_epsilon_is_infinite() -> None:
    infinite = (
        Gaussian(0.0),
        DiscreteGaussian(0),
        PoissonSubsampled(Gaussian(0.0), 0.5),
        PoissonSubsampled(Gaussian(0.0), 1.0),
        Gaussian(0.0) + Laplace(1.0),
        PoissonSubsampled(Gaussian(0.0), 1e-3) * 100,
    )
    for loss in infinite:
        assert loss.epsilon_interval(1e-5) == Interval(math.inf, math.inf), loss
    # Known to be revealed with less than delta, so that epsilon is finite.
    assert (PoissonSubsampled(Gaussian(0.0), 1e-9) * 3).epsilon_interval(1e-5).upper < 1e-3
    # Finite, though larger than what fits into an exponent: half the steps cost (2 / .05)**2 / 8 each.
    lower, upper, tight = (PoissonSubsampled(Gaussian(0.05), 0.5) * 10**5).epsilon_interval(1e-5)
    assert 1e7 < lower < upper < 1.02e7
    assert tight


def test_both_ends_of_an_epsilon_come_from_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    loss, delta = PoissonSubsampled(Gaussian(1.25), 0.0125) * 40, 1e-5
    assert at_most_decimal(delta) < delta
    read, deltas = certified.epsilon_interval, []

    def counted(pairs: Pairs, at: float, *arguments: float, **further: float) -> Interval:
        deltas.append(at)
        return read(pairs, at, *arguments, **further)  # type: ignore[arg-type]

    monkeypatch.setattr(intervals, "_EPSILON", intervals._EPSILON._replace(certified=counted))
    found = loss.epsilon_interval(delta)
    assert loss.epsilon(delta) == found.upper
    assert intervals.epsilon_interval_at_float(loss, delta, Precision()).lower == found.lower
    assert deltas == [at_most_decimal(delta)]


def test_the_lower_end_is_that_at_the_delta_as_a_float() -> None:
    # A mass that is above the decimal and not above the float: nothing finite holds at the decimal.
    delta, fine = 1e-5, Precision(1e-8)
    loss = Laplace(1.0) * 2 + ApproximateDP(0.5, delta)
    found = loss.epsilon_interval(delta)
    assert found.tight
    assert found.lower <= 2.5 <= found.upper <= 2.5 * (1 + 1e-3)
    for other in (Gaussian(2.0) * 3 + Laplace(3.0), loss + ApproximateDP(0.0, 1e-9)):
        wide, charged = other.epsilon_interval(3e-5), at_most_decimal(3e-5)
        for at in (3e-5, charged):
            narrow = intervals.epsilon_interval_at_float(other, at, fine)
            assert wide.lower <= narrow.upper
            assert wide.upper >= narrow.lower


def test_numbers_beyond_all_floats_prove_nothing_and_say_so() -> None:
    loss = PoissonSubsampled(Gaussian(1e-160), 0.5) * 3
    with pytest.warns(PrecisionWarning, match="no finite bound"):
        found = loss.epsilon_interval(1e-5)
    assert found.upper == math.inf
    assert not found.tight


def test_delta_at_infinity_is_the_mass_of_infinite_losses() -> None:
    for loss in (Gaussian(1.0), PoissonSubsampled(Gaussian(1.0), 0.1) * 3, Laplace(1.0) * 2):
        assert loss.delta_interval(math.inf) == Interval(0.0, 0.0)
        assert loss.delta(math.inf) == 0.0
    assert Gaussian(0.0).delta(math.inf) == Gaussian(0.0).quick_delta(math.inf) == 1.0
    lower, upper, tight = (ApproximateDP(1.0, 1e-3) * 2).delta_interval(math.inf)
    exact = 1 - (1 - Fraction(1e-3)) ** 2
    assert lower <= exact <= upper <= lower * (1 + 1e-12)
    assert tight
    lower, upper, tight = ZCDP(0.5).delta_interval(math.inf)
    assert lower == 0.0
    assert upper < 1e-100
    assert not tight
    with pytest.raises(ParameterError, match="epsilon must be non-negative"):
        Gaussian(1.0).delta(math.nan)


@cases(
    "loss",
    [
        RandomAllocation(Gaussian(1.0), steps=2),
        RandomAllocation(PureDP(600.0), steps=4),
        SeparatedPoisson(PureDP(600.0), 0.3, separation=5, steps=5),
        RandomAllocation(PoissonSubsampled(Gaussian(0.02), 0.9), steps=2),
        BallsInBins(PureDP(745.0), bins=10, epochs=2),
    ],
)
def test_what_is_taken_for_infinite_above_is_not_infinite_for_certain(loss: PrivacyLoss) -> None:
    # All losses are finite, but those beyond floats count as infinite from above.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)
        assert loss.delta_interval(math.inf).lower == 0.0
        assert loss.delta_interval(0.0).lower < 1.0
        assert loss.epsilon_interval(0.5).lower < 3e4


def test_how_much_is_infinite_is_unknown_where_no_value_is_a_float(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = BallsInBins(PureDP(745.0), bins=10, epochs=2).dominating_pair()
    assert intervals.infinite_mass([(pair, 1)])[:2] == (0.0, 1.0)

    def lost(*_: object, **__: object) -> NoReturn:
        raise ValueError

    monkeypatch.setattr(type(pair), "bins", lost)  # as in one order of these values, now in both
    assert intervals.infinite_mass([(pair, 1)])[:2] == (0.0, 1.0)


def test_a_mass_that_is_infinite_for_certain_is_below_every_delta() -> None:
    half = DiscretePair([0.5, 0.5, 0], [0, 0.5, 0.5])
    for loss, exact in (
        (Gaussian(0.0) * 7, Fraction(1)),
        (RandomAllocation(ApproximateDP(1.0, 0.25), steps=3), Fraction(1, 4)),
        (half * 100, 1 - Fraction(1, 2**100)),
        (DiscretePair([1 - 2.0**-53, 2.0**-53], [0, 1]), 1 - Fraction(1, 2**53)),
    ):
        for lower, upper, tight in (loss.delta_interval(700.0), loss.delta_interval(math.inf)):
            assert lower <= exact <= upper <= lower * (1 + 1e-12)
            assert tight
