"""CoinPress for covariance matrices: from wide bounds on standard deviations, step by step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.release import Release
from sfumato.mechanisms.statistics.coinpress_vectors.clipped_moments import ClippedMoments
from sfumato.mechanisms.statistics.coinpress_vectors.stepwise_moments import (
    StepwiseMoments,
    as_center,
    least_noise,
)
from sfumato.mechanisms.statistics.upper_triangle import symmetric_matrix
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CoinPressCovariance"]

_Array = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoinPressCovariance(StepwiseMoments):
    r"""The covariance matrix of normal vectors, from wide bounds on their standard deviations.

    Parameters
    ----------
    columns : int
        How many numbers a record has, at most 256.
    stddevs : tuple of two numbers
        Public; the standard deviation of every direction lies between them.
    noise, steps, neighboring
        As in `CoinPress`.
    center : sequence of floats, optional
        Public; the population's mean, the origin unless given. Where it is unknown, release it by
        `CoinPressVectorMean` first.

    Notes
    -----
    Guarantee: that of the Gaussian noise of all steps, whatever the data, by the sensitivity of
    `ClippedMoments`. A step multiplies records by a matrix after which no direction has a variance above 1,
    clips them to the length that none of n exceeds but with a small chance, and measures their second
    moments. With what sampling (Davidson, Szarek 2001) and noise can add to any direction, the
    noisy matrix bounds the variances from above, and its inverse root is the next step's matrix: where
    sampling and noise together could add 1 to a variance, the matrix stays. The estimate has eigenvalues
    between the bounds' squares.

    References
    ----------
    Biswas, Dong, Kamath, Ullman, "CoinPress: practical private mean and covariance estimation" (NeurIPS
    2020), Algorithms 3 and 4 (MVC and MVCRec), here for private n and with discrete noise.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = CoinPressCovariance.calibrated(
    ...     epsilon=1.0, delta=1e-6, columns=2, stddevs=(0.1, 1000.0)
    ... )
    >>> data = np.random.default_rng(0).normal(size=(50_000, 2)) * [1.0, 20.0]
    >>> np.sqrt(np.diag(mechanism.release(data, rng=1).value)).round(1).tolist()
    [1.0, 20.0]
    """

    stddevs: tuple[float, float]
    center: Sequence[float] | None = None

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        columns: int,
        stddevs: tuple[float, float],
        center: Sequence[float] | None = None,
        steps: int | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> CoinPressCovariance:
        """Return the mechanism with the smallest noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            Delta must be positive.
        columns, stddevs, center, steps, neighboring
            As in the class.

        Returns
        -------
        CoinPressCovariance
        """
        return least_noise(
            lambda noise: cls(
                columns=columns,
                stddevs=stddevs,
                center=center,
                noise=noise,
                steps=steps,  # type: ignore[arg-type]
                neighboring=neighboring,
            ),
            epsilon,
            delta,
        )

    def _ratio(self) -> float:
        rule, remedy = "be (smallest, largest), positive and at most 1e12 apart", "pass (0.1, 1000.0)"
        given: object = self.stddevs
        if not isinstance(given, tuple | list) or len(given) != 2:
            _check.refuse("stddevs", rule, given, remedy)
        low, high = (_check.positive("stddevs", each) for each in given)
        if not low < high <= 1e12 * low or not 1e-100 <= low <= 1e100:
            _check.refuse("stddevs", rule, given, remedy)
        object.__setattr__(self, "stddevs", (low, high))
        object.__setattr__(self, "center", as_center(self.center, self.columns))
        return float(10 * (high / low) ** 3)

    def _query(self) -> ClippedMoments:
        return ClippedMoments(columns=self.columns, order=2, center=(0.0,) * self.columns, factors=1.0)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Estimate the covariance matrix.

        Parameters
        ----------
        value : numpy array of shape (n, columns)
            A vector for each record; NaN counts as 0.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of a symmetric array of shape (columns, columns).
        """
        source, (low, high) = random_source(rng), self.stddevs
        counts = self._counts(value, source)
        reach = self._length(self._risk / counts.largest)
        factors, found = np.eye(self.columns) / high, np.eye(self.columns)
        for step in range(self.steps):
            query = ClippedMoments(
                columns=self.columns, order=2, center=tuple(self.center or ()), factors=factors / reach
            )
            moments = self._measured(query, value, step, source)
            sums = symmetric_matrix(np.asarray(moments.value), self.columns) * reach**2
            found = sums / counts.estimate
            if step < self.steps - 1:
                noise = reach**2 * moments.stddev * self._noise_norm() / counts.smallest
                factors = self._narrowed(
                    factors, sums / counts.smallest, self._sampling(counts.smallest), noise
                )
        inverse = np.linalg.inv(factors)
        values, vectors = np.linalg.eigh(inverse @ found @ inverse.T)
        values = np.clip(values, low**2, high**2)
        bounded = (vectors * values) @ vectors.T
        return self._release_as(Release, (bounded + bounded.T) / 2, source)

    def _narrowed(self, factors: _Array, found: _Array, sampling: float, noise: float) -> _Array:
        """Return factors after which no direction has a variance above 1, from a noisy matrix of moments."""
        if not sampling + noise < 1:
            return factors
        values, vectors = np.linalg.eigh(found + (sampling + noise) * np.eye(self.columns))
        smallest = (self.stddevs[0] / self.stddevs[1]) ** 2
        root = (vectors / np.sqrt(np.maximum(values, smallest))) @ vectors.T
        narrowed = root @ factors
        # Without the conditions on the population, noise alone may let it grow in every step.
        possible = float(np.abs(narrowed).max()) < 1e3 / self.stddevs[0]
        return np.asarray(narrowed) if possible else factors

    def _sampling(self, count: float) -> float:
        """Return by how much a sample's variances in all directions are off, relative to the true ones."""
        off = math.sqrt(self.columns / count) + math.sqrt(2 * math.log(4 / self._risk) / count)
        return 2 * off + off**2

    def _noise_norm(self) -> float:
        """Return the norm of a symmetric matrix of noise of standard deviation 1, but for a small chance."""
        return math.sqrt(2 * self.columns) + math.sqrt(2 * math.log(4 / self._risk))
