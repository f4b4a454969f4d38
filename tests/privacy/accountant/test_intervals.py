"""Epsilon where nothing may fail: one order holds throughout a composition."""

from __future__ import annotations

import math

import pytest

from sfumato.privacy import DiscretePair, Gaussian, Laplace, Mixture, PoissonSubsampled, PureDP

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
