"""CoinPress for vectors: their mean from a wide ball, which each step makes smaller."""

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
from sfumato.numerics.randomness.source import Rng, random_source
from sfumato.privacy.neighboring import Neighboring

__all__ = ["CoinPressVectorMean"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoinPressVectorMean(StepwiseMoments):
    r"""The mean of vectors from a sub-Gaussian distribution, in a ball that each step makes smaller.

    Parameters
    ----------
    columns : int
        How many numbers a record has, at most 256.
    radius : float
        Public; the population's mean is at most so far from the centre.
    stddev : float
        Public; the distribution is sub-Gaussian with this parameter in each direction (for a normal one the
        largest standard deviation of a direction, or a bound on it).
    noise, steps, neighboring
        As in `CoinPress`.
    center : sequence of floats, optional
        Public; the origin unless given.

    Notes
    -----
    Guarantee: that of the Gaussian noise of all steps, whatever the data, by the sensitivity of
    `ClippedMoments`. A step clips records to the ball around its centre that all of n records lie in but with
    a small chance: the radius so far, and :math:`\sigma\sqrt{d + 2\sqrt{d \log(n/\beta)} + 2 \log(n/\beta)}`.
    The next one has the noisy mean as its centre, and the radius of what sampling, noise and the private n
    add, by the same bound for :math:`1/\beta` in the place of :math:`n/\beta`.

    References
    ----------
    Biswas, Dong, Kamath, Ullman, "CoinPress: practical private mean and covariance estimation" (NeurIPS
    2020), Algorithms 1 and 2 (MVM and MVMRec), here for private n and with discrete noise.

    Examples
    --------
    >>> import numpy as np
    >>> mechanism = CoinPressVectorMean.calibrated(
    ...     epsilon=1.0, delta=1e-6, columns=3, radius=1e5, stddev=2.0
    ... )
    >>> data = np.random.default_rng(0).normal([50.0, -300.0, 7.0], 2.0, (5000, 3))
    >>> mechanism.release(data, rng=1).value.round(0).tolist()
    [50.0, -300.0, 7.0]
    """

    radius: float
    stddev: float
    center: Sequence[float] | None = None

    @classmethod
    def calibrated(
        cls,
        *,
        epsilon: float,
        delta: float,
        columns: int,
        radius: float,
        stddev: float,
        center: Sequence[float] | None = None,
        steps: int | None = None,
        neighboring: Neighboring = Neighboring.ADD_REMOVE,
    ) -> CoinPressVectorMean:
        """Return the mechanism with the smallest noise that meets (epsilon, delta).

        Parameters
        ----------
        epsilon, delta : float
            Delta must be positive.
        columns, radius, stddev, center, steps, neighboring
            As in the class.

        Returns
        -------
        CoinPressVectorMean
        """
        return least_noise(
            lambda noise: cls(
                columns=columns,
                radius=radius,
                stddev=stddev,
                center=center,
                noise=noise,
                steps=steps,  # type: ignore[arg-type]
                neighboring=neighboring,
            ),
            epsilon,
            delta,
        )

    def _ratio(self) -> float:
        for name in ("radius", "stddev"):
            number = _check.positive(name, getattr(self, name))
            if not 1e-100 <= number <= 1e100:
                _check.refuse(name, "be from 1e-100 to 1e100", number, "pass values in other units")
            object.__setattr__(self, name, number)
        object.__setattr__(self, "center", as_center(self.center, self.columns))
        return float((self.radius / self.stddev) ** 1.5)

    def _query(self) -> ClippedMoments:
        return ClippedMoments(columns=self.columns, order=1, center=(0.0,) * self.columns, factors=1.0)

    def release(self, value: Any, rng: Rng = None) -> Release:
        """Estimate the mean.

        Parameters
        ----------
        value : numpy array of shape (n, columns)
            A vector for each record; NaN counts as 0.
        rng : None, int, numpy Generator or RandomSource
            None draws from the operating system's entropy; anything seeded only simulates.

        Returns
        -------
        Release
            Of an array of shape (columns,), at most ``radius`` from the centre.
        """
        source = random_source(rng)
        counts = self._counts(value, source)
        center, radius = np.array(self.center), self.radius
        for step in range(self.steps):
            reach = radius + self.stddev * self._length(self._risk / counts.largest)
            query = ClippedMoments(
                columns=self.columns, order=1, center=tuple(center.tolist()), factors=1 / reach
            )
            found = self._measured(query, value, step, source)
            moved = np.asarray(found.value) * reach / counts.estimate
            center = center + _shortened(moved, radius)
            proxy = self.stddev**2 / counts.smallest + (reach * found.stddev / counts.estimate) ** 2
            off = max(counts.largest / counts.estimate - 1, 1 - counts.smallest / counts.estimate) * radius
            radius = min(2 * radius, self._length(self._risk) * math.sqrt(proxy) + off)
        center = np.array(self.center) + _shortened(center - np.array(self.center), self.radius)
        return self._release_as(Release, center, source)


def _shortened(vector: NDArray[np.float64], length: float) -> NDArray[np.float64]:
    """Return a vector, or where it is longer one of that length in its direction."""
    norm = float(np.linalg.norm(vector))
    return np.asarray(vector * min(1.0, length / norm if norm > 0 else 1.0))
