"""The estimate from many reports of vectors: an unbiased mean vector and intervals for its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from sfumato import _check
from sfumato.local.frequency.variance import Array
from sfumato.numerics.interval import Interval
from sfumato.privacy.loss import PrivacyLoss

__all__ = ["VectorEstimate"]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorEstimate:
    """The mean of the respondents' vectors.

    Parameters
    ----------
    reports : int
        How many were accepted.
    mean : array
        Unbiased, and perhaps longer than any true vector; NaN without reports.
    variances : array
        Of the parts of the mean, as the reports show them; infinite with fewer than two reports.
    radius : float
        The maximum norm of a true vector.
    loss : PrivacyLoss
        Of each respondent's own report.
    simulated : bool
        Whether a report's randomness followed from a seed.
    matrix : array, optional
        The covariance matrix of the mean, where the protocol stores ``pairs``.

    Notes
    -----
    The target is the mean of the respondents' own vectors. The variances are those of the reports as they
    differ from each other: too great by how much the respondents' own vectors differ, which is little for
    many dimensions.

    Examples
    --------
    >>> from sfumato.local import PrivUnit
    >>> protocol = PrivUnit(epsilon=4.0, dimension=3)
    >>> aggregator = protocol.aggregator()
    >>> aggregator.add_batch(protocol.randomize_batch([[0.6, 0.0, 0.8]] * 5_000, rng=1))
    5000
    >>> estimate = aggregator.estimate()
    >>> lower, upper, _ = estimate.bands(0.9999)
    >>> bool(((lower < [0.6, 0.0, 0.8]) & (upper > [0.6, 0.0, 0.8])).all())
    True
    >>> bool((estimate.projected() ** 2).sum() <= 1 + 1e-9)
    True
    """

    reports: int
    mean: Array
    variances: Array
    radius: float
    loss: PrivacyLoss = field(repr=False)
    simulated: bool = False
    matrix: Array | None = field(default=None, repr=False)

    @property
    def stddev(self) -> Array:
        """Estimated standard deviations of the parts of the mean."""
        return np.sqrt(self.variances)

    def covariance(self) -> Array:
        """Return the estimated covariance matrix of the mean, of which `variances` are the diagonal.

        Returns
        -------
        array, shape (dimension, dimension)
            NaN with fewer than two reports.

        Raises
        ------
        ParameterError
            If the protocol does not store ``pairs``.
        """
        return self._matrix().copy()

    def along(self, weights: ArrayLike) -> tuple[float, float]:
        """Return the estimate of a weighted sum of the mean's parts, and its standard deviation.

        Parameters
        ----------
        weights : array, shape (dimension,)
            Chosen without looking at the reports.

        Returns
        -------
        tuple of float
            The deviation is infinite with fewer than two reports.

        Raises
        ------
        ParameterError
            If the weights are no such array, or the protocol does not store ``pairs``.
        """
        given = np.asarray(weights)
        if given.shape != self.mean.shape or given.dtype.kind not in "iuf" or not np.isfinite(given).all():
            _check.refuse_type("weights", f"be {len(self.mean)} finite numbers", weights, "pass an array")
        variance = float(given @ self._matrix() @ given) if self.reports > 1 else math.inf
        return float(given @ self.mean), math.sqrt(max(variance, 0.0))

    def _matrix(self) -> Array:
        if self.matrix is None:
            remedy = "make the protocol with pairs=True before reports are counted"
            _check.refuse("pairs", "be True for a covariance matrix", False, remedy)
        return self.matrix

    def interval(self, level: float = 0.95) -> Interval[Array]:
        """Return an interval for each part, which holds it with about the stated probability or more.

        Parameters
        ----------
        level : float
            Wanted coverage of each, strictly between 0 and 1; for many reports.

        Returns
        -------
        Interval
            Arrays of shape (dimension,).
        """
        return self._within(1 - _check.unit_interval("level", level))

    def bands(self, level: float = 0.95) -> Interval[Array]:
        """Return intervals that hold all parts at once with about the stated probability (Bonferroni).

        Parameters
        ----------
        level : float
            Wanted coverage of all parts together, strictly between 0 and 1; for many reports.

        Returns
        -------
        Interval
            Arrays of shape (dimension,).
        """
        return self._within((1 - _check.unit_interval("level", level)) / len(self.mean))

    def _within(self, risk: float) -> Interval[Array]:
        if self.reports < 2:
            return Interval(np.full(len(self.mean), -self.radius), np.full(len(self.mean), self.radius))
        half = -float(ndtri(risk / 2)) * self.stddev
        low, high = (np.clip(self.mean + end, -self.radius, self.radius) for end in (-half, half))
        return Interval(low, high)

    def projected(self) -> Array:
        """Return the nearest vector to the mean that is no longer than a true one may be; not unbiased.

        Returns
        -------
        ndarray of float64, shape (dimension,)
            Of norm at most `radius`.
        """
        if not self.reports:
            _check.refuse("reports", "be at least 1 for a mean", self.reports, "collect some")
        return np.asarray(self.mean * min(1.0, self.radius / float(np.linalg.norm(self.mean))))
