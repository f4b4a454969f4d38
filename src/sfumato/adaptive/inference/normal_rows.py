"""Normal rows: the distribution of their second moments, exact and in the limit, and the conjugate prior."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import multigammaln

from sfumato.mechanisms.statistics.upper_triangle import entries_of, triangle

__all__ = ["Limit", "NormalInverseWishart", "NormalRows", "RowMoments"]

_Array = NDArray[np.float64]


class RowMoments(NamedTuple):
    """How many rows there are, their mean, and the scatter around it."""

    number: int
    mean: _Array
    scatter: _Array

    def entries(self) -> _Array:
        """Return the weighted upper triangle of the sum of zz^T, a one before each row, without the count."""
        one = np.append(1.0, self.mean)
        found = self.number * np.outer(one, one)
        found[1:, 1:] += self.scatter
        return entries_of(found)[1:]

    @staticmethod
    def of(count: int, entries: _Array, size: int) -> RowMoments:
        """Return the moments of so many rows whose entries are given; the inverse of `entries`."""
        rows, columns, weights = triangle(size + 1)
        matrix = np.zeros((size + 1, size + 1))
        matrix[rows, columns] = matrix[columns, rows] = np.append(count, entries) / weights
        mean = matrix[0, 1:] / count
        return RowMoments(count, mean, matrix[1:, 1:] - count * np.outer(mean, mean))


class Limit(NamedTuple):
    """The normal limit of the entries of one row, in coordinates where they are independent.

    Attributes
    ----------
    axes : float64 array
        Columns are the coordinates' axes, of entries divided by their noise.
    noise : float64 array
        Standard deviation of the noise of each entry.
    mean, variance : float64 array
        In those coordinates, where the noise has variance 1.
    """

    axes: _Array
    noise: _Array
    mean: _Array
    variance: _Array

    def coordinates(self, entries: _Array) -> _Array:
        """Return entries in the coordinates."""
        return np.asarray((entries / self.noise) @ self.axes)

    def entries(self, coordinates: _Array) -> _Array:
        """Return entries from their coordinates."""
        return np.asarray(self.axes @ coordinates * self.noise)

    def log_density(self, count: int, coordinates: _Array) -> float:
        """Return the log density of the sum over so many rows, but for a constant."""
        variance = count * self.variance
        squares = (coordinates - count * self.mean) ** 2 / variance
        return -float((squares + np.log(variance)).sum()) / 2

    def log_evidence(self, counts: NDArray[np.int64], noisy: _Array) -> _Array:
        """Return the log density of the noisy sum over so many rows, for each number of rows."""
        variance = counts[:, None] * self.variance + 1
        squares = (noisy - counts[:, None] * self.mean) ** 2 / variance
        return np.asarray(-(squares + np.log(variance)).sum(axis=1) / 2)

    def draw(self, count: int, noisy: _Array, generator: np.random.Generator) -> _Array:
        """Draw the sum over so many rows given the noisy one."""
        variance = count * self.variance
        weight = variance / (variance + 1)
        middle = weight * noisy + (1 - weight) * count * self.mean
        return np.asarray(middle + np.sqrt(weight) * generator.standard_normal(len(noisy)))


@final
@dataclass(frozen=True, slots=True, eq=False)
class NormalRows:
    """A normal population of rows."""

    mean: _Array
    covariance: _Array

    def log_density(self, rows: RowMoments) -> float:
        """Return the log density of the entries of `RowMoments`; minus infinity where no rows have them."""
        size, count = len(self.mean), rows.number
        try:
            root, scatter = np.linalg.cholesky(self.covariance), np.linalg.cholesky(rows.scatter)
        except np.linalg.LinAlgError:
            return -math.inf
        far = np.linalg.solve(root, rows.mean - self.mean)
        inside = np.linalg.solve(root, scatter)
        log_root, log_scatter = (2 * float(np.log(np.diag(one)).sum()) for one in (root, scatter))
        freedom = count - 1
        found = (size * math.log(count) - log_root - count * float(far @ far)) / 2
        found += (freedom - size - 1) / 2 * log_scatter - float((inside**2).sum()) / 2
        found -= freedom / 2 * (size * math.log(2) + log_root) + float(multigammaln(freedom / 2, size))
        return found - size * math.log(count)  # the sums are the means times the count

    def limit(self, noise: _Array) -> Limit:
        """Return the limit of the entries' distribution, beside noise of these standard deviations."""
        rows, columns, weights = (part[1:] for part in triangle(len(self.mean) + 1))
        one = np.append(1.0, self.mean)
        around = np.zeros((len(one), len(one)))
        around[1:, 1:] = self.covariance
        outer = np.outer(one, one)
        # Isserlis' theorem: both pairings of two deviations, and those of one with the means of the others.
        pairs = [(rows, rows, columns, columns), (rows, columns, columns, rows)]
        covariance = np.zeros((len(rows), len(rows)))
        for a, b, c, d in pairs:
            first, second = np.ix_(a, b), np.ix_(c, d)
            covariance += around[first] * around[second]
            covariance += outer[first] * around[second] + around[first] * outer[second]
        scale = weights / noise
        variance, axes = np.linalg.eigh(covariance * np.outer(scale, scale))
        mean = (outer + around)[rows, columns] * scale
        floor = 1e-12 * float(variance[-1])
        return Limit(axes, noise, np.asarray(mean @ axes), np.maximum(variance, floor))

    def draw(self, count: int, generator: np.random.Generator) -> RowMoments:
        """Draw the moments of so many rows."""
        root = np.linalg.cholesky(self.covariance)
        mean = self.mean + root @ generator.standard_normal(len(root)) / math.sqrt(count)
        half = root @ _bartlett(len(root), count - 1, generator)
        return RowMoments(count, mean, half @ half.T)


@final
@dataclass(frozen=True, slots=True, eq=False)
class NormalInverseWishart:
    """The conjugate prior of normal rows: of their mean given their covariance, and of the covariance."""

    mean: _Array
    records: float
    freedom: float
    scatter: _Array

    def posterior(self, rows: RowMoments) -> NormalInverseWishart:
        """Return the posterior given rows."""
        records = self.records + rows.number
        off = rows.mean - self.mean
        weight = self.records * rows.number / records
        return NormalInverseWishart(
            self.mean + rows.number / records * off,
            records,
            self.freedom + rows.number,
            self.scatter + rows.scatter + weight * np.outer(off, off),
        )

    def log_density(self, population: NormalRows) -> float:
        """Return the log density of a population's mean and covariance, but for a constant."""
        size, root = len(self.mean), np.linalg.cholesky(population.covariance)
        off = np.linalg.solve(root, population.mean - self.mean)
        inside = np.linalg.solve(root, np.linalg.cholesky(self.scatter))
        squares = float((inside**2).sum()) + self.records * float(off @ off)
        return -(self.freedom + size + 2) * float(np.log(np.diag(root)).sum()) - squares / 2

    def draw(self, generator: np.random.Generator) -> NormalRows:
        """Draw a population."""
        size = len(self.mean)
        inverse = np.linalg.inv(_bartlett(size, self.freedom, generator))
        root = np.linalg.cholesky(self.scatter) @ inverse.T
        mean = self.mean + root @ generator.standard_normal(size) / math.sqrt(self.records)
        return NormalRows(mean, root @ root.T)


def _bartlett(size: int, freedom: float, generator: np.random.Generator) -> _Array:
    """Draw a root of a standard Wishart matrix (Bartlett's decomposition)."""
    lower = np.tril(generator.standard_normal((size, size)), -1)
    lower[np.diag_indices(size)] = np.sqrt(generator.chisquare(freedom - np.arange(size)))
    return lower
