"""Sampling hides who took part from readers only: the chance of aborts, and what is left of delta."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binom

from sfumato.learning.federated.reader_loss import abort_chance, epsilon_despite_aborts
from sfumato.privacy import Gaussian, PoissonSubsampled


@pytest.mark.parametrize(
    ("others", "probability", "fewest", "most"),
    [(999, 0.2, 120, 300), (99, 0.5, 30, 70), (20, 0.9, 5, 21), (30, 0.1, -1, 12), (12, 0.5, 0, 12)],
)
def test_the_chance_is_above_the_exact_tails_and_close(
    others: int, probability: float, fewest: int, most: int
) -> None:
    exact = binom.cdf(fewest, others, probability) + binom.sf(most - 1, others, probability)
    found = abort_chance(others, probability, fewest=fewest, most=most)
    assert exact <= found * (1 + 1e-12) <= 10 * math.sqrt(others) * exact


def test_where_aborts_are_the_rule_the_chance_is_one() -> None:
    assert abort_chance(100, 0.5, fewest=50, most=200) == 1
    assert abort_chance(100, 0.5, fewest=0, most=50) == 1
    assert abort_chance(100, 0.5, fewest=-1, most=101) == 0


def test_half_of_delta_covers_aborts() -> None:
    loss = PoissonSubsampled(Gaussian(1.5), 0.1) * 20
    whole, half = loss.epsilon(1e-6), loss.epsilon(5e-7)
    assert epsilon_despite_aborts(loss, 1e-6, 0.0) == whole
    covered = 5e-7 / (1 + math.exp(half))
    assert epsilon_despite_aborts(loss, 1e-6, covered * 0.999) == pytest.approx(half, rel=1e-9)
    assert epsilon_despite_aborts(loss, 1e-6, covered * 1.001) is None
    assert epsilon_despite_aborts(Gaussian(0.02), 1e-6, 1e-300) is None
