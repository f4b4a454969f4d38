r"""The client half of windows: reports near the truth are likelier, by one factor, than all others.

Of the m + 1 points of a grid the k-th is true. Reports are whole numbers below N = w + m, and those from k to
k + w - 1 are the window of k: it has the same size for all k, and slides from one end to the other. One of
the window's numbers is reported with some chance P, each alike, and else one of the m others, each alike. The
width decides what it is good for: w = m = 1 is the best single bit, :math:`w = e^{-\epsilon/2} m` the best
for a mean, w = 1 for one that is shuffled, a wider one for whole distributions.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import Coin, truth_coin
from sfumato.local.device.base.record_layout import Records
from sfumato.local.device.numeric.randomizer import NumericRandomizer
from sfumato.numerics.randomness.source import RandomSource
from sfumato.numerics.randomness.uniform import uniform_integers

__all__ = [
    "OneBitMeanRandomizer",
    "PiecewiseMeanRandomizer",
    "SquareWaveRandomizer",
    "StochasticRoundingMeanRandomizer",
    "WindowRandomizer",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowRandomizer(NumericRandomizer):
    r"""A report from the window of the true grid point with probability P, and else from outside of it.

    Parameters
    ----------
    epsilon, bounds, steps
        See `NumericRandomizer`; ``steps`` is the m.

    Attributes
    ----------
    window : int
        The w, at most m.
    inside : Coin
        That of P: the largest multiple of :math:`2^{-64}` for which :math:`\frac{P/w}{(1-P)/m} \le
        e^\epsilon`.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: given the grid points, each report has
    the probability P/w or (1 - P)/m, exactly, and rounding mixes such distributions.
    """

    window: int = field(init=False, repr=False, compare=False)
    inside: Coin = field(init=False, repr=False, compare=False)

    @abstractmethod
    def _width(self) -> float:
        """Return the best width of a window, as a fraction of m."""

    def _choose(self) -> None:
        window = min(max(1, round(self.steps * self._width())), self.steps)
        self._set(window=window, inside=truth_coin(self.epsilon, window, self.steps))

    def _chances(self) -> dict[str, Any]:
        return {"steps": self.steps, "window": self.window, "inside": self.inside.threshold}

    @property
    def outputs(self) -> int:
        """The number N of different reports."""
        return self.window + self.steps

    @property
    def odds(self) -> Fraction:
        """How much likelier a report in the window is than one outside, exactly."""
        inside = self.inside.chance
        return inside * self.steps / ((1 - inside) * self.window)

    @property
    def _bits(self) -> int:
        return (self.outputs - 1).bit_length()

    def drawn(self, points: NDArray[np.int64], source: RandomSource) -> NDArray[np.int64]:
        """Draw a report for each grid point, as a whole number below `outputs`.

        Parameters
        ----------
        points : int64 array, shape (n,)
            Grid points, from 0 to `steps`.
        source : RandomSource

        Returns
        -------
        int64 array, shape (n,)
        """
        near = points + uniform_integers(self.window, len(points), source)
        far = uniform_integers(self.steps, len(points), source)
        far += np.where(far >= points, self.window, 0)
        return np.where(self.inside.flip(len(points), source), near, far)

    def _encode(self, positions: NDArray[np.int64], source: RandomSource) -> Records:
        return self.layout.pack(self.drawn(positions, source).astype(np.uint64))

    def well_formed(self, records: Records) -> NDArray[np.bool_]:
        """Return which records hold a number below `outputs`.

        Parameters
        ----------
        records : uint8 array, shape (records, width)

        Returns
        -------
        bool array, shape (records,)
            True where the record is one that this protocol can send.
        """
        return self.layout.unpack(records) < np.uint64(self.outputs)

    def probabilities(self, point: int) -> dict[bytes, Fraction]:
        """Return the probability of each report, were a grid point true: private, for small grids.

        Parameters
        ----------
        point : int
            A grid point, from 0 to `steps`.

        Returns
        -------
        dict of bytes to Fraction
            From each possible report to its exact probability; they sum to 1.
        """
        near, far = self.inside.chance / self.window, (1 - self.inside.chance) / self.steps
        records = self.layout.pack(np.arange(self.outputs, dtype=np.uint64))
        inside = range(point, point + self.window)
        return {row.tobytes(): near if at in inside else far for at, row in enumerate(records)}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneBitMeanRandomizer(WindowRandomizer):
    r"""A number rounded to one of its bounds by chance, and then reported by randomized response: one bit.

    Parameters
    ----------
    epsilon, bounds
        See `NumericRandomizer`.

    Notes
    -----
    Two papers have this distribution: Duchi, Jordan and Wainwright's for one dimension, and 1BitMean. For a
    number that is the fraction t of the way from the lower bound to the upper one the bit is 1 with
    probability :math:`\frac{1 + t (e^\epsilon - 1)}{e^\epsilon + 1}`.

    References
    ----------
    Duchi, Jordan, Wainwright (2018), "Minimax optimal procedures for locally private estimation"; Ding,
    Kulkarni, Yekhanin (2017), "Collecting telemetry data privately".

    Examples
    --------
    >>> len(OneBitMeanRandomizer(epsilon=1.0, bounds=(0.0, 24.0)).randomize(7.5))
    5
    """

    wire_name: ClassVar[str] = "one-bit-mean"

    chosen: ClassVar[tuple[str, ...]] = ("epsilon", "bounds")

    steps: int = field(init=False, default=1, repr=False)

    def _width(self) -> float:
        return 1.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PiecewiseMeanRandomizer(WindowRandomizer):
    r"""The window that is best for a mean, :math:`w = e^{-\epsilon/2} m`.

    Parameters
    ----------
    epsilon, bounds, steps
        See `WindowRandomizer`.

    References
    ----------
    Wang, Xiao, Yang, Zhao, Hui, Shin, Shin, Yu (2019), "Collecting and analyzing multidimensional data with
    local differential privacy": the continuous one, which this one is on a grid.

    Examples
    --------
    >>> PiecewiseMeanRandomizer(epsilon=1.0, bounds=(-1.0, 1.0)).width
    6
    """

    wire_name: ClassVar[str] = "piecewise-mean"

    def _width(self) -> float:
        return math.exp(-self.epsilon / 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StochasticRoundingMeanRandomizer(WindowRandomizer):
    r"""A number rounded to one of few grid points by chance, and then reported by randomized response: w = 1.

    Parameters
    ----------
    epsilon, bounds, steps
        See `WindowRandomizer`; the grid points are counted from 0 to ``steps``.

    References
    ----------
    Balle, Bell, Gascón, Nissim (2019), "The privacy blanket of the shuffle model", summation of real numbers.

    Examples
    --------
    >>> StochasticRoundingMeanRandomizer(epsilon=8.0, bounds=(0.0, 24.0), steps=12).window
    1
    """

    wire_name: ClassVar[str] = "stochastic-rounding-mean"

    steps: int = 16

    def _width(self) -> float:
        return 0.0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SquareWaveRandomizer(WindowRandomizer):
    r"""The window that is most informative about a whole distribution.

    Parameters
    ----------
    epsilon, bounds, steps
        See `WindowRandomizer`; up to 2^12 steps.

    Notes
    -----
    The width is :math:`\frac{w}{m} = \frac{\epsilon e^\epsilon - e^\epsilon + 1}{e^\epsilon (e^\epsilon - 1 -
    \epsilon)}`, which maximises the mutual information with an evenly distributed truth.

    References
    ----------
    Li, Wang, Lopuhaä-Zwakenberg, Li, Skoric (2020), "Estimating numerical distributions under local
    differential privacy", rounding before randomizing.

    Examples
    --------
    >>> SquareWaveRandomizer(epsilon=1.0, bounds=(0.0, 100.0)).width
    6
    """

    wire_name: ClassVar[str] = "square-wave"

    steps: int = 256

    def _width(self) -> float:
        if self.steps > 1 << 12:
            _check.refuse("steps", "be at most 4096 for a distribution", self.steps, "use fewer")
        x = self.epsilon
        if x < 1e-2:
            return 1 - 2 * x / 3
        return (x - 1 + math.exp(-x)) / (math.expm1(x) - x)
