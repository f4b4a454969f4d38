r"""Two wide discrete Gaussian distributions a whole number apart, cut at integers.

Throughout, P has mass proportional to :math:`e^{-(x-s)^2/2\sigma^2}` on the integers, and Q the same with
:math:`s = 0`: the loss at :math:`x` is :math:`(2xs - s^2)/2\sigma^2`, and the reflection :math:`x \to s - x`
exchanges the two.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from sfumato.numerics.certified.discrete_gaussian_tail import normaliser, tail
from sfumato.numerics.rounding import fraction_down, log_down, log_up
from sfumato.privacy._outward import UNIT, above
from sfumato.privacy.pairs.bins import Bins, Mass, Points
from sfumato.privacy.pairs.pair import Pair

__all__ = [
    "MAX_SHIFT",
    "MAX_STDDEV",
    "MIN_STDDEV",
    "WideDiscreteGaussianPair",
    "log_tilted_tail",
    "log_upper_tail",
]

_Array = NDArray[np.float64]

MIN_STDDEV: Final = 64
MAX_STDDEV: Final = 2**46
"""Up to 40 of these, all half-integers are floats."""
MAX_SHIFT: Final = 24
"""In standard deviations."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_COARSE: Final = 160
_FARTHEST: Final = 40.0
_LOG_ROOT_TAU: Final = 0.5 * math.log(2 * math.pi)


class WideDiscreteGaussianPair(Pair):
    r"""Two discrete Gaussian distributions, cut into bins of whole integers.

    Parameters
    ----------
    stddev : Fraction
        From 64 to ``2**46``.
    shift : int
        At most 24 standard deviations.

    Notes
    -----
    *Masses.* Let :math:`f` be the normal density of standard deviation :math:`\sigma`, :math:`f^{(n)} =
    (-1)^n \sigma^{-n} He_n(x/\sigma) f`. The midpoint form of Euler and Maclaurin's formula over the integers
    :math:`i, \dots, j - 1` says that

    .. math:: \sum f(k) = \int_{i-1/2}^{j-1/2} \Big(f - \frac{f''}{24} + \frac{7 f''''}{5760}\Big) dx +
        \int \frac{B_6(1/2) - B_6(\{x\})}{720} f^{(6)} dx,

    and :math:`|B_6| \le 1/42` on [0, 1], with :math:`|B_6(1/2)| = 31/1344`: the last integral is at most
    :math:`6.6 \cdot 10^{-5} \sigma^{-6} \int |He_6(x/\sigma)| f dx`. Where :math:`|x| \le 1.5\sigma^2` the
    bracket is at least :math:`0.9 f`, so relative to the first integral it is below :math:`7.4 \cdot 10^{-5}
    h\sigma^{-6}`, :math:`h` the largest :math:`z^6 + 15z^4 + 45z^2 + 15` there. The sum of :math:`f` over
    all integers is 1 to :math:`10^{-25}` (Poisson summation).

    *Quadrature.* As in `sfumato.privacy.pairs.noise.normal`, in units of :math:`\sigma`: where the half-width
    :math:`r` and the middle :math:`m` have :math:`r(|m| + \mu + 3) \le 3/2`, :math:`\mu = s/\sigma`, the
    12-point rule errs by less than :math:`10^{-24}` for the normal density; the bracket is a polynomial below
    1.2 on the ellipse of that proof. The cuts that are asked for are moved to integers, which makes a bin
    wider by at most :math:`1/\sigma`; `rate` allows for it.

    *Losses* in the bin of the integers :math:`i, \dots, j - 1` lie between those at the cuts :math:`i` and
    :math:`j`; a bin of one integer has the loss of its left end, so that nothing is lost there.
    """

    __slots__ = ("_mu", "_shift", "_sigma", "_stddev")

    def __init__(self, stddev: Fraction, shift: int) -> None:
        self._stddev, self._shift = stddev, shift
        self._sigma, self._mu = float(stddev), float(shift / stddev)

    supremum = math.inf
    """Infinity."""

    def cuts(self, reach: float) -> _Array:
        """Return cuts from ``reach`` below the lower mean to ``reach`` above the upper one."""
        far = math.ceil(min(reach, _FARTHEST) * self._stddev)
        return self.snapped(np.linspace(-far, self._shift + far, _COARSE + 1))

    def snapped(self, cuts: _Array) -> _Array:
        """Return integers."""
        return np.unique(np.rint(cuts))

    def rate(self, cuts: _Array) -> _Array:
        """Return bins per integer for which the quadrature is exact."""
        far = np.maximum(np.abs(cuts[1:]), np.abs(cuts[:-1])) / self._sigma + self._mu + 3
        return np.asarray(far / (2.9 - far / self._sigma) / self._sigma)

    def bins(self, cuts: _Array, *, swapped: bool) -> Bins:
        """Integrate both brackets between the cuts."""
        cuts, mu, sigma = self.snapped(cuts), self._mu, self._sigma
        z = (cuts - 0.5) / sigma
        middle, half = 0.5 * (z[1:] + z[:-1]), 0.5 * (z[1:] - z[:-1])
        offset = half[:, None] * _NODES
        density = np.exp(-offset * (0.5 * offset + middle[:, None])) * _WEIGHTS
        tilt = np.expm1(mu * offset)
        weight, change = _brackets(middle[:, None] + offset, mu, sigma)
        total = (density * weight).sum(axis=1)
        # Of P: the weight changes to weight + change, and the density by 1 + tilt.
        more = (density * (tilt * (weight + change) + change)).sum(axis=1)
        rest = np.log1p(more / total)
        log_q = np.log(total * half) - 0.5 * middle * middle - _LOG_ROOT_TAU
        loss = mu * middle - 0.5 * mu * mu + rest
        remainder = _remainder(np.maximum(np.abs(z[1:]), np.abs(z[:-1])) + mu, sigma)
        error = UNIT * (8 * mu * np.abs(middle) + 8 * mu * mu + 32 * mu * (half + 1 / sigma))
        error = error + 2 * remainder
        points = Points(
            log_p=log_q + loss,
            loss=loss,
            mass_error=error + UNIT * (64 + 8 * middle * middle + 4 * np.abs(log_q) + 4 * np.abs(loss)),
            loss_error=error,
        )
        edges = mu * (cuts / sigma) - 0.5 * mu * mu
        edge_error = UNIT * (8 * mu * np.abs(cuts / sigma) + 8 * mu * mu)
        bins = Bins(points, edges, edge_error, low=self._low(cuts), high=self._high(cuts))
        return bins.swapped() if swapped else bins

    def log_tail(self, tilts: _Array, cuts: _Array, *, swapped: bool) -> _Array:
        """Bound the tilted tail; see `log_tilted_tail`."""
        cuts = self.snapped(cuts)
        start = self._shift + 1 - int(cuts[0]) if swapped else int(cuts[-1])
        return log_tilted_tail(self._stddev, self._shift, start, tilts)

    def _low(self, cuts: _Array) -> Mass:
        first = 1 - int(cuts[0])
        return Mass(log_upper_tail(self._stddev, first + self._shift), log_upper_tail(self._stddev, first))

    def _high(self, cuts: _Array) -> Mass:
        first = int(cuts[-1])
        return Mass(log_upper_tail(self._stddev, first - self._shift), log_upper_tail(self._stddev, first))


def _brackets(z: _Array, mu: float, sigma: float) -> tuple[_Array, _Array]:
    r"""Return :math:`1 - He_2(z)/24\sigma^2 + 7He_4(z)/5760\sigma^4`, and by how much it rises at z - mu."""
    second, fourth = 1 / (24 * sigma**2), 7 / (5760 * sigma**4)
    square = z * z
    weight = 1 - (square - 1) * second + (square * (square - 6) + 3) * fourth
    step = -mu * (2 * z - mu)
    return weight, step * ((2 * square + step - 6) * fourth - second)


def _remainder(z: _Array, sigma: float) -> _Array:
    """Bound the error of the log of a mass that the formula leaves; see `WideDiscreteGaussianPair`."""
    square = z * z
    return np.asarray(1e-4 * (square * (square * (square + 15) + 45) + 15) / sigma**6)


@lru_cache(maxsize=4096)
def log_upper_tail(stddev: Fraction, start: int) -> float:
    """Return an upper bound on the log of the mass of all integers from ``start`` > 0 on."""
    exponent = fraction_down(Fraction(start * start) / (2 * stddev * stddev))
    return above(
        log_up(tail(start, stddev).upper) - log_down(normaliser(stddev).lower) - exponent, 4.0, exponent
    )


def log_tilted_tail(stddev: Fraction, shift: int, start: int, tilts: _Array) -> _Array:
    r"""Return upper bounds on the log of ``E_P[exp(c * loss)]`` over the integers from ``start`` on.

    Notes
    -----
    With :math:`a = (1 + c)s` it is :math:`e^{c(c+1)s^2/2\sigma^2} \sum_{x \ge k} e^{-(x-a)^2/2\sigma^2} / Z`.
    The sum over all integers is at most :math:`Z`: by Poisson summation its Fourier series in :math:`a` has
    positive coefficients. For :math:`k > a` the terms fall, so their sum is at most the first one and the
    integral; there :math:`Z \ge \max(1, \sigma\sqrt{2\pi})`.
    """
    sigma = float(stddev)
    moment = 0.5 * tilts * (tilts + 1) * float((shift / stddev) ** 2)
    gap = (start - (1 + tilts) * shift) / sigma
    beyond = np.maximum(gap * (1 - 8 * UNIT) - 8 * UNIT * (1 + tilts) * shift / sigma, 0.0)
    first = -0.5 * beyond * beyond - math.log(max(1.0, sigma * math.sqrt(2 * math.pi)))
    bound = np.where(gap > 0, np.minimum(np.logaddexp(first, log_ndtr(-beyond)), 0.0), 0.0)
    return np.asarray(moment * (1 + 16 * UNIT) + bound + 1e-9 + 16 * UNIT * np.abs(bound))
