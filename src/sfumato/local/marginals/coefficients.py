"""The estimated coefficients of marginals, and the variances of tables made of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato.local.frequency.consistency import norm_sub
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.local.marginals.lattice import Attributes, Lattice, synthesised
from sfumato.numerics.interval import Interval

__all__ = ["Evidence", "TableErrorModel"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evidence(ABC):
    """Unbiased estimates of the coefficients of some tables.

    Parameters
    ----------
    lattice : Lattice
    coefficients : array
        In the lattice's order; NaN where no report is about it.
    reports : int
        How many were accepted.
    """

    lattice: Lattice
    coefficients: Array
    reports: int

    @abstractmethod
    def scatter(self, attributes: Attributes, shares: Array) -> Array:
        """Return the covariance matrix of a table's estimated coefficients, were these its true shares.

        It is that of reports from respondents drawn anew for each.
        """

    @abstractmethod
    def precisions(self, width: int) -> Mapping[Attributes, float]:
        """Return how well the coefficients of sets of attributes are known: about one over their variance.

        The sets are all of ``width`` attributes that are together in a table, and narrower tables.
        """

    def table(self, attributes: Attributes) -> Array:
        """Return the estimated cells of a table all of whose coefficients are known."""
        chosen = self.coefficients[self.lattice.indices(attributes)]
        return np.asarray(synthesised(chosen[None, :], self.lattice.shape(attributes))[0])


@final
class TableErrorModel(ErrorModel):
    r"""How far a table's estimate deviates.

    Parameters
    ----------
    evidence : Evidence
    attributes : tuple of int

    Notes
    -----
    Estimates are sums over respondents, each of whom was drawn for one coefficient or table. Let K be the
    covariance if the respondents of each were drawn from all independently. They are drawn without
    replacement, so that the covariance of two of their means, alike or not, is less by :math:`1/(N-1)` of
    that of what these are means of. In a cell's estimate these add up to the cell's own indicator, as the
    estimate is unbiased whatever is true: so the covariance matrix is :math:`K - (\mathrm{diag} f - f
    f^T)/N`, but for a factor of N/(N-1) in the last term. It depends on nothing but the table's own shares f.
    """

    __slots__ = ("_found", "attributes", "evidence")

    def __init__(self, evidence: Evidence, attributes: Attributes) -> None:
        self.evidence, self.attributes = evidence, attributes
        self._found: tuple[Array, Array] | None = None

    def _matrix(self, shares: Array) -> Array:
        """Return the covariance matrix of one report's part; the last one is stored.

        What is no distribution is taken to the nearest one.
        """
        if self._found is None or not np.array_equal(self._found[0], shares):
            shape = self.evidence.lattice.shape(self.attributes)
            true = norm_sub(shares, shares) if np.isfinite(shares).all() else np.full(len(shares), np.nan)
            scatter = self.evidence.scatter(self.attributes, true)
            if np.isfinite(scatter).all():
                half = synthesised(scatter, shape)
                matrix = synthesised(np.ascontiguousarray(half.T), shape) * self.evidence.reports
                matrix -= np.diag(true) - np.outer(true, true)
            else:
                matrix = np.full(scatter.shape, np.inf)
            self._found = shares.copy(), matrix
        return self._found[1]

    def variance(self, share: Array) -> Array:
        """Return the variance of one report's part in each cell's estimate, were these all the shares."""
        return np.asarray(np.maximum(np.diag(self._matrix(share)), 0.0))

    def covariance(self, shares: Array, rows: NDArray[np.int64]) -> Array:
        """Return rows of the covariance matrix of one report's part, were these all the shares."""
        return self._matrix(shares)[rows]

    def score(self, frequencies: Array, reports: int, z: float) -> Interval[Array]:
        """Return z standard deviations to both sides, as they are at the estimate."""
        half = z * np.sqrt(self.variance(np.clip(frequencies, 0.0, 1.0)) / reports)
        known = np.isfinite(half) & np.isfinite(frequencies)
        return Interval(np.where(known, frequencies - half, 0.0), np.where(known, frequencies + half, 1.0))
