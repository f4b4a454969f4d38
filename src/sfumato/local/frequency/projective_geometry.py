"""Projective geometry response as a frequency oracle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.device.frequency import projective_geometry as client
from sfumato.local.frequency.block_design import NumberedOracle, balanced
from sfumato.local.frequency.support import Support
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.numerics.interval import Interval

__all__ = ["LineErrorModel", "ProjectiveGeometryResponse"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectiveGeometryResponse(NumberedOracle[client.ProjectiveGeometryResponseRandomizer]):
    r"""Each report is a point of a projective space, most likely orthogonal to the truth; for large domains.

    Parameters
    ----------
    epsilon, domain
        See `Oracle`; at most 2**24 categories.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one; see `sfumato.local.device`.

    The variance is within 5 % of :math:`\frac{4 e^\epsilon}{n (e^\epsilon - 1)^2}`, to first order the
    minimum that any protocol has, while :math:`e^\epsilon` is far below the number of categories, and is
    below some hundreds for tens of thousands of them (beyond, the last step would take too long). Reports
    have the bits of a category and few more. An aggregator stores one number for each of K points, between d
    and about :math:`d (e^\epsilon + 1)`, and its last step is :math:`O(e^\epsilon K \log d)` additions.

    *Counting supports.* Of the points with first coordinates :math:`y` (l free ones, a 1, zeros) and last
    coordinate s, those support x for which :math:`s = -x_l - \sum_{j<l} x_j y_j`. So for each l the counts
    are summed over all y, coordinate by coordinate: from y to x, with s shifted by their product.

    References
    ----------
    Feldman, Nelson, Nguyen, Talwar (2022), "Private frequency estimation via projective geometry".

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> oracle = ProjectiveGeometryResponse(epsilon=1.0, domain=Domain(range(65_536)))
    >>> round(oracle.variance(1_000_000) * 1_000_000, 3)
    3.77
    """

    wire_name: ClassVar[str] = "projective-geometry-response"

    @property
    def overlap(self) -> Fraction:
        """Part of the points that is orthogonal to both of two."""
        return self._orthogonal(2)

    def _orthogonal(self, values: int) -> Fraction:
        """Return the part of the points that is orthogonal to so many that are independent."""
        order, dimension = self.device.order, self.device.dimension
        return Fraction(order ** max(0, dimension - values) - 1, order**dimension - 1)

    @property
    def support(self) -> Support:
        """A report supports values of orthogonal points; both others are on no line with the truth."""
        return balanced(self.device, self.overlap, self._orthogonal(3))

    @property
    def error_model(self) -> ErrorModel:
        """How far estimates deviate."""
        return LineErrorModel(self.support, self.device.order, self.device.dimension - 1)

    def supports(self, totals: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many reports support each value.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.

        Returns
        -------
        ndarray of int64, shape (categories,)
            In the order of the domain.
        """
        order = self.device.order
        backward = -np.arange(order) % order
        found, first = np.zeros(1, np.int64), 1
        for length in range(self.device.dimension - 1):
            points = totals[first : first + order ** (length + 1)].reshape(-1, order)
            summed = _summed(points, order, length)[:, backward].T
            found, first = (found + summed).ravel(), order * first + 1
        return found[: len(self.domain)]

    def shares(self, totals: NDArray[np.int64], reports: int) -> NDArray[np.float64]:
        """Return unbiased estimates of the shares from counts of points.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.

        Returns
        -------
        ndarray of float64, shape (categories,)
            Unbiased estimates, in the order of the domain; NaN without reports.
        """
        return self.support.shares(self.supports(totals), reports)


def _summed(points: NDArray[np.int64], order: int, length: int) -> NDArray[np.int64]:
    """Return, for each x and s, the sum of ``points[y, s - <x, y>]`` over all y."""
    indices = np.arange(order)
    for _ in range(length):
        planes = points.reshape(order, -1, order)
        found = np.zeros((planes.shape[1], order**2), np.int64)
        for y in range(order):
            shifted = (indices - y * indices[:, None]) % order
            found += planes[y].take(shifted.ravel(), axis=1)
        points = found.reshape(-1, order)
    return points


@final
@dataclass(frozen=True, slots=True)
class LineErrorModel(ErrorModel):
    """The error model of supports of points, of which those on one line with a third overlap more.

    Parameters
    ----------
    support : Support
        Of values that are on no line with the truth.
    order, digits : int
        Values are numbers of so many digits in base ``order``: points of an affine space.

    Notes
    -----
    A report that supports two values supports all on their line. So if the truth is one of these, both are
    supported as often as the truth and any other.
    """

    support: Support
    order: int
    digits: int

    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in an estimate."""
        return self.support.variance(share)

    @property
    def reach(self) -> tuple[float, float]:
        """What a report adds to n times a share that it does not support, and to one that it does."""
        return self.support.reach

    def sum_variance(self, count: int) -> float:
        """Return the most that the variance of one report's part in the sum of all shares can be.

        Notes
        -----
        Through the truth go at most as many lines as there are other values over ``order - 1``, each with
        ``(order - 1) (order - 2)`` pairs of others: which lines are whole depends on the truth.
        """
        support = self.support
        more = (count - 1) * (self.order - 2) * (support.with_true - support.both_others) / support.gap**2
        return float(support.sum_variance(count) or 0.0) + max(0.0, float(more))

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return the shares whose estimate would deviate by at most ``z`` standard deviations."""
        return self.support.score(frequencies, reports, z)

    def interval(self, frequencies: Array, reports: int, risk: float, method: str) -> Interval[Array]:
        """Return an interval for each share; see `Support.interval`."""
        return self.support.interval(frequencies, reports, risk, method)

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part."""
        found = self.support.covariance(shares, rows)
        more = float((self.support.with_true - self.support.both_others) / self.support.gap**2)
        powers = self.order ** np.arange(self.digits)
        indices = np.arange(len(shares))[:, None] // powers % self.order
        padded = np.zeros(self.order**self.digits)
        padded[: len(shares)] = shares
        for at, row in enumerate(rows.tolist()):
            others = np.zeros(len(shares))
            for step in range(2, self.order):
                line = (indices[row] + step * (indices - indices[row])) % self.order
                others += padded[line @ powers]
            others[row] = 0.0
            found[at] += more * others
        return found
