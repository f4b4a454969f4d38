r"""What a sum of clients' binomial numbers costs.

Each of H honest clients draws m coins for an entry, each with a chance within :math:`1/2 \pm \theta`. The
neighbors differ in one client, whose coins have the chance :math:`1/2 + \theta t` or 1/2; :math:`|t| \le 1`.

*Theorem.* There is a number :math:`G_\alpha`, computed here, with
:math:`(\alpha - 1) D_\alpha \le t^2 G_\alpha` for both orders of the two distributions of the sum, whatever
the other clients' chances are. So entries with :math:`t_1, t_2, \dots`, whose coins are independent, cost
:math:`G_\alpha \sum t_j^2 / (\alpha - 1)` together: it is the L2 norm that counts.

*Proof.*

1. Fair coins. A coin with a chance within :math:`1/2 \pm \theta` is with probability :math:`1 - 2\theta` a
   fair one, and else another one. Let K of the N = (H - 1)m coins of the others be fair ones, binomial with
   that probability. Show K and the coins that are not fair: by the joint convexity of
   :math:`\exp((\alpha - 1) D_\alpha)` this only helps. What is left is the sum T of K fair coins and the
   client's. Further fair coins are a post-processing: the divergence falls in K.
2. The ratio. Let M = K + m, a = 2 theta t and s = 2T - M. With fair coins of the client, given T, the number
   h of its heads is hypergeometric, and the ratio of the two at T is
   :math:`L = E[(1 + a)^h (1 - a)^{m - h} \mid T]`. A hypergeometric number is a sum of m independent coins
   (its generating function has real zeros only: Vatutin, Mikhailov 1982), with chances
   :math:`(1 + w_i)/2`, say. So :math:`L = \prod (1 + a w_i)`, where :math:`\sum w_i = ms/M` by the mean, and
   by the variance :math:`\sum w_i^2 = m(m - 1)/(M - 1) + c m s^2/M^2` for some c in [0, 1].
3. One order. Since :math:`\log(1 + x) \le x - x^2/2 + x^3/3`,
   :math:`\log L \le ams/M - (a^2/2)(1 - 2|a|/3) m(m - 1)/(M - 1)`. The sum s of M fair signs has
   :math:`E e^{\lambda s} \le e^{M\lambda^2/2}`. That bounds the logarithm of :math:`E[L^\alpha]` by
   :math:`\alpha^2 a^2 m^2/2M - \alpha(a^2/2)(1 - 2|a|/3) m(m - 1)/(M - 1)`.
4. The other order is :math:`E[L^{-b}]`, :math:`b = \alpha - 1`. Since
   :math:`\log(1 + x) \ge x - x^2/(2(1 - |x|))`, it has a term in :math:`s^2` too, and
   :math:`E e^{\lambda s + \nu s^2} \le (1 - x)^{-1/2} e^{M\lambda^2/(2(1 - x))}` for
   :math:`x = 2\nu M < 1`, as for a Gaussian of the variance M. Here :math:`\lambda = abm/M` up to its sign
   and :math:`x \le a^2 bm/((1 - |a|)M)`; the logarithm of the factor is at most :math:`x/(2(1 - x))`.
   Without the others' coins (K = 0) the client's are independent, :math:`s^2` does not appear, and
   :math:`m(a^2b^2/2 + a^2b/(2(1 - |a|)))` bounds it.
5. Each bound is at most :math:`t^2` times its value at t = 1, g(K). And
   :math:`\log E_K e^{t^2 g(K)}` is convex in :math:`t^2` and 0 at 0, so at most :math:`t^2` times its value
   at 1. That is bounded by a few values of K, falling, and Bernstein's bound on the chance of less than each.

References
----------
W.-N. Chen, A. Ozgur, P. Kairouz. The Poisson binomial mechanism for unbiased federated learning with secure
aggregation. ICML 2022: the mechanism. The theorem is proved here.

V. A. Vatutin, V. G. Mikhailov. Limit theorems for the number of empty cells in an equiprobable scheme for the
distribution of particles by groups. Theory of Probability and its Applications, 1982.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from sfumato.privacy._outward import above

__all__ = ["ORDERS", "rate"]

ORDERS: Final = tuple(
    [1.25, 1.5, 1.75]
    + [2 + number / 2 for number in range(28)]
    + [16.0 + number for number in range(16)]
    + [float(round(32 * 1.08**number)) for number in range(46)]
)
"""Where the bound is computed; up to about 1,000."""

_LEVELS: Final = 12
_RARE: Final = 40.0
_LARGEST: Final = 600.0


def rate(order: float, *, draws: int, others: int, theta: float) -> float:
    """Return the theorem's number, rounded up.

    Parameters
    ----------
    order : float
        At least 1.25.
    draws : int
        Coins of the client, for one entry.
    others : int
        Coins of the other honest clients.
    theta : float
        Positive, at most 1/4.

    Returns
    -------
    float
    """
    alone = _alone(order, draws, theta)
    # With a chance of less than exp(-level), fewer of the others' coins are fair ones than are counted.
    levels = np.geomspace(1.0, alone + _RARE, _LEVELS).tolist()
    values = [min(alone, _among(order, draws, _fair(others, theta, level), theta)) for level in levels]
    values = [*np.maximum.accumulate(values).tolist(), alone]
    more = 0.0
    for level, value, following in zip(levels, values, values[1:], strict=False):
        if following - values[0] - level > _LARGEST:
            return alone
        more += math.exp(following - values[0] - level) - math.exp(value - values[0] - level)
    return min(alone, above(values[0] + math.log1p(above(more, 256.0, 1.0)), 16.0))


def _fair(others: int, theta: float, level: float) -> int:
    """Return how many coins are fair ones but for a chance of exp(-level), by Bernstein's inequality."""
    unfair = 2 * theta
    variance = others * unfair * (1 - unfair)
    beyond = level / 3 + math.sqrt(level * level / 9 + 2 * variance * level)
    return max(0, math.floor(others * (1 - unfair) - beyond * (1 + 1e-9) - others * 2.0**-50 - 1e-6))


def _alone(order: float, draws: int, theta: float) -> float:
    """Return the bound without the others' coins."""
    b, square = order - 1, 2 * theta * theta * draws
    one = order * (order - (1 - 4 * theta / 3))
    other = b * (b + 1 / (1 - 2 * theta))
    return above(square * max(one, other), 64.0)


def _among(order: float, draws: int, fair: int, theta: float) -> float:
    """Return the bound with so many fair coins of the others."""
    if fair == 0:
        return math.inf
    coins, b, square = fair + draws, order - 1, 2 * theta * theta
    pairs = draws * (draws - 1) / (coins - 1)
    main = square * draws * draws / coins
    one = above(order * order * main - order * (1 - 4 * theta / 3) * square * pairs, 64.0, order**2 * main)
    x = above(2 * square * b * draws / ((1 - 2 * theta) * coins), 32.0)
    if x >= 1:
        return math.inf
    other = main * b * b / (1 - x) + b * square / (1 - 2 * theta) * pairs + x / (2 * (1 - x))
    return max(one, above(other, 64.0 / (1 - x)))
