"""The Rényi orders of an (epsilon, delta) budget, and the limit of each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from sfumato.privacy.conversion import rdp_for

__all__ = ["limits_of", "smallest_order", "usual_orders"]

_GAPS = (1.1, 1.35, 1.65, 2.0, 2.5, 3.2, 4.5, 8.0)
"""The orders of a Rényi budget: distances from 1 in units of ``(1 + log(1/delta)) / epsilon``.

``log(1/delta) / epsilon`` is the smallest distance at which anything is left for a divergence; twice that
suits one that grows with its order, as of Gaussian noise.
"""


def usual_orders(epsilon: float, delta: float) -> list[float]:
    """Return the orders of a budget that states none."""
    return [1 + gap * (1 - math.log(delta)) / epsilon for gap in _GAPS]


def smallest_order(epsilon: float, delta: float) -> float:
    """Return an order at which something is left; its gap to 1 is at most a thousandth above the smallest."""
    low, high = 0.0, -math.log(delta) / epsilon
    while high - low > 2.0**-10 * high:
        gap = (low + high) / 2
        low, high = (low, gap) if rdp_for(1 + gap, epsilon, delta) else (gap, high)
    return 1 + high


def limits_of(orders: Sequence[float], epsilon: float, delta: float) -> dict[float, float]:
    """Return the limit of each order that has one, when these share delta evenly."""
    while orders:
        share = delta / len(orders) * (1 - 2.0**-50)
        limits = {order: rdp_for(order, epsilon, share) if share else 0.0 for order in orders}
        if all(limits.values()):
            return limits
        orders = [order for order, limit in limits.items() if limit]
    return {}
