"""The bound on sums of coins against all neighbors, by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sfumato.federated.distributed_noise.poisson_binomial_bound import ORDERS, _among, _fair, rate
from tests.cases import cases

Law = np.ndarray[Any, Any]
SIZES = [(2, 3, 0.1), (4, 6, 0.2), (8, 5, 0.02), (2, 8, 0.25), (16, 8, 0.03), (20, 20, 0.02), (6, 1, 0.25)]
"""Draws, honest clients and theta."""


def coins(count: int, chance: float) -> Law:
    """The law of the number of heads."""
    weights = [math.comb(count, heads) for heads in range(count + 1)]
    return np.array(
        [w * chance**h * (1 - chance) ** (count - h) for h, w in enumerate(weights)], np.longdouble
    )


def renyi(p: Law, q: Law, order: float) -> float:
    """(order - 1) times the divergence."""
    return float(np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q)))


def others_at_extremes(draws: int, clients: int, theta: float) -> list[Law]:
    """Laws of the other clients' heads, where each coin has one of the two extreme chances.

    A divergence is convex in the chance of each single coin, so that one of these is the worst for coins that
    are chosen freely; the clients' coins, which come in groups, are among them or between.
    """
    count = (clients - 1) * draws
    each = max(1, count // 16)
    return [
        np.convolve(coins(k, 0.5 + theta), coins(count - k, 0.5 - theta))
        for k in sorted({*range(0, count + 1, each), count})
    ]


@cases("size", SIZES)
def test_no_neighbors_are_further_apart(size: tuple[int, int, float]) -> None:
    draws, clients, theta = size
    others = others_at_extremes(draws, clients, theta)
    for order in (1.25, 1.75, 2.0, 3.0, 8.0, 20.0, 64.0, 500.0):
        bound = rate(order, draws=draws, others=(clients - 1) * draws, theta=theta)
        for t in (1.0, -1.0, 0.6, -0.2):
            worst = 0.0
            for law in others:
                p = np.convolve(law, coins(draws, 0.5 + theta * t))
                q = np.convolve(law, coins(draws, 0.5))
                worst = max(worst, renyi(p, q, order), renyi(q, p, order))
            assert worst <= t * t * bound


def test_the_worst_of_all_small_neighbors_is_bounded() -> None:
    """All chances of two other clients on a grid of five, two entries of the client, four draws each."""
    theta, draws = 0.125, 4
    grid = [0.5 + theta * step / 2 for step in range(-2, 3)]
    laws = [np.convolve(coins(draws, a), coins(draws, b)) for a, b in itertools.product(grid, grid)]
    fair = [np.convolve(law, coins(draws, 0.5)) for law in laws]
    for order in (2.0, 6.0, 30.0):
        bound = rate(order, draws=draws, others=2 * draws, theta=theta)
        worst = {}
        for t in (1.0, 0.5):
            moved = [np.convolve(law, coins(draws, 0.5 + theta * t)) for law in laws]
            both = [max(renyi(p, q, order), renyi(q, p, order)) for p, q in zip(moved, fair, strict=True)]
            worst[t] = max(both)
            # The extremes are the worst, as convexity says.
            ends = [both[laws_at] for laws_at in (0, 4, 20, 24)]
            assert worst[t] == max(ends)
        assert worst[1.0] + worst[0.5] <= 1.25 * bound


def test_the_bound_is_close_where_there_are_many_coins() -> None:
    draws, clients, theta = 30, 30, 0.01
    for order in (2.0, 4.0, 10.0, 30.0):
        bound = rate(order, draws=draws, others=(clients - 1) * draws, theta=theta)
        law = others_at_extremes(draws, clients, theta)[8]
        p, q = np.convolve(law, coins(draws, 0.5 + theta)), np.convolve(law, coins(draws, 0.5))
        assert renyi(p, q, order) < bound < 1.1 * renyi(p, q, order)
    # With all coins the bound is that of a Gaussian, up to a few percent.
    gaussian = 18 * 17 / 2 * (2 * 0.0048) ** 2 * 654 / 90
    assert 1 < rate(18.0, draws=654, others=89 * 654, theta=0.0048) / gaussian < 1.03


def test_each_number_of_fair_coins_is_bounded() -> None:
    draws, theta = 6, 0.1
    for fair, order in itertools.product((1, 3, 10, 200), (1.25, 2.0, 5.0, 12.0)):
        bound = _among(order, draws, fair, theta)
        law = coins(fair, 0.5)
        for t in (1.0, 0.4):
            p, q = np.convolve(law, coins(draws, 0.5 + theta * t)), coins(fair + draws, 0.5)
            assert max(renyi(p, q, order), renyi(q, p, order)) <= t * t * bound
    assert 1 < _among(5.0, 6, 10_000, 0.02) / (10 * (2 * 0.02) ** 2 * 36 / 10_006) < 1.06
    assert _among(2.0, 6, 0, 0.1) == _among(1e4, 6, 3, 0.25) == math.inf


def test_fewer_fair_coins_are_as_rare_as_is_said() -> None:
    for others, theta in ((60, Fraction(1, 8)), (200, Fraction(1, 50)), (25, Fraction(1, 4))):
        chance = 1 - 2 * theta
        masses = [math.comb(others, k) * chance**k * (1 - chance) ** (others - k) for k in range(others + 1)]
        assert sum(masses) == 1
        for level in (0.5, 1.0, 3.0, 10.0, 30.0):
            fair = _fair(others, float(theta), level)
            assert sum(masses[:fair]) <= math.exp(-level)
            assert fair <= others * chance
        assert _fair(others, float(theta), 1e6) == 0
    assert _fair(0, 0.1, 1.0) == 0
    assert _fair(100_000, 0.01, 10.0) > 97_700


def test_the_bound_grows_as_it_should() -> None:
    assert list(ORDERS) == sorted(set(ORDERS))
    assert (ORDERS[0], len(ORDERS)) == (1.25, 93)
    assert 1000 < ORDERS[-1] < 1100

    def bound(order: float = 8.0, draws: int = 64, others: int = 6400, theta: float = 0.01) -> float:
        return rate(order, draws=draws, others=others, theta=theta)

    for name, values in (
        ("order", [1.25, 2, 5, 20, 100, 1000]),
        ("draws", [2, 4, 64, 1000]),
        ("theta", [2.0**-20, 1e-3, 0.01, 0.1, 0.25]),
    ):
        found = [bound(**{name: value}) for value in values]  # type: ignore[arg-type]
        assert found == sorted(set(found))
        assert 0 < found[0] < found[-1] < math.inf
    falling = [bound(others=others) for others in (0, 100, 1000, 10**5, 10**9, 2**48)]
    assert falling == sorted(falling, reverse=True)
    alone = coins(64, 0.51), coins(64, 0.5)
    assert bound(others=0) == pytest.approx(renyi(*alone, 8.0), rel=0.02)
