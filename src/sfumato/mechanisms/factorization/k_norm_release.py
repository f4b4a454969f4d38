"""The release of K-norm noise on a cube: standard errors and intervals."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, final

import numpy as np
import scipy
from scipy.special import gammaincc

from sfumato import _check
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.factorization.k_norm_noise import offset_weights
from sfumato.numerics.interval import Interval

__all__ = ["KNormRelease", "cube_stddev"]

_RADII: Final = 1 << 20
_WHOLE: Final = 1 << 52  # below it, numbers of steps are exact floats


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KNormRelease(Release):
    """A vector with noise uniform on a random cube.

    Parameters
    ----------
    stddev : float
        Standard deviation of the noise of each entry.
    scale, step : float
        Of the noise, and of its lattice, in the unit of the values.
    value, loss, neighboring, receipt, simulated, labels
        As in `Release`.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.mechanisms import KNorm
    >>> release = KNorm(dimension=20, sensitivity=1, scale=1).release(np.arange(20), rng=7)
    >>> isinstance(release, KNormRelease), release.value.shape
    (True, (20,))
    """

    stddev: float
    scale: float
    step: float

    def interval(self, level: float = 0.95, *, joint: bool = False) -> Interval[Any]:
        r"""Return an interval for each entry that holds the exact one with at least the given chance.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        joint : bool
            Whether all are to hold at once.

        Returns
        -------
        Interval of arrays of shape (dimension,)

        Notes
        -----
        The noise is uniform on the whole points of a cube :math:`[-r, r]^d`, in steps, for a random r of
        weight :math:`(2r+1)^d e^{-r/s}`. Up to a million radii are summed, which makes the interval the
        narrowest of whole steps. For finer grids: the noise is the rounding of a uniform point of
        :math:`[-r-1/2, r+1/2]^d`, with :math:`r \le
        d + s\Gamma` for a Gamma variable of shape d + 1: a geometric number is an exponential one rounded
        down. So its largest entry is at most :math:`s\Gamma + d + 1`; and one entry at most :math:`sU\Gamma +
        d + 1` with U uniform, where :math:`P(U\Gamma > x) = Q(d+1, x) - x Q(d, x)/d`.
        """
        outside = 1 - _check.unit_interval("level", level)
        d, scale = np.size(self.value), self.scale / self.step
        if (2 * d + 100) * scale < _RADII and outside > 1e-12:
            half = _cube_reach(d, scale, outside, joint) * self.step
        else:
            half = self._bound_on_reach(d, outside, joint)
        lower, upper = self.value - half, self.value + half
        if half.is_integer() and np.abs(self.value).max() < _WHOLE and self.value.dtype.kind == "i":
            return Interval(lower, upper)
        return Interval(np.nextafter(lower, -np.inf), np.nextafter(upper, np.inf))

    def _bound_on_reach(self, d: int, outside: float, joint: bool) -> float:
        def excess(x: float) -> float:
            whole = float(gammaincc(d + 1, x))
            return (whole if joint else whole - x * float(gammaincc(d, x)) / d) - outside

        top = 1.0
        while excess(top) > 0:
            top *= 2
        quantile = float(scipy.optimize.brentq(excess, 0.0, top, rtol=1e-12)) * (1 + 1e-9)
        return self.scale * quantile + (d + 1) * self.step


@lru_cache(maxsize=256)
def cube_stddev(d: int, scale: Fraction) -> float:
    """Return the standard deviation of one entry of cube noise, in steps, from that of the radius."""
    _, running = offset_weights(d, 1 / scale, 128 + 16 * d)
    chances = np.diff(np.array([float(Fraction(int(w), int(running[-1]))) for w in running]), prepend=0.0)
    j = np.arange(d + 1)
    mean, square = float(chances @ j), float(chances @ j**2)
    rate = float(1 / scale)
    q, gap = math.exp(-rate), -math.expm1(-rate)
    sums, variance = (d + 1) * q / gap, (d + 1) * q / gap**2
    # The noise is uniform on 2r + 1 integers: its variance is r (r + 1) / 3.
    squares = square + 2 * mean * sums + variance + sums**2
    return math.sqrt((squares + mean + sums) / 3)


@lru_cache(maxsize=64)
def _cube_reach(d: int, scale: float, outside: float, joint: bool) -> int:
    """Return the smallest t that one entry of cube noise, or the largest, exceeds with so little chance.

    Weights fall at least like :math:`e^{-r/2s}` from r = 2 d s on: those left out are below 1e-15 of all.
    """
    wide = 2.0 * np.arange(math.ceil((2 * d + 100) * scale) + 64) + 1
    logs = d * np.log(wide) - wide / (2 * scale)
    chances = np.exp(logs - logs.max())
    chances /= chances.sum()

    def beyond(t: int) -> float:
        inside = (2 * t + 1) / wide[t + 1 :]
        return float(chances[t + 1 :] @ (1 - (inside**d if joint else inside)))

    enough = outside * (1 - 1e-9) - 1e-14
    # Nothing is beyond the last.
    return bisect_left(range(len(wide) - 1), x=True, key=lambda t: beyond(t) <= enough)
