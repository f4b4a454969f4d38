"""A mechanism on finitely many places: a table of exact probabilities, verified for all pairs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.location.guarantee.geo_indistinguishability import GeoIndistinguishability
from sfumato.location.metrics.coordinates import as_prior, distance_matrix
from sfumato.location.metrics.place_metric import PlaceMetric
from sfumato.numerics import Rng, random_source

__all__ = ["PlaceMechanism", "largest_epsilon", "whole_weights"]

_BITS = 62


def whole_weights(probabilities: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return rows of whole numbers, near given probabilities, that add up to ``2**62`` each.

    Parameters
    ----------
    probabilities : ndarray of shape (n, m)
        Non-negative rows that add up to 1 nearly.

    Returns
    -------
    ndarray of int64
    """
    scaled = probabilities / probabilities.sum(axis=1, keepdims=True) * 2.0**_BITS
    weights: NDArray[np.int64] = np.rint(scaled).astype(np.int64)
    # The largest entry takes what rounding left over, a few units of its 2**50 and more.
    rows = np.arange(weights.shape[0])
    weights[rows, weights.argmax(axis=1)] += 2**_BITS - weights.sum(axis=1)
    return weights


def largest_epsilon(weights: NDArray[np.int64], distances: NDArray[np.float64]) -> float:
    """Return the largest log-ratio of two rows per distance, over all pairs and outputs, rounded up.

    Parameters
    ----------
    weights : ndarray of int64, shape (n, m)
        Rows with one sum.
    distances : ndarray of shape (n, n)
        Positive off the diagonal.

    Returns
    -------
    float
        Infinite if an output is possible at one place and not at another.
    """
    worst = 0.0
    possible = weights[:, weights.any(axis=0)]
    if not possible.all():
        return math.inf
    logs = np.log(possible.astype(float))
    for row in range(weights.shape[0] - 1):
        ratios = np.abs(logs[row + 1 :] - logs[row]).max(axis=1)
        # A logarithm of up to 43 is off by less than 1e-14; rows may differ where their logarithms do not.
        where = (weights[row + 1 :] != weights[row]).any(axis=1)
        if where.any():
            worst = max(worst, float(((ratios + 4e-14) / distances[row, row + 1 :])[where].max()))
    return worst * (1 + 1e-15)


@dataclass(frozen=True, slots=True, eq=False)
class PlaceMechanism:
    """Report one of finitely many places, by the row of a table that belongs to the true one.

    Parameters
    ----------
    metric : PlaceMetric
        The places and their distances.
    weights : ndarray of int64, shape (n, m)
        Row x has the probabilities of the m reports at place x, in units of ``2**-62``.
    epsilon : float or None
        The claim; None claims what the table has. It is verified over all pairs of places and all reports.

    Raises
    ------
    ParameterError
        If the rows do not add up to ``2**62``, or the table breaks the claim.

    Notes
    -----
    Guarantee: `guarantee`, with no slack, for a device at one of the places. Reports are drawn from the very
    integers that were verified. A position between places is rounded to one first, and then distances are
    those of the places.

    Examples
    --------
    >>> from sfumato.location import exponential_mechanism
    >>> cells = PlaceMetric.grid(4, 4, cell=100.0)
    >>> near = exponential_mechanism(cells, epsilon=0.01)
    >>> near.release([0, 5, 15]).shape
    (3,)
    >>> near.remap(prior=None).expected_loss() <= near.expected_loss()
    True
    """

    metric: PlaceMetric
    weights: NDArray[np.int64]
    epsilon: float | None = None
    _verified: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _check.instance("metric", self.metric, PlaceMetric, "pass PlaceMetric.grid(...) or another one")
        weights = np.array(self.weights)
        remedy = "build the table by exponential_mechanism or optimal_mechanism"
        if weights.dtype != np.int64 or weights.ndim != 2 or weights.shape[0] != self.metric.size:
            _check.refuse_type("weights", "be whole numbers with one row for each place", weights, remedy)
        if (weights < 0).any() or any(sum(row) != 2**_BITS for row in weights.tolist()):
            _check.refuse_state(
                "weights", "be non-negative and add up to 2**62 in each row", "a row does not", remedy
            )
        weights.flags.writeable = False
        object.__setattr__(self, "weights", weights)
        found = largest_epsilon(weights, self.metric.distances)
        object.__setattr__(self, "_verified", found)
        if self.epsilon is not None:
            claimed = _check.positive("epsilon", self.epsilon, "pass a number per metre")
            if found > claimed:
                _check.refuse_state(
                    "epsilon", "cover the table", f"two rows differ by more: {found:.9g} is needed", remedy
                )
        elif not 0 < found < math.inf:
            found_rule = "a report is possible at some places only, or all rows are equal"
            _check.refuse_state("weights", "have a finite, positive epsilon", found_rule, remedy)

    @property
    def verified_epsilon(self) -> float:
        """Largest log-ratio per distance over all pairs of places and all reports, rounded up."""
        return self._verified

    @property
    def guarantee(self) -> GeoIndistinguishability:
        """What one report satisfies: the claim, or what was verified if nothing was claimed."""
        epsilon = self._verified if self.epsilon is None else self.epsilon
        return GeoIndistinguishability(
            epsilon=epsilon, metric=self.metric.name, unit=self.metric.unit, places=self.metric.digest
        )

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each report (column) at each place (row)."""
        found: NDArray[np.float64] = self.weights / 2.0**_BITS
        return found

    def release(self, places: ArrayLike, rng: Rng = None) -> NDArray[np.int64]:
        """Return one report for each true place.

        Parameters
        ----------
        places : array_like of int, shape (n,)
            Indices of places.
        rng : None, int, numpy Generator or RandomSource
            None for noise that protects; anything else simulates.

        Returns
        -------
        ndarray of int64
            Indices of reports.

        Raises
        ------
        ParameterError
            If an index is none of a place.
        """
        given = np.asarray(places)
        if given.ndim != 1 or given.dtype.kind not in "iu":
            _check.refuse_type("places", "be a list of indices", given, "pass PlaceMetric.nearest(points)")
        if given.size and not bool(((given >= 0) & (given < self.metric.size)).all()):
            rule = f"be indices below {self.metric.size}"
            _check.refuse_state("places", rule, "one is not", "pass PlaceMetric.nearest(points)")
        words = (random_source(rng).words(given.size) >> np.uint64(64 - _BITS)).astype(np.int64)
        borders = self.weights.cumsum(axis=1)
        found = np.empty(given.size, np.int64)
        order = np.argsort(given, kind="stable")
        starts = np.searchsorted(given[order], np.arange(self.metric.size + 1))
        for place, row in enumerate(borders):
            mine = order[starts[place] : starts[place + 1]]
            if mine.size:
                found[mine] = np.searchsorted(row, words[mine], side="right")
        return found

    def expected_loss(self, prior: ArrayLike | None = None, loss: ArrayLike | None = None) -> float:
        """Return the mean loss of a report.

        Parameters
        ----------
        prior : array_like or None
            Probability of each place; None is uniform.
        loss : array_like of shape (n, m) or None
            Loss of report z at place x; None is the distance.

        Returns
        -------
        float

        Raises
        ------
        ParameterError
            If the prior is no distribution, or the loss has another shape.
        """
        weights = as_prior(prior, self.metric.size)
        return float((weights[:, None] * self.probabilities * self._loss(loss)).sum())

    def remap(self, prior: ArrayLike | None = None, loss: ArrayLike | None = None) -> PlaceMechanism:
        """Return the mechanism that moves each report to the place with the least expected loss.

        Parameters
        ----------
        prior : array_like or None
            Public probability of each place; None is uniform.
        loss : array_like of shape (n, n) or None
            Loss of place z at place x; None is the distance.

        Returns
        -------
        PlaceMechanism
            With the same guarantee: this is post-processing.

        Raises
        ------
        ParameterError
            If the prior is no distribution, or the loss has another shape.

        Notes
        -----
        Chatzikokolakis, ElSalamouny, Palamidessi, Efficient utility improvement for location privacy, PETS
        2017: the Bayesian remap. No other function of the report has a smaller expected loss under the prior.
        """
        return self.post_process(self.remapping(prior, loss))

    def remapping(self, prior: ArrayLike | None = None, loss: ArrayLike | None = None) -> NDArray[np.int64]:
        """Return for each report the place with the least expected loss given it.

        Parameters
        ----------
        prior, loss
            As for `remap`.

        Returns
        -------
        ndarray of int64, shape (m,)

        Raises
        ------
        ParameterError
            If the prior is no distribution, or the loss has another shape.
        """
        given = as_prior(prior, self.metric.size)
        costs = self.metric.distances if loss is None else distance_matrix("loss", loss)
        joint = given[:, None] * self.probabilities
        found: NDArray[np.int64] = (costs.T @ joint).argmin(axis=0)
        return found

    def post_process(self, reports: NDArray[np.int64] | Callable[[int], int]) -> PlaceMechanism:
        """Return the mechanism whose reports are a function of this one's.

        Parameters
        ----------
        reports : ndarray of int64, or callable
            The new report, an index of a place, for each old one.

        Returns
        -------
        PlaceMechanism
            With the same guarantee.

        Raises
        ------
        ParameterError
            If a new report is no place.
        """
        old = range(self.weights.shape[1])
        new = np.array([reports(z) for z in old] if callable(reports) else reports, np.int64)
        if new.shape != (len(old),) or new.min() < 0 or new.max() >= self.metric.size:
            _check.refuse_type("reports", "be a place for each report", new, "pass one index per report")
        weights = np.zeros((self.metric.size, self.metric.size), np.int64)
        np.add.at(weights.T, new, self.weights.T)
        return PlaceMechanism(self.metric, weights, self.guarantee.epsilon)

    def _loss(self, loss: ArrayLike | None) -> NDArray[np.float64]:
        costs = self.metric.distances if loss is None else np.asarray(loss, dtype=float)
        if costs.shape != self.weights.shape:
            _check.refuse_type("loss", "have the shape of the table", costs, "pass loss[place, report]")
        return costs
