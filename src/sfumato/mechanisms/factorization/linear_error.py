"""The error of weighted sums of exact noise: standard errors, and bounds with a proven probability."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.special import ndtri

from sfumato.mechanisms.factorization.laplace_sum_tail import chernoff_reach, laplace_reach
from sfumato.mechanisms.factorization.strategies.integer_strategy import Array

__all__ = ["LaplaceError", "LinearError", "NormalError"]

_EXACT = 1024


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
    :math:`e^{-iu/\sigma^2}` is at least 1); and the discrete distribution's normaliser is at least
    :math:`\sqrt{2\pi\sigma^2}`, by Poisson summation. So the two distributions differ by at most :math:`1 -
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
    terms : sequence of pairs of arrays
        For each answer the magnitudes of the :math:`b_i` that are not 0, and how often each occurs.
    scale : float
        Of the noise, in the unit of the answers at a weight of 1.
    lattice, floats : float or array
        :math:`\sum |b_i|` steps of the noise, and what float arithmetic may have lost.

    Notes
    -----
    A discrete Laplace variable is the difference of two geometric ones, each of which is an exponential
    variable rounded down: so it lies within a step of the difference of these, which is a Laplace variable.
    Hence :math:`\sum b_i Z_i` lies within :math:`\sum |b_i|` steps of a sum of such, for which see
    `laplace_reach`. Chernoff's bound needs no such allowance: with steps of 1 and :math:`t` the scale,
    :math:`E e^{\lambda Z} = (1 - \sinh^2(\lambda/2)/\sinh^2(1/2t))^{-1} \le (1 - \lambda^2 t^2)^{-1}`, as
    :math:`\sinh(x)/x` rises. The lesser of both is taken; beyond 1,024 answers, only the latter.
    """

    terms: Sequence[tuple[Array, Array]]
    scale: float
    lattice: Any
    floats: Any

    @property
    def stddev(self) -> Any:
        """Standard deviation of each answer's noise: that of the continuous noise, which is no smaller."""
        squares = [float(counts @ np.square(sizes)) for sizes, counts in self.terms]
        return self._shaped(self.scale * np.sqrt(2 * np.array(squares)))

    def reach(self, outside: float) -> Any:
        """Return the lesser of both bounds, and the slack."""
        scale = self.scale * (1 + 1e-9)
        found = scale * np.array([chernoff_reach(*terms, outside) for terms in self.terms])
        if len(self.terms) <= _EXACT:
            exact = scale * np.array([laplace_reach(*terms, outside) for terms in self.terms])
            found = np.minimum(found, exact + self.lattice)
        return self._shaped(found) + self.floats

    def _shaped(self, values: Array) -> Any:
        return values if np.ndim(self.floats) else float(values[0])
