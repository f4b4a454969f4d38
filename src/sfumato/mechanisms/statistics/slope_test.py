"""A test of a slope of linear regression, from the noisy second moments that `LeastSquares` releases."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.mechanisms.base.query import Query
from sfumato.mechanisms.base.release import LatticeRelease
from sfumato.mechanisms.statistics.hypothesis_test.p_value import HypothesisTestResult
from sfumato.mechanisms.statistics.least_squares import LeastSquares
from sfumato.mechanisms.statistics.null_draws import (
    Alternative,
    as_side,
    drawn_noise,
    null_draws,
    rank_on_side,
)
from sfumato.mechanisms.statistics.upper_triangle import triangle

__all__ = ["slope_test"]

_DRAWS: Final = 999
_RIDGE: Final = 1.5
_SMALLEST: Final = 1e-9
_Array = NDArray[np.float64]


def slope_test(
    release: LatticeRelease,
    feature: int = 0,
    *,
    query: LeastSquares | None = None,
    alternative: Alternative = "two-sided",
    draws: int = _DRAWS,
    rng: int | np.random.Generator | None = None,
) -> HypothesisTestResult:
    r"""Test whether a slope of linear regression is zero, given the other features.

    Parameters
    ----------
    release : LatticeRelease
        Of ``query``.
    feature : int
        Whose slope is tested, from 0.
    query : LeastSquares, optional
        What was released; needed only for a release that does not name its query.
    alternative : {"two-sided", "greater", "less"}
        On which side the slope is larger or smaller than zero.
    draws : int
        How many data sets are drawn under the null hypothesis; at least 19.
    rng : None, int or numpy Generator
        For these draws; they need no secrecy.

    Returns
    -------
    HypothesisTestResult
        Its statistic is the slope over its standard error, of sampling and noise; its p-value is the rank
        among those of drawn data sets.

    Notes
    -----
    Post-processing: the guarantee is that of the release, which keeps the number of records private. The null
    hypothesis leaves open all moments but one: a parametric bootstrap. Each data set is drawn with moments of
    its own, from samples of what the release reveals of them, in which the covariance of feature and response
    is put to what the other features explain. So the size is right in the limit of many records, for features
    and residuals that are nearly normal and seldom outside the bounds. Slopes are those of a ridge that the
    noise alone decides, 1.5 times its norm less the least eigenvalue of the features' moments.

    Alabi and Vadhan draw with the estimates themselves in the place of the true moments, and have a public
    number of records.

    References
    ----------
    Alabi, Vadhan, "Hypothesis testing for differentially private linear regression" (NeurIPS 2022).
    Ferrando, Wang, Sheldon, "Parametric bootstrap for differentially private confidence intervals" (AISTATS
    2022).

    Examples
    --------
    >>> from sfumato.mechanisms import Gaussian
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(5, 1.5, (2000, 2))
    >>> data = np.column_stack([x, 3 + 0.5 * x[:, 0] + rng.normal(0, 1, 2000)])
    >>> query = LeastSquares(bounds=((0, 10), (0, 10), (0, 10)))
    >>> release = Gaussian.for_query(query, epsilon=1.0, delta=1e-6).release(data, rng=1)
    >>> [slope_test(release, feature, rng=2).p_value < 0.01 for feature in (0, 1)]
    [True, False]
    """
    asked = _query(release, query)
    features = len(asked.bounds) - 1
    feature = _check.integer("feature", feature, remedy="pass 0 for the first feature")
    if feature >= features:
        _check.refuse("feature", f"be below {features}", feature, "pass 0 for the first feature")
    side = as_side(alternative)
    number, generator = null_draws(draws, rng)
    one = _Moments.of(np.asarray(asked.check_release(release).value)[None], features + 2)
    noise = float(release.stddev)
    value = float(one.statistic(feature, noise)[0])
    around = one.drawn(release, number, generator)
    drawn = around.without_slope(feature).drawn(release, number, generator)
    found = drawn.statistic(feature, noise)
    return HypothesisTestResult(value if side else abs(value), rank_on_side(value, found, side))


@final
@dataclass(frozen=True, slots=True)
class _Moments:
    """Second moments of many data sets, and what follows from them, all along the first axis."""

    moments: _Array
    """Of a one, the features and the response; without negative eigenvalues."""
    count: _Array
    mean: _Array
    covariance: _Array

    @classmethod
    def of(cls, entries: _Array, size: int) -> _Moments:
        """Return the moments that weighted entries of upper triangles are."""
        rows, columns, weights = triangle(size)
        matrix = np.zeros((len(entries), size, size))
        matrix[:, rows, columns] = matrix[:, columns, rows] = entries / weights
        moments = _without_negative(matrix, 0.0)
        count = np.maximum(size + 1.0, moments[:, 0, 0])
        mean = moments[:, 0, 1:] / count[:, None]
        around = moments[:, 1:, 1:] / count[:, None, None] - mean[:, :, None] * mean[:, None, :]
        return cls(moments, count, mean, _without_negative(around, _SMALLEST))

    def without_slope(self, feature: int) -> _Moments:
        """Return the same, with a covariance of feature and response that the other features explain."""
        others = [place for place in range(self.mean.shape[1] - 1) if place != feature]
        covariance = self.covariance.copy()
        covariance[:, feature, -1] = covariance[:, -1, feature] = 0.0
        if others:
            inner = self.covariance[:, others][:, :, others]
            slopes = np.linalg.solve(inner, self.covariance[:, others, -1:])
            explained = (self.covariance[:, feature : feature + 1, others] @ slopes)[:, 0, 0]
            covariance[:, feature, -1] = covariance[:, -1, feature] = explained
        return _Moments(self.moments, self.count, self.mean, covariance)

    def drawn(self, release: LatticeRelease, number: int, generator: np.random.Generator) -> _Moments:
        """Return noisy moments of normal samples with these means and covariances."""
        size = self.mean.shape[1]
        count = np.broadcast_to(np.rint(self.count), number)
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0))[:, None, :]
        normal = generator.standard_normal((number, size, 1))
        mean = self.mean + (root @ normal)[:, :, 0] / np.sqrt(count)[:, None]
        # Bartlett's decomposition of the scatter.
        lower = np.tril(generator.standard_normal((number, size, size)), -1)
        freedom = np.maximum(1.0, count[:, None] - 1 - np.arange(size))
        lower[:, np.arange(size), np.arange(size)] = np.sqrt(generator.chisquare(freedom))
        half = root @ lower
        one = np.concatenate([np.ones((number, 1)), mean], axis=1)
        moments = count[:, None, None] * one[:, :, None] * one[:, None, :]
        moments[:, 1:, 1:] += half @ half.transpose(0, 2, 1)
        rows, columns, weights = triangle(size + 1)
        exact = moments[:, rows, columns] * weights
        return _Moments.of(exact + drawn_noise(release, exact.shape, generator), size + 1)

    def statistic(self, feature: int, noise: float) -> _Array:
        """Return the slope over its standard error, by sampling and noise."""
        inner, cross = self.moments[:, :-1, :-1], self.moments[:, :-1, -1:]
        size = inner.shape[1]
        least = np.linalg.eigvalsh(inner)[:, 0]
        ridge = np.maximum(_SMALLEST, _RIDGE * noise * np.sqrt(size + 1) - least)
        inverse = np.linalg.inv(inner + ridge[:, None, None] * np.eye(size))
        found = (inverse @ cross)[:, :, 0]
        explained = 2 * (found * cross[:, :, 0]).sum(axis=1)
        explained -= np.einsum("ni,nij,nj->n", found, inner, found)
        residual = np.maximum(self.moments[:, -1, -1] - explained, noise) / (self.count - size)
        place = feature + 1
        sampling = residual * inverse[:, place, place]
        added = noise**2 * (1 + (found**2).sum(axis=1)) * (inverse[:, place] ** 2).sum(axis=1)
        return np.asarray(found[:, place] / np.sqrt(sampling + added))


def _without_negative(matrices: _Array, smallest: float) -> _Array:
    """Return the nearest symmetric matrices with eigenvalues of at least the smallest."""
    values, vectors = np.linalg.eigh(matrices)
    return np.asarray((vectors * np.maximum(values, smallest)[:, None, :]) @ vectors.transpose(0, 2, 1))


def _query(release: object, query: object) -> LeastSquares:
    """Return the query that was released: the one that is given, or else the one that the release names."""
    if not isinstance(release, LatticeRelease):
        _check.refuse_type("release", "be of a LeastSquares query", release, "release LeastSquares(...)")
    named = release.query.before_transformations() if isinstance(release.query, Query) else None
    found = named if query is None else query
    _check.instance("query", found, LeastSquares, "pass query=LeastSquares(...), the one that was released")
    return cast("LeastSquares", found)
