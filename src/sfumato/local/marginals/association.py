"""The correlation of two attributes, and a test of their independence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import chdtrc, ndtri

from sfumato import _check
from sfumato.local.frequency.variance import Array
from sfumato.local.marginals.coefficients import Evidence
from sfumato.local.marginals.lattice import Attributes
from sfumato.local.surveys.inference.hypothesis_tests import Finding
from sfumato.numerics.interval import Interval

__all__ = ["Correlation", "correlated", "independent", "scores_of"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Correlation:
    """Pearson's correlation of the respondents' scores of two attributes.

    Parameters
    ----------
    value : float
        Not unbiased, as it is a ratio; NaN where an attribute's estimated variance is not positive.
    stddev : float
        To first order (the delta method).

    Examples
    --------
    >>> from sfumato.local import Domain, SampledMarginals
    >>> protocol = SampledMarginals.every(2, epsilon=4.0, domains=[Domain(["no", "yes"])] * 2)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([("no", "no"), ("yes", "yes")] * 5000, rng=1))
    10000
    >>> correlation = aggregator.estimate().correlation(0, 1)
    >>> correlation.interval(0.999).lower > 0.9
    True
    """

    value: float
    stddev: float

    def interval(self, level: float = 0.95) -> Interval[float]:
        """Return an interval that holds it with about the stated probability, for many reports.

        Parameters
        ----------
        level : float
            Wanted coverage, strictly between 0 and 1.

        Returns
        -------
        Interval
            Within [-1, 1].
        """
        half = -float(ndtri((1 - _check.unit_interval("level", level)) / 2)) * self.stddev
        if not np.isfinite(half):
            return Interval(-1.0, 1.0)
        ends = np.clip([self.value - half, self.value + half], -1.0, 1.0).tolist()
        return Interval(ends[0], ends[1])


def correlated(table: Array, covariance: Array, scores: tuple[Array, Array]) -> Correlation:
    r"""Return the correlation in a table.

    Parameters
    ----------
    table : array, shape (r, s)
        Unbiased estimates of the cells.
    covariance : array, shape (r s, r s)
        Theirs.
    scores : two arrays, of shapes (r,) and (s,)

    Notes
    -----
    With the scores u and v less their means and over their deviations, the derivative of the correlation
    :math:`\rho` by a cell is :math:`uv - \rho (u^2 + v^2) / 2`.
    """
    rows, columns = (np.broadcast_to(one, table.shape) for one in (scores[0][:, None], scores[1][None, :]))
    rows, columns = (one - np.sum(table * one) for one in (rows, columns))
    squares = float(np.sum(table * rows**2)), float(np.sum(table * columns**2))
    if not min(squares) > 0 or not np.isfinite(covariance).all():
        return Correlation(value=float("nan"), stddev=float("inf"))
    rows, columns = rows / np.sqrt(squares[0]), columns / np.sqrt(squares[1])
    value = float(np.sum(table * rows * columns))
    slope = (rows * columns - value / 2 * (rows**2 + columns**2)).ravel()
    return Correlation(value=value, stddev=float(np.sqrt(max(0.0, slope @ covariance @ slope))))


def independent(evidence: Evidence, attributes: Attributes, shares: Array) -> Finding:
    r"""Test whether two attributes are independent in the population that respondents are drawn from.

    Parameters
    ----------
    evidence : Evidence
    attributes : tuple of int
        Two that are together in a table.
    shares : array
        The distribution over their table that variances are of.

    Notes
    -----
    They are independent exactly where :math:`h_{jk} = \theta_{jk} - \theta_{j0} \theta_{0k}` is 0 for all j
    and k. These are (r - 1)(s - 1) numbers, whose covariance follows from that of the coefficients to first
    order: Wald's test, with the limit distribution. Reports are of respondents drawn independently, so that
    the coefficients have the covariance of `Evidence.scatter`, with the sampling of respondents inside.
    """
    first, second = evidence.lattice.shape(attributes)
    reported = evidence.coefficients[evidence.lattice.indices(attributes)].reshape(first, second)
    scatter = evidence.scatter(attributes, shares)
    degrees = (first - 1) * (second - 1)
    statistic = 0.0
    if np.isfinite(reported).all() and np.isfinite(scatter).all():
        gaps = (reported[1:, 1:] - np.outer(reported[1:, 0], reported[0, 1:])).ravel()
        slope = np.zeros((first - 1, second - 1, first, second))
        for row in range(1, first):
            for column in range(1, second):
                slope[row - 1, column - 1, row, column] = 1.0
                slope[row - 1, column - 1, row, 0] = -reported[0, column]
                slope[row - 1, column - 1, 0, column] = -reported[row, 0]
        matrix = slope.reshape(degrees, -1)
        statistic = float(gaps @ np.linalg.pinv(matrix @ scatter @ matrix.T, hermitian=True) @ gaps)
    return Finding(
        p_value=float(chdtrc(degrees, statistic)),
        method="Wald's chi-square, approximate",
        statistic=statistic,
        degrees=degrees,
    )


def scores_of(name: str, given: object, categories: int) -> Array:
    """Return the scores of an attribute's categories: their indices, unless others are given."""
    if given is None:
        return np.arange(categories, dtype=np.float64)
    scores = (
        np.asarray(given, dtype=np.float64) if isinstance(given, tuple | list | np.ndarray) else np.empty(0)
    )
    if scores.shape != (categories,) or not np.isfinite(scores).all() or scores.min() == scores.max():
        _check.refuse_type(name, f"be {categories} finite numbers, not all alike", given, "leave them out")
    return scores
