r"""Windows and their moments: what a report of a grid point is on average, and its square.

Reports are whole numbers y. Given the true grid point k, :math:`E\,y = a + g k` and :math:`E\,y^2 = s_0 + s_1
k + s_2 k^2` hold exactly for all k, as the window has the same size everywhere. So :math:`(y - a)/g` is an
unbiased report of k, and the reports also estimate the mean of :math:`k^2`.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.numeric.window import WindowRandomizer

__all__ = ["WindowMoments"]


@final
@dataclass(frozen=True, slots=True)
class WindowMoments:
    """The two moments of reports, as rational functions of the grid point.

    Parameters
    ----------
    steps : int
        Of the grid.
    offset, gain : Fraction
        Of the mean.
    square : tuple of Fraction
        The three coefficients of the mean square.
    """

    steps: int
    offset: Fraction
    gain: Fraction
    square: tuple[Fraction, Fraction, Fraction]

    @classmethod
    def of(cls, device: WindowRandomizer) -> WindowMoments:
        """Return those of a window.

        Notes
        -----
        A report is even on the window with probability P, and else even on the m grid points outside. The
        sums over those are the sums over all reports less the sums over the window, :math:`wk + w(w-1)/2` and
        :math:`wk^2 + w(w-1)k + (w-1)w(2w-1)/6`.
        """
        m, w, n = device.steps, device.window, device.outputs
        inside = device.inside.chance
        far = (1 - inside) / m
        lift = inside / w - far
        first, second = Fraction(w * (w - 1), 2), Fraction((w - 1) * w * (2 * w - 1), 6)
        every, squares = Fraction(n * (n - 1), 2), Fraction((n - 1) * n * (2 * n - 1), 6)
        gain = lift * w
        return cls(m, far * every + lift * first, gain, (far * squares + lift * second, gain * (w - 1), gain))

    def share(self, mean: float) -> float:
        """Return an unbiased estimate of the mean of the numbers, as a share of the way between bounds."""
        return (mean - float(self.offset)) / float(self.gain) / self.steps

    def scatter(self, mean: float, square: float) -> float:
        r"""Return how far the numbers differ: the variance of the shares, less what rounding may add to it.

        Parameters
        ----------
        mean, square : float
            Mean of the reports and of their squares.

        Notes
        -----
        With a mean grid point k and a mean square q of the grid points, :math:`q - k^2` is the variance of
        the grid points. Rounding adds at most 1/4 of a squared step to that, and no variance is negative or
        above that of numbers at both bounds.
        """
        k = self.share(mean) * self.steps
        zero, one, two = map(float, self.square)
        points = (square - zero - one * k) / two - k * k
        return float(np.clip(points - 0.25, 0.0, max(0.0, k * (self.steps - k)))) / self.steps**2

    def variance(self, shares: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variance of one report's part in the mean, rounding included, for true shares."""
        s = shares * self.steps
        low = np.minimum(np.floor(s), self.steps - 1)
        squares = s * s + (s - low) * (1 - s + low)
        zero, one, two = map(float, self.square)
        found = zero + one * s + two * squares - (float(self.offset) + float(self.gain) * s) ** 2
        return np.asarray(found / float(self.gain * self.steps) ** 2)

    def least(self, share: float) -> float:
        """Return the smallest variance of one report's part, rounding included, for a mean of the numbers.

        Notes
        -----
        It is linear in the mean square of the grid points, and rises with it as the gain is below 1. That
        square is smallest if all numbers are alike.
        """
        return float(self.variance(np.clip([share], 0.0, 1.0))[0])

    def sampled(self, reports: int, total: int, squares: int) -> float:
        """Return the variance of one report's part in the mean, as reports themselves show it."""
        if reports < 2:
            return float("inf")
        deviation = Fraction(squares, reports) - Fraction(total, reports) ** 2
        return float(deviation * reports / (reports - 1) / (self.gain * self.steps) ** 2)
