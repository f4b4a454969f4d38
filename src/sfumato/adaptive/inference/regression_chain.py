"""A Markov chain of populations of normal rows and of their exact moments, given noisy ones."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sfumato.adaptive.inference.noise_density import draw_counts, noise_log_density
from sfumato.adaptive.inference.normal_rows import Limit, NormalInverseWishart, NormalRows, RowMoments
from sfumato.mechanisms.statistics.upper_triangle import symmetric_matrix
from sfumato.numerics.distributions.discrete import DiscreteLaplaceDistribution, SymmetricDistribution

__all__ = ["RegressionChain", "inverse_gaussian"]

_Array = NDArray[np.float64]
_REACH: Final = 8
"""In standard deviations of the noise: where the number of rows is looked for first."""
_REMEMBERED: Final = (0.0, 0.6, 0.9, 0.98)
"""How much of the moments' noise a joint move leaves as it is, in turn: from new ones to small steps."""


@final
class RegressionChain:
    r"""A Markov chain whose stationary distribution is the posterior.

    Parameters
    ----------
    steps : int64 array
        Noisy entries of the second moments, in steps; the first is the number of rows.
    unit : Fraction
        What a step is worth.
    noise : SymmetricDistribution
        Of each entry, in steps.
    limits : tuple of two ints
        The smallest and the largest number of rows; a priori all between are as probable.
    prior : NormalInverseWishart
        Of the population.

    Notes
    -----
    Rows have the mean :math:`m + L z / \sqrt n` and the scatter :math:`L B B^T L^T`: L is the root of the
    population's covariance, z is standard normal, and B is Bartlett's triangle. A joint move leaves z as it
    is, and B but for the factor :math:`c = \sqrt{n'/n}`, and takes new noise, hence new moments, by a
    proposal that is reversible for the noise. The posterior of (n, s, z, B), for moments s, is that of (n, m,
    L, z, B) times the Jacobian :math:`n^{-k} \prod_i B_{ii}^{-2(k-i+1)}`, and B' has the Jacobian
    :math:`c^{k(k+1)/2}`. So the move is accepted by the ratio of the priors, of B's densities, and of
    :math:`n^{-k} c^{-k(k+1)/2}`.
    """

    __slots__ = ("_limits", "_log_noise", "_one", "_prior", "_scale",
                 "first", "moments", "noisy", "population", "variances")  # fmt: skip

    def __init__(
        self,
        steps: NDArray[np.int64],
        unit: int | Fraction,
        noise: SymmetricDistribution,
        limits: tuple[int, int],
        prior: NormalInverseWishart,
    ) -> None:
        self._prior, self._limits, size = prior, limits, len(prior.mean)
        self._log_noise, self._one = noise_log_density(noise), int(1 / Fraction(unit))
        self.first, self.noisy = int(steps[0]), np.asarray(steps[1:] * float(unit), dtype=np.float64)
        laplace = isinstance(noise, DiscreteLaplaceDistribution)
        self._scale = noise.stddev / math.sqrt(2) * float(unit) if laplace else None
        self.variances = np.full(len(self.noisy), noise.variance * float(unit) ** 2)
        count = min(max(round(self.first / self._one), limits[0]), limits[1])
        matrix = symmetric_matrix(np.append(float(count), self.noisy), size + 1) / count
        mean = np.clip(matrix[0, 1:], -1, 1)
        values, vectors = np.linalg.eigh(matrix[1:, 1:] - np.outer(mean, mean))
        covariance = (vectors * np.clip(values, 1e-3, 1)) @ vectors.T
        self.population = NormalRows(mean, covariance)
        self.moments = RowMoments(count, mean, covariance * count)

    def step(self, generator: np.random.Generator) -> None:
        """Draw the variances of the noise, population and moments together, and each given the other."""
        if self._scale is not None:
            error = np.maximum(np.abs(self.noisy - self.moments.entries()), 1e-9 * self._scale)
            self.variances = 1 / inverse_gaussian(1 / (self._scale * error), 1 / self._scale**2, generator)
        for remembered in _REMEMBERED:
            self._move_both(remembered, generator)
        self._move_moments(generator)
        self.population = self._prior.posterior(self.moments).draw(generator)

    def _move_both(self, remembered: float, generator: np.random.Generator) -> None:
        """Move population and moments, and leave the sample's standardised deviations as they are."""
        rows, count = self.moments, self.moments.number
        fresh = np.sqrt((1 - remembered**2) * self.variances) * generator.standard_normal(len(self.noisy))
        entries = self.noisy + remembered * (rows.entries() - self.noisy) + fresh
        after = count if remembered else self._count(None, self.noisy, generator)
        proposed = RowMoments.of(after, entries, len(rows.mean))
        try:
            root, scatter, other = (
                np.linalg.cholesky(one)
                for one in (self.population.covariance, rows.scatter, proposed.scatter)
            )
            factor = math.sqrt(after / count)
            triangle = np.linalg.solve(root, scatter)
            moved = np.linalg.solve(triangle.T * factor, other.T).T
            off = np.linalg.solve(root, rows.mean - self.population.mean) / factor
            population = NormalRows(proposed.mean - moved @ off, moved @ moved.T)
            ratio = self._prior.log_density(population) - self._prior.log_density(self.population)
        except np.linalg.LinAlgError:
            return
        size = len(rows.mean)
        ratio += _log_triangle(triangle * factor, after) - _log_triangle(triangle, count)
        ratio -= (size + size * (size + 1) / 4) * math.log(after / count)
        if _accepted(ratio, generator):
            self.population, self.moments = population, proposed

    def _move_moments(self, generator: np.random.Generator) -> None:
        """Draw the moments given the population, by their normal limit, and accept by their distribution."""
        limit = self.population.limit(np.sqrt(self.variances))
        noisy = limit.coordinates(self.noisy)
        count = self._count(limit, noisy, generator)
        coordinates = limit.draw(count, noisy, generator)
        proposed = RowMoments.of(count, limit.entries(coordinates), len(self.population.mean))
        now = limit.log_density(self.moments.number, limit.coordinates(self.moments.entries()))
        ratio = self.population.log_density(proposed) - limit.log_density(count, coordinates)
        if _accepted(ratio - self.population.log_density(self.moments) + now, generator):
            self.moments = proposed

    def _count(self, limit: Limit | None, noisy: _Array, generator: np.random.Generator) -> int:
        """Draw the number of rows from its noise, and from the normal limit if there is one."""
        if self._limits[0] == self._limits[1]:
            return self._limits[0]
        middle = round(self.first / self._one)
        reach = math.ceil(_REACH * float(self.variances.max()) ** 0.5) + 1

        def log_density(counts: NDArray[np.int64]) -> _Array:
            evidence = 0.0 if limit is None else limit.log_evidence(counts, noisy)
            return evidence + self._log_noise(self.first - counts * self._one)

        return int(draw_counts(log_density, (middle - reach, middle + reach), self._limits, 1, generator)[0])


def inverse_gaussian(mean: _Array, shape: float, generator: np.random.Generator) -> _Array:
    """Draw from inverse Gaussian distributions (Michael, Schucany, Haas 1976), with positive terms only.

    numpy's own ``wald`` subtracts, and before 2.0 could return 0 or less for large means.
    """
    half = mean * generator.standard_normal(len(mean)) ** 2 / (2 * shape)
    low = mean / (1 + half + np.sqrt(half * (half + 2)))
    return np.asarray(np.where(generator.random(len(mean)) * (mean + low) <= mean, low, mean**2 / low))


def _log_triangle(triangle: _Array, count: int) -> float:
    """Return the log density of Bartlett's triangle for so many rows, but for a constant."""
    freedom, diagonal = count - 1 - np.arange(len(triangle)), np.diag(triangle)
    found = (freedom - 1) * np.log(diagonal) - freedom / 2 * math.log(2) - gammaln(freedom / 2)
    return float(found.sum()) - float((triangle**2).sum()) / 2


def _accepted(ratio: float, generator: np.random.Generator) -> bool:
    """Whether a move with that log ratio is made."""
    return math.log(generator.random() or 5e-324) < ratio
