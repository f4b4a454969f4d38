"""Noise on the count that chooses groups, by which a group is shown as often as is possible.

Truncated Laplace noise never exceeds its limit L, and the probability P_L of the limit is all by which it is
not pure (`sfumato.mechanisms.noise.truncated_laplace`). With the threshold L + m a group of m units is shown
with that probability, too: both cases of the proof need the same delta. As limits are whole, the limit is
drawn for each group: L with probability w, else L + 1, so that ``w P_L + (1 - w) P_(L + 1)`` is the share of
delta. A group whose noisy count is L + m is shown by a coin, with the probability ``w P_L`` over that of L in
the mixture; those above are shown. So a group is as often shown with each noisy count as if limit and
threshold were L and L + m, or L + 1 and L + 1 + m, together (but for groups of 2 L + m + 1 units at L + m,
whose noise is the lowest there is: these have another coin, as below).

For one group per unit no rule that is (epsilon, delta)-DP shows more. *Proof*, for m = 1. Let F_L(n) be the
probability with which n units are shown with limit L and threshold L + 1, and ``d = P_L``. By summing the
geometric series::

    F_L(n + 1) = e**epsilon F_L(n) + d                  for n from 0 to L,
    F_L(n + 1) = 1 - e**-epsilon (1 - F_L(n) - d)       for n from L to 2 L,

and it is 1 from 2 L + 1 on. The optimal rule takes the smaller of both right sides and 1, from F(0) = 0
(Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2022, Theorem 1). The
first is the smaller one where ``F(n) <= (1 - d) / (1 + e**epsilon)``; F_L meets both at n = L, so it is equal
to that there. The mixture ``w F_L + (1 - w) F_(L + 1)``, with the mixture of both d, meets the first up to
n = L, where it is at most that bound, and the second from n = L + 1, where it is at least that bound, to
2 L. So it is the optimum up to 2 L + 1 units. For 2 L + 2 the optimum hides ``max(0, y - x)``, where
``x = w P_L e**-epsilon`` and ``y = (1 - w) P_(L + 1)``. They are hidden here if the noise is -(L + 1), which
has the probability y, and the coin for that shows ``min(1, x / y)`` of them: as the first coin's probability
h is ``x / (x + y)``, that is ``min(1, h / (1 - h))``. It takes nothing from delta
(`sfumato.mechanisms.selection.randomized_threshold`). Of more than 2 L + 2 units both show all.

A delta of more than P_1 leaves noise of the limit 1; what is left of it goes to the threshold alone. That is
not the optimum for groups of two units, but near it.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

from sfumato import _check
from sfumato.mechanisms.noise.truncated_laplace import TruncatedLaplace
from sfumato.numerics.distributions.truncated_laplace import TruncatedLaplaceDistribution

__all__ = ["truncated_count_noise", "truncation_point"]

_SCALE_GRID: Final = 1 << 40  # of the optimum, not more than eight digits are given away
_WEIGHT_GRID: Final = 1 << 62  # the finest coin


def truncation_point(scale: float, delta: float) -> float:
    """Return the limit whose probability is ``delta``, among reals; the integer one is next to it."""
    rate = math.expm1(min(700.0, 1 / scale))
    odds = math.log(rate / 2) - math.log(delta)
    return (max(odds, 0.0) + math.log1p(math.exp(-abs(odds))) - math.log1p(rate / 2)) * scale


def truncated_count_noise(scale: Fraction, entries: int, delta: float) -> TruncatedLaplace:
    """Return noise on a count of units, of two limits in the mixture that has the probability ``delta``."""
    scale = Fraction(math.ceil(scale * _SCALE_GRID), _SCALE_GRID)
    delta = _check.unit_interval("delta", delta)

    @lru_cache
    def at_limit(limit: int) -> float:
        return TruncatedLaplaceDistribution(scale, limit).upper_tail(limit).upper

    high, step = max(1, math.ceil(truncation_point(float(scale), delta))), 1
    while at_limit(high) > delta:
        high, step = high + step, 2 * step
    low, step = high - 1, 1
    while low and at_limit(low) <= delta:
        high, low, step = low, max(0, low - step), 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if at_limit(middle) <= delta else (middle, high)
    weight = Fraction(0)
    if low:
        longer, shorter = Fraction(at_limit(high)), Fraction(at_limit(low))
        share = (Fraction(delta) - longer) / (shorter - longer)
        weight = Fraction(math.floor(share * _WEIGHT_GRID), _WEIGHT_GRID)
    return TruncatedLaplace(sensitivity=1, scale=scale, limit=high, weight=weight, l0=entries)
