"""Pairs of ordered values: products of Haar coefficients, asked of some respondents each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import checked_epsilon
from sfumato.local.device.domains.bins import Bins
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.grid import Grid
from sfumato.local.device.domains.tree import Shape
from sfumato.local.device.ranges import levels as client
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.consistency import from_coefficients
from sfumato.local.ranges.grid_estimate import GridErrorModel, GridEstimate
from sfumato.local.ranges.haar import Coefficients, coefficients_of
from sfumato.local.ranges.levels import LevelsProtocol
from sfumato.local.ranges.protocol import checked_oracle, whole_indices

__all__ = ["HaarGrid"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HaarGrid(LevelsProtocol[client.HaarGridRandomizer, GridEstimate]):
    r"""Each respondent reports the product of two signed Haar coefficients, of levels drawn by chance.

    Parameters
    ----------
    epsilon, weights
        See `HaarHistogram`; the levels are pairs, as `sfumato.local.device.HaarGridRandomizer` orders them.
    domains : pair of Domain or Bins
        Both values in their order; a person reports a pair ``(first, second)``. At most 2^24 pairs.
    oracle : type of Oracle, optional
        See `HaarHistogram`.

    Attributes
    ----------
    levels : tuple
        What is counted of each pair of levels.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: the levels do not depend on the values, and
    the report about them has all of epsilon; see `sfumato.local.device.HaarGridRandomizer`.

    *Error.* A rectangle is a product of two ranges: for each pair of levels, at most four pairs of nodes
    count for it, with the products of what they weigh in the ranges. Estimates are unbiased, and nothing is
    assumed of how shares lie within a part of the plane. `simulate` takes how many respondents have each pair
    as one row, the second value's changing fastest.

    References
    ----------
    The one-dimensional protocol is that of Cormode, Kulkarni, Srivastava (2019), "Answering range queries
    under local differential privacy"; tensor products of wavelets are Xiao, Wang, Gehrke (2010),
    "Differential privacy via wavelet transforms".

    Examples
    --------
    >>> both = HaarGrid(epsilon=1.0, domains=(Domain(range(16)), Domain(range(16))))
    >>> len(both.levels), both.device.width
    (24, 6)
    >>> estimate = both.simulate(np.full(256, 4_000), rng=1)
    >>> round(estimate.range((0, 0), (7, 15)).share, 1)
    0.5
    """

    wire_name: ClassVar[str] = "haar-grid"

    domains: tuple[Domain | Bins, Domain | Bins]
    oracle: type[Oracle[Any]] | None = None
    levels: tuple[Coefficients, ...] = field(init=False, repr=False, compare=False)

    def _levels(self) -> tuple[Coefficients, ...]:
        epsilon, given, domains = checked_epsilon(self.epsilon), self.oracle, self.domains
        checked_oracle(given)
        whole: object = domains
        if not isinstance(whole, tuple | list) or len(whole) != 2:
            _check.refuse_type("domains", "be two ordered domains", whole, "pass (first, second)")
        grid = Grid(*domains)
        Shape(len(grid), 2)
        sizes = _sizes(grid)
        self._set(domains=(grid.first, grid.second))
        return tuple(coefficients_of(epsilon, nodes, given) for nodes in sizes)

    def _make(self) -> client.HaarGridRandomizer:
        self._set(levels=self._levels())
        names = tuple(level.device.wire_name for level in self.levels)
        return self._client(protocols=names, domain=Grid(*self.domains))

    def error_model(self, reports: Sequence[float]) -> GridErrorModel:
        """Return the error model of estimates from so many reports of each pair of levels.

        Parameters
        ----------
        reports : sequence of float
            In the order of `levels`.

        Returns
        -------
        GridErrorModel
            The variances of rectangles.
        """
        moments = tuple(level.moments for level in self.levels)
        return GridErrorModel(
            shapes=self.device.shapes, pairs=self.device.pairs, moments=moments, reports=tuple(reports)
        )

    def estimate(self, totals: NDArray[np.int64], reports: int, *, simulated: bool = False) -> GridEstimate:
        """Return the estimated joint distribution; mostly called by an aggregator.

        Parameters
        ----------
        totals : int64 array, shape (totals,)
            An aggregator's totals.
        reports : int
            How many reports were accepted.
        simulated : bool
            Whether the randomness of any report followed from a seed.

        Returns
        -------
        GridEstimate
            Of all pairs.
        """
        asked = self.reports_of_parts(totals)
        sides = len(self.domains[0]), len(self.domains[1])
        return GridEstimate(
            domain=Grid(*self.domains),
            reports=reports,
            raw=self._shares(self.pieces(totals), asked) if reports else np.full(sides, np.nan),
            error_model=self.error_model(asked),
            loss=self.privacy_loss,
            simulated=simulated,
        )

    def _shares(self, totals: list[NDArray[np.int64]], asked: list[int]) -> Array:
        """Return unbiased estimates of the pairs' shares: both transforms, one after the other."""
        found = {(0, 0): np.ones((1, 1))}
        for at, (pair, level) in enumerate(zip(self.device.pairs, self.levels, strict=True)):
            nodes = self.device.nodes(at)
            reported = level.differences(totals[at], asked[at]) if asked[at] else np.zeros(nodes)
            found[pair] = reported.reshape(nodes)
        one, other = self.device.shapes
        rows = [
            from_coefficients(other, [found[at, to] for to in range(1, other.levels + 1)], found[at, 0])
            for at in range(one.levels + 1)
        ]
        return from_coefficients(one, [row.T for row in rows[1:]], rows[0].T).T

    def variance(self, n: int, first: Any, last: Any, shares: ArrayLike | None = None) -> Array:
        """Return the variances of the estimates of rectangles from ``n`` reports.

        Parameters
        ----------
        n : int
            At least 1, distributed over the levels as is expected.
        first, last : array of int, shape (rectangles, 2)
            Indices of the first and the last of both values, counted from 0.
        shares : array, shape (first values, second values), optional
            Of all pairs; even ones if left out.

        Returns
        -------
        array
            One for each rectangle.
        """
        count, sides = _check.integer("n", n, minimum=1), np.array([len(one) for one in self.domains])
        begin, end = (np.atleast_2d(whole_indices(*one)) for one in (("first", first), ("last", last)))
        whole = begin.shape == end.shape and begin.shape[1:] == (2,)
        if not whole or not ((begin >= 0) & (begin <= end) & (end < sides)).all():
            rule = f"be pairs of indices below {sides.tolist()}, none before its first"
            _check.refuse_type("last", rule, end, "count indices from 0")
        reported = np.full(sides, 1 / sides.prod()) if shares is None else np.asarray(shares, float)
        if reported.shape != tuple(sides) or not (reported >= 0).all() or abs(reported.sum() - 1) > 1e-9:
            _check.refuse_type(
                "shares", f"be {sides.tolist()} shares with sum 1", reported, "divide them by their sum"
            )
        reach = np.pad(reported.cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
        error_model = self.error_model([count * float(chance) for chance in self.device.chances])
        return error_model.variance(begin.T, end.T, np.minimum(reach, 1.0))


def _sizes(grid: Grid) -> list[int]:
    """Return how many pairs of nodes each pair of levels has, in the client's order."""
    sides = []
    for domain in (grid.first, grid.second):
        shape = Shape(len(domain), 2)
        sides.append([1, *(shape.nodes(level) for level in range(shape.levels))])
    return [one * other for one in sides[0] for other in sides[1]][1:]
