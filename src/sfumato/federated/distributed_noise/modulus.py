r"""How likely a sum of noisy vectors wraps around its modulus, and how fine a grid it leaves room for.

All bounds are Chernoff's: :math:`P(|T| \ge L) \le 2 e^{K(t) - tL}` for every :math:`t > 0`, where K bounds
the logarithm of the moment generating function of both T and -T. An entry of the sum is the sum of three
independent parts, for which K adds up:

- the rotated sum of the clipped vectors, of a length of at most N: :math:`N^2 t^2 / 2d` over the random signs
  (Hoeffding);
- the error of rounding, which for each client has mean 0 and a range of 1: :math:`n t^2 / 8` (Hoeffding);
- the noise: :math:`v t^2 / 2` for discrete Gaussians whose squared parameters add up to v (Canonne, Kamath,
  Steinke 2020), and :math:`v (\cosh t - 1)` exactly for Skellam noise of variance v.

A union bound over the entries, and the probability that some client's rounding is not the plain one, are
added. Wrapping around costs accuracy and never privacy: residues are a function of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from sfumato.federated.distributed_noise.bounded_rounding import ROUNDING_FAILURE
from sfumato.numerics.rounding import exp_up
from sfumato.privacy._outward import above

__all__ = ["gaussian_log_moment", "largest_scale", "skellam_log_moment", "wraparound_bound"]

LogMoment = Callable[[float, float], float]
"""From a variance and t to a bound on the log of the noise's moment generating function, rounded up."""

_STEPS: Final = 80
_KEPT_BITS: Final = 16


def gaussian_log_moment(variance: float, t: float) -> float:
    """Return the bound for discrete Gaussian noise."""
    return above(variance * t * t / 2, 4.0)


def skellam_log_moment(variance: float, t: float) -> float:
    """Return the logarithm itself for Skellam noise; infinity where it leaves the range of floats."""
    if t > 700:
        return math.inf
    # cosh(t) - 1 without cancellation.
    return above(variance * 2 * math.sinh(t / 2) ** 2, 32.0)


def wraparound_bound(
    *, bits: int, clients: int, norm: float, dimension: int, variance: float, noise: LogMoment
) -> float:
    """Return a bound on the probability that any entry of the sum wraps around, rounded up.

    Parameters
    ----------
    bits : int
        The modulus is 2^bits.
    clients : int
        The most vectors that are added.
    norm : float
        The most that the L2 norm of one is before rounding, in steps of the grid.
    dimension : int
        Entries after padding.
    variance : float
        Of all clients' noise on an entry.
    noise : callable
        `gaussian_log_moment` or `skellam_log_moment`.

    Returns
    -------
    float
        At most 1.
    """
    limit = 2.0 ** (bits - 1) - 1  # residues reach from -limit - 1 to limit
    plain = above(clients * norm * (clients * norm / dimension) + clients / 4, 32.0)

    def exponent(t: float) -> float:
        return above(above(plain * t * t / 2, 4.0) + noise(variance, t), 4.0) - t * limit

    # Any t proves a bound; this is the best one, of a convex function, by bisection of its slope.
    low, high = 0.0, limit / (plain + variance)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        step = middle * 1e-6
        low, high = (middle, high) if exponent(middle + step) < exponent(middle - step) else (low, middle)
    t = (low + high) / 2
    tail = exp_up(above(exponent(t), 8.0, t * limit))
    return min(1.0, above(2 * dimension * tail + clients * ROUNDING_FAILURE, 16.0))


def largest_scale(meets: Callable[[float], bool], largest: float) -> float | None:
    """Return about the largest scale that meets a bound, or None if none above a 2^-60th does.

    Parameters
    ----------
    meets : callable
        Whether a scale is fine; from some scale on it is False.
    largest : float
        Above this it is not searched.

    Returns
    -------
    float or None
        With few bits, so that it is the same on every machine, and seen to meet the bound.
    """
    scale = 2.0 ** math.floor(math.log2(largest))
    lowest = scale * 2.0**-60
    while not meets(scale):
        scale /= 2
        if scale < lowest:
            return None
    part = scale / 2
    while part > scale * 2.0**-_KEPT_BITS:
        if scale + part <= largest and meets(scale + part):
            scale += part
        part /= 2
    return scale
