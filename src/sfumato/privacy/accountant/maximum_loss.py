"""The maximum loss of a composition, which is its epsilon at delta 0."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

from sfumato.numerics.rounding import fraction_down
from sfumato.privacy._outward import below
from sfumato.privacy.accountant.planning import Pairs
from sfumato.privacy.pairs.pair import Pair

__all__ = ["maximum_loss"]

_REACH: Final = 12.0
_REAL: Final = -1000.0
"""Log of a mass; smaller ones are those of empty bins."""


def maximum_loss(pairs: Pairs) -> float:
    """Return a lower bound on the essential supremum of the composed loss, the greater of both orders.

    Parameters
    ----------
    pairs : sequence of (Pair, int)

    Notes
    -----
    One order holds throughout a composition, so that two unlike pairs may not add their largest losses of
    different orders. Where one pair's is infinite, so is the sum in its order, for no order's is negative.
    """
    if any(math.isinf(pair.supremum) for pair, _ in pairs):
        return math.inf
    orders = (False,) if all(pair.symmetric for pair, _ in pairs) else (False, True)
    sums = (
        sum((count * Fraction(_in_order(pair, swapped=swapped)) for pair, count in pairs), Fraction(0))
        for swapped in orders
    )
    return max(0.0, below(max(map(fraction_down, sums)), 4.0))


def _in_order(pair: Pair, *, swapped: bool) -> float:
    if pair.symmetric:
        return pair.supremum
    distribution = pair.bins(pair.cuts(_REACH), swapped=swapped).merged()
    return max(0.0, float(distribution.loss[distribution.log_mass > _REAL].max(initial=0.0)))
