"""Hierarchical histograms: every level of a tree over the values, asked of some respondents each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.device.base.bernoulli import checked_epsilon
from sfumato.local.device.domains.categories import Domain
from sfumato.local.device.domains.tree import Shape
from sfumato.local.device.ranges import levels as client
from sfumato.local.frequency.local_hashing import OptimalLocalHashing
from sfumato.local.frequency.oracle import Oracle
from sfumato.local.frequency.randomized_response import RandomizedResponse
from sfumato.local.frequency.variance import Array
from sfumato.local.ranges.consistency import from_nodes
from sfumato.local.ranges.level_moments import LevelMoments
from sfumato.local.ranges.paired_variance import LARGEST_PAIRED, PairedErrorModel
from sfumato.local.ranges.protocol import RangeProtocol, checked_oracle, checked_size, range_ends
from sfumato.local.ranges.tree_variance import TreeErrorModel

__all__ = ["HierarchicalHistogram", "oracle_of", "planned_branching"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalHistogram(RangeProtocol[client.HierarchicalHistogramRandomizer]):
    r"""Each respondent reports the node of a tree that their value lies in, at one level drawn by chance.

    Parameters
    ----------
    epsilon, domain, weights
        See `RangeProtocol`.
    branching : int, optional
        Children of a node; that with the smallest mean squared error over all ranges if left out. One as
        great as the domain makes a flat histogram.
    oracle : type of Oracle, optional
        The frequency oracle of all levels; if left out, randomized response for levels of few nodes and
        `OptimalLocalHashing` for the others. Variances are quick where estimates of any two categories go
        together alike, as in these, unary encodings, `SubsetSelection`, `OneBitHadamard` and
        `SummationHistogram`. Of others, such as `ProjectiveGeometryResponse`, a level has at most 4096 nodes.

    Attributes
    ----------
    levels : tuple of Oracle
        The oracle of each level, the coarsest first.

    Notes
    -----
    Guarantee: :math:`\epsilon`-DP of each report, replace-one: the level does not depend on the value, and
    the report about it has all of epsilon; see `sfumato.local.device.HierarchicalHistogramRandomizer`.

    *Error.* A range of any length is made of a few nodes of each level: its variance grows with the square of
    the logarithm of the domain, and that of a flat histogram with the length. Consistency is by weighted
    least squares; see `sfumato.local.ranges.consistency`. Variances are exact (`error_model`).

    References
    ----------
    Cormode, Kulkarni, Srivastava (2019), "Answering range queries under local differential privacy", HH;
    Hay, Rastogi, Miklau, Suciu (2010).

    Examples
    --------
    >>> from sfumato.local import Domain
    >>> ages = HierarchicalHistogram(epsilon=1.0, domain=Domain(range(100)))
    >>> ages.branching, ages.device.width
    (5, 7)
    >>> estimate = ages.simulate(np.full(100, 10_000), rng=1)
    >>> round(estimate.range(18, 64).share, 2), estimate.quantile(0.5)
    (0.47, 49)
    """

    wire_name: ClassVar[str] = "hierarchical-histogram"

    branching: int | None = None
    oracle: type[Oracle[Any]] | None = None
    levels: tuple[Oracle[Any], ...] = field(init=False, repr=False, compare=False)

    def _levels(self) -> tuple[Oracle[Any], ...]:
        epsilon, given = checked_epsilon(self.epsilon), self.oracle
        checked_oracle(given)
        size = checked_size(self.domain)
        branching = planned_branching(epsilon, size, given) if self.branching is None else self.branching
        shape = Shape(size, branching)
        self._set(branching=shape.branching)
        return tuple(oracle_of(epsilon, nodes, given) for nodes in _nodes(shape))

    def error_model(self, reports: Sequence[float]) -> TreeErrorModel | PairedErrorModel:
        """Return the error model of estimates from so many reports of each level.

        Parameters
        ----------
        reports : sequence of float
            In the order of `levels`.

        Returns
        -------
        RangeErrorModel
            The variances of ranges.
        """
        return _error_model(self.device.shape, self.levels, reports)

    def _leaves(self, totals: list[NDArray[np.int64]], asked: list[int]) -> Array:
        parts = zip(self.levels, totals, asked, strict=True)
        shares = [
            level.shares(own, count) if count else np.zeros(len(level.domain)) for level, own, count in parts
        ]
        return from_nodes(self.device.shape, shares, self.error_model(asked).alphas)


def oracle_of(epsilon: float, nodes: int, kind: type[Oracle[Any]] | None) -> Oracle[Any]:
    """Return the oracle of a level: of the kind that is asked for, or the one with less error of two."""
    if kind is None:
        few = nodes < 3 * math.exp(epsilon) + 2
        kind = RandomizedResponse if few else OptimalLocalHashing
    return _made(epsilon, nodes, kind)


@lru_cache(maxsize=256)
def _made(epsilon: float, nodes: int, kind: type[Oracle[Any]]) -> Oracle[Any]:
    oracle = kind(epsilon=epsilon, domain=Domain(range(nodes)))
    if nodes > LARGEST_PAIRED and not oracle.error_model.alike:
        rule = f"have estimates of which any two are correlated alike, for more than {LARGEST_PAIRED} nodes"
        _check.refuse("oracle", rule, kind, "use OptimalLocalHashing or OneBitHadamard")
    return oracle


def planned_branching(epsilon: float, size: int, kind: type[Oracle[Any]] | None = None) -> int:
    """Return the branching with the smallest mean squared error over all ranges.

    Parameters
    ----------
    epsilon : float
    size : int
        Of the domain.
    kind : type of Oracle, optional
        See `HierarchicalHistogram`.

    Notes
    -----
    Of each number of levels the smallest branching that suffices is tried, as it leaves the fewest nodes out;
    all values are taken as alike frequent. The number of reports does not matter. A kind whose estimates
    are not correlated alike is planned for as if left out.
    """
    if kind is not None and not _made(epsilon, 2, kind).error_model.alike:
        kind = None
    ranges = range_ends(size, None)
    reach = np.arange(size + 1) / size

    def error(branching: int) -> float:
        shape = Shape(size, branching)
        levels = [oracle_of(epsilon, nodes, kind) for nodes in _nodes(shape)]
        error_model = _error_model(shape, levels, [1e6 / shape.levels] * shape.levels)
        return float(error_model.variance(*ranges, reach).mean())

    return min(_branchings(size), key=error)


def _branchings(size: int) -> list[int]:
    """Return for each number of levels the smallest branching that suffices, the largest first."""
    found: list[int] = []
    for levels in range(1, size.bit_length() + 1):
        branching = max(2, math.ceil(size ** (1 / levels)) - 1)
        while branching**levels < size:
            branching += 1
        if branching not in found:
            found.append(branching)
    return found


def _nodes(shape: Shape) -> Iterable[int]:
    return (shape.nodes(level) for level in range(1, shape.levels + 1))


@lru_cache(maxsize=256)
def _moments(oracle: Oracle[Any]) -> LevelMoments:
    return LevelMoments.of(oracle)


def _error_model(
    shape: Shape, levels: Sequence[Oracle[Any]], reports: Sequence[float]
) -> TreeErrorModel | PairedErrorModel:
    if not all(level.error_model.alike for level in levels):
        error_models = tuple(level.error_model for level in levels)
        return PairedErrorModel(shape=shape, error_models=error_models, reports=tuple(reports))
    moments = tuple(_moments(level) for level in levels)
    return TreeErrorModel(shape=shape, moments=moments, reports=tuple(reports))
