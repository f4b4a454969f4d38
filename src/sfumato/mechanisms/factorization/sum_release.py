"""Noisy prefix sums with their errors: what a stream of sums gives out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from sfumato import _check
from sfumato.mechanisms.factorization.strategy import Array
from sfumato.mechanisms.release import Release, sealed
from sfumato.numerics.interval import Interval

__all__ = ["SumRelease"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SumRelease(Release):
    """The sum so far, or all of them.

    Parameters
    ----------
    value : float or array
        One sum, of the shape of a step's value; or all, with the steps along the first axis.
    stddev : float or array of shape (steps,)
        Standard deviation of the noise of each sum.
    slack : float or array of shape (steps,)
        How far a sum of discrete noise may lie from normal noise, and float arithmetic from the real numbers.
    missed : float or array of shape (steps,)
        A bound on the chance that it lies further.
    loss, neighboring, receipt, simulated
        As in `Release`; the loss is that of all steps together, to be charged once.
    """

    stddev: Any
    slack: Any
    missed: Any

    def __post_init__(self) -> None:
        for name in ("value", "stddev", "slack", "missed"):
            object.__setattr__(self, name, sealed(getattr(self, name)))

    def interval(self, level: float = 0.95, *, joint: bool = False) -> Interval[Any]:
        r"""Return intervals that hold each exact sum with at least the given chance.

        Parameters
        ----------
        level : float
            Strictly between 0 and 1.
        joint : bool
            Whether all intervals together are to hold with that chance.

        Returns
        -------
        Interval
            Of the shape of the value.

        Notes
        -----
        The target is the sum of the values on their grid, clamped as the mechanism says.

        *Coverage.* A sum's noise is :math:`\sum b_i Z_i`, the :math:`Z_i` discrete Gaussian of parameter
        :math:`\sigma`, in steps. Let :math:`N_i` be normal with variance :math:`\sigma^2`. Rounded to the
        nearest integer it has the mass :math:`\int e^{-(i+u)^2/2\sigma^2} du/\sqrt{2\pi\sigma^2} \ge
        e^{-1/8\sigma^2} e^{-i^2/2\sigma^2}/\sqrt{2\pi\sigma^2}` at :math:`i` (over :math:`|u| \le 1/2`; the
        mean of :math:`e^{-iu/\sigma^2}` is at least 1), and the discrete law's normaliser is at least
        :math:`\sqrt{2\pi\sigma^2}`. So the two laws differ by at most :math:`1 - e^{-1/8\sigma^2} \le
        1/8\sigma^2` in total variation, and there is a coupling where all :math:`Z_i` are the rounded
        :math:`N_i` but for a chance of ``missed``, :math:`n/8\sigma^2`. Then :math:`\sum b_i Z_i` lies within
        :math:`\sum |b_i|/2`, in ``slack``, of a normal variable. For float arithmetic the slack adds
        :math:`2^{-40} \sum |b_i|` times the greatest measurement.

        Examples
        --------
        >>> from sfumato.mechanisms import ContinualSum, Tree
        >>> counter = ContinualSum.calibrated(strategy=Tree(steps=8), sensitivity=1, epsilon=1.0, delta=1e-6)
        >>> release = counter.release(np.ones(8, dtype=np.int64), rng=3)
        >>> lower, upper, _ = release.interval(0.95, joint=True)
        >>> bool(((lower < np.arange(1, 9)) & (np.arange(1, 9) < upper)).all())
        True
        """
        level = _check.unit_interval("level", level)
        answers = np.size(self.value) if joint else 1
        outside = (1 - level) / answers - np.asarray(self.missed)
        with np.errstate(invalid="ignore"):
            reach = np.where(outside > 0, -ndtri(np.maximum(outside, 1e-300) / 2), np.inf) * (1 + 1e-12)
        half: Array = reach * self.stddev + self.slack
        value = np.asarray(self.value)
        half = half.reshape(half.shape + (1,) * (value.ndim - half.ndim))
        lower, upper = np.nextafter(value - half, -np.inf), np.nextafter(value + half, np.inf)
        return Interval(lower, upper) if value.ndim else Interval(float(lower), float(upper))
