"""The error of weighted sums of exact noise: how far they reach, with a proven chance."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from sfumato.mechanisms.factorization.code import Array

__all__ = ["LaplaceError", "LinearError", "NormalError"]


class LinearError(ABC):
    """The error of one answer or of many, known from public parameters."""

    @property
    @abstractmethod
    def stddev(self) -> Any:
        """Standard deviation of each answer's noise."""

    @abstractmethod
    def reach(self, outside: float) -> Any:
        """Return for each answer how far it lies from the truth, but for a chance of at most ``outside``."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NormalError(LinearError):
    r"""The error of :math:`\sum b_i Z_i`, where the :math:`Z_i` are discrete Gaussian.

    Parameters
    ----------
    stddev : float or array
        :math:`\sigma \sqrt{\sum b_i^2}`.
    slack : float or array
        :math:`\sum |b_i|/2`, and what float arithmetic may have lost.
    missed : float or array
        :math:`n/8\sigma^2` for n draws, with :math:`\sigma` in steps.

    Notes
    -----
    Let :math:`N_i` be normal with variance :math:`\sigma^2`. Rounded to the nearest integer it has the mass
    :math:`\int e^{-(i+u)^2/2\sigma^2} du/\sqrt{2\pi\sigma^2} \ge e^{-1/8\sigma^2}
    e^{-i^2/2\sigma^2}/\sqrt{2\pi\sigma^2}` at :math:`i` (over :math:`|u| \le 1/2`, where the mean of
    :math:`e^{-iu/\sigma^2}` is at least 1); and the discrete law's normaliser is at least
    :math:`\sqrt{2\pi\sigma^2}`, by Poisson summation. So the two laws differ by at most :math:`1 -
    e^{-1/8\sigma^2} \le 1/8\sigma^2` in total variation, and there is a coupling where all :math:`Z_i` are
    the rounded :math:`N_i` but for a chance of ``missed``. Then :math:`\sum b_i Z_i` lies within
    :math:`\sum |b_i|/2` of a normal variable of the stated deviation.
    """

    stddev: Any
    slack: Any
    missed: Any

    def reach(self, outside: float) -> Any:
        """Return the normal quantile, and the slack; infinity where nothing is proven."""
        left = outside - np.asarray(self.missed)
        quantile = np.where(left > 0, -ndtri(np.maximum(left, 1e-300) / 2), np.inf)
        return quantile * (1 + 1e-12) * self.stddev + self.slack


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LaplaceError(LinearError):
    r"""The error of :math:`\sum b_i Z_i`, where the :math:`Z_i` are discrete Laplace.

    Parameters
    ----------
    weights : array of shape (answers, entries)
        :math:`b`.
    scale : float
        Of the noise, :math:`t`, in the unit of the answers at a weight of 1; at least that of its steps.
    slack : array of shape (answers,)
        What float arithmetic may have lost.

    Notes
    -----
    With steps of 1, :math:`E e^{\lambda Z} = (1 - \sinh^2(\lambda/2)/\sinh^2(1/2t))^{-1} \le (1 - \lambda^2
    t^2)^{-1}` for :math:`|\lambda| < 1/t`, as :math:`\sinh(x)/x` rises. So :math:`P(|\sum b_i Z_i| \ge a) \le
    2 e^{-\lambda a} \prod (1 - \lambda^2 b_i^2 t^2)^{-1}` (Chernoff): the reach is the least over a fixed set
    of :math:`\lambda`, hence somewhat wider than it had to be.
    """

    weights: Array
    scale: float
    slack: Any

    @property
    def stddev(self) -> Any:
        """Standard deviation of each answer's noise, that of the continuous law, which is no less."""
        return math.sqrt(2) * self.scale * np.linalg.norm(self.weights, axis=1)

    def reach(self, outside: float) -> Any:
        """Return Chernoff's bound, and the slack."""
        sizes = np.abs(self.weights) * self.scale
        largest = np.maximum(sizes.max(axis=1), 1e-300)
        best = np.full(len(sizes), np.inf)
        for share in np.linspace(0.02, 0.998, 50):
            ratio = share * sizes / largest[:, np.newaxis]
            exponent = math.log(2 / outside) - np.log1p(-np.square(ratio)).sum(axis=1)
            best = np.minimum(best, exponent * largest / share)
        return best * (1 + 1e-9) + self.slack
