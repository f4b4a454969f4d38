"""The pair of the privacy blanket, against its definition and direct sums."""

from __future__ import annotations

import mpmath
import pytest

from sfumato.privacy import RandomizedResponse, Shuffled

mpmath.mp.dps = 40


def blanket(epsilon_0: float, categories: int, clients: int, epsilon: float) -> mpmath.mpf:
    """Return the divergence of the blanket's pair, from its definition."""
    e0, k, total = mpmath.exp(mpmath.mpf(epsilon_0)), mpmath.mpf(categories), mpmath.mpf(0)
    share, s = k / (k + e0 - 1), mpmath.exp(mpmath.mpf(epsilon))
    for m in range(1, clients + 1):
        some = mpmath.binomial(clients - 1, m - 1) * share ** (m - 1) * (1 - share) ** (clients - m)
        for x in range(m + 1):
            for y in range(m + 1 - x):
                ways = mpmath.binomial(m, x) * mpmath.binomial(m - x, y)
                even = ways * (1 / k) ** (x + y) * (1 - 2 / k) ** (m - x - y)
                gap = (1 + (e0 - 1) * x / m) - s * (1 + (e0 - 1) * y / m)
                total += some * share * even * max(0, gap)
    return total


@pytest.mark.parametrize(
    ("epsilon_0", "categories", "clients"),
    [(1.0, 3, 9), (2.0, 5, 14), (4.0, 3, 24), (0.2, 100, 18), (6.0, 2, 20)],
)
def test_blankets_meet_their_definition(epsilon_0: float, categories: int, clients: int) -> None:
    loss = Shuffled(RandomizedResponse(epsilon_0, categories), clients)
    for share in (0.0, 0.05, 0.3, 0.7, 0.99):
        exact = blanket(epsilon_0, categories, clients, share * epsilon_0)
        assert exact <= loss.delta(share * epsilon_0) <= exact * mpmath.mpf(1 + 1e-3) + 1e-40


@pytest.mark.parametrize(
    ("categories", "clients", "epsilon", "exact"),
    [(3, 300, 0.1, 0.00178159166), (3, 300, 0.2, 1.925536430e-5), (10, 1000, 0.06, 2.651986653e-5)],
)
def test_larger_blankets_meet_a_direct_sum(
    categories: int, clients: int, epsilon: float, exact: float
) -> None:
    found = Shuffled(RandomizedResponse(1.0, categories), clients).delta(epsilon)
    assert exact * (1 - 1e-7) <= found <= exact * (1 + 1e-3)
