"""Errors of logistic coefficients from a noisy objective and a noisy information matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from sfumato.learning.estimators.vector_sums import SumSpecification, VectorSum
from sfumato.mechanisms.statistics.upper_triangle import symmetric_matrix, triangle
from sfumato.numerics.randomness.source import RandomSource

__all__ = ["LogisticInformation", "information_part"]

_Array = NDArray[np.float64]

_SURE: Final = 2.0


def information_part(size: int) -> SumSpecification:
    """Return the sum of :math:`p(1-p)zz^T` over rows z of entries from -1 to 1, as a weighted upper triangle.

    The L2 norm of a row's entries is :math:`p(1-p)|z|^2`, a quarter of the size at most.
    """
    return SumSpecification(norm=size / 4, entries=size * (size + 1) // 2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticInformation:
    r"""A released minimum of a noisy objective, and the released Fisher information there.

    Parameters
    ----------
    weights : float64 array of shape (size,)
        :math:`w`, with :math:`\nabla L(w) + \Lambda w + b = 0` for the loss L and noise b.
    centered : float64 array of shape (size, size)
        The noisy information of rows z whose positions are from -1 to 1, which tell slopes from the
        intercept better than those from 0 to 1 that the objective has.
    ridge : float
        :math:`\Lambda`.
    stddev, blur : float
        Standard deviations of the entries of b, and of the noise on w.
    deviation : float
        That of the noise of the matrix's entries on the diagonal, the square root of 2 less beside it.

    Notes
    -----
    To first order the estimate without privacy is :math:`w + H^{-1}(\Lambda w + b)`. So :math:`\tilde w = w +
    H^{-1}\Lambda w` has no bias by the ridge, and errs by :math:`H^{-1}(\text{score} + b)`: by sampling and
    noise.
    """

    weights: _Array
    centered: _Array
    ridge: float
    stddev: float
    blur: float
    deviation: float

    @classmethod
    def released(
        cls,
        weights: _Array,
        rows: _Array,
        total: VectorSum,
        source: RandomSource,
        *,
        ridge: float,
        stddev: float,
        blur: float,
    ) -> LogisticInformation:
        """Release the information of rows at released weights."""
        size = len(weights)
        i, j, weight = triangle(size)
        z, chances = rows @ _centering(size).T, expit(rows @ weights)
        products = z[:, i] * z[:, j] * weight * (chances * (1 - chances))[:, None]
        return cls(
            weights=weights,
            centered=symmetric_matrix(total.release(products, source)[0], size),
            ridge=ridge,
            stddev=stddev,
            blur=blur,
            deviation=total.deviation(),
        )

    @property
    def informative(self) -> bool:
        """Whether the information can be distinguished from its noise in every direction."""
        return bool(np.linalg.eigvalsh(self.centered)[0] > _SURE * self._noise)

    @property
    def matrix(self) -> _Array:
        """The information, of no less than its noise."""
        return self._uncentered(self.centered)

    @property
    def debiased(self) -> _Array:
        """The weights without the ridge's bias, to first order."""
        return np.asarray(self.weights + np.linalg.solve(self.matrix, self.ridge * self.weights))

    def errors(self, number: int, generator: np.random.Generator) -> _Array:
        """Draw so many errors of the debiased weights; the score's variance is the information."""
        size, center = len(self.weights), self.debiased
        values, vectors = np.linalg.eigh(self.matrix)
        score = generator.standard_normal((number, size)) @ (vectors * np.sqrt(values)).T
        linear = score + self.stddev * generator.standard_normal((number, size)) - self.ridge * center
        found = center + np.linalg.solve(self.matrix + self.ridge * np.eye(size), linear.T).T
        found += self.blur * generator.standard_normal((number, size))
        entries = self.deviation * generator.standard_normal((number, size * (size + 1) // 2))
        noise = np.stack([symmetric_matrix(one, size) for one in entries])
        matrices = self._uncentered(self.centered + noise)
        again = found + np.linalg.solve(matrices, self.ridge * found[..., None])[..., 0]
        return np.asarray(again - center)

    @property
    def _noise(self) -> float:
        """About the largest eigenvalue of noise alone."""
        return self.deviation * math.sqrt(len(self.weights))

    def _uncentered(self, centered: _Array) -> _Array:
        values, vectors = np.linalg.eigh(centered)
        values = np.maximum(values, max(self._noise / 2, 1e-9))
        back = np.linalg.inv(_centering(len(self.weights))) @ vectors
        return np.asarray((back * values[..., None, :]) @ np.swapaxes(back, -1, -2))


def _centering(size: int) -> _Array:
    """Return what makes positions from -1 to 1 of those from 0 to 1, before a one."""
    found = 2 * np.eye(size)
    found[:-1, -1], found[-1, -1] = -1.0, 1.0
    return found
