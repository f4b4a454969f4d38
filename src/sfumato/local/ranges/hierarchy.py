"""Hierarchical histograms: every level of a tree over the values, asked of some respondents each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final, final

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
from sfumato.local.frequency.variance import Array, ErrorModel
from sfumato.local.ranges.consistency import from_nodes
from sfumato.local.ranges.level_moments import LevelMoments
from sfumato.local.ranges.protocol import RangeProtocol, checked_oracle, checked_size, range_ends
from sfumato.local.ranges.tree_variance import TreeErrorModel, alphas_of
from sfumato.local.ranges.variance import Places, RangeErrorModel

__all__ = ["LARGEST_PAIRED", "HierarchicalHistogram", "PairedErrorModel", "oracle_of", "planned_branching"]

LARGEST_PAIRED: Final = 4096
"""Nodes of a level of which all pairs are looked at."""
_WEIGHTS: Final = 1 << 21
"""Weights at once."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PairedErrorModel(RangeErrorModel):
    r"""Of a tree as in `TreeErrorModel`, with the whole covariance matrices of its levels.

    Parameters
    ----------
    shape, reports
        See `RangeErrorModel`.
    error_models : tuple of ErrorModel
        Of each level's oracle.

    Attributes
    ----------
    alphas : tuple of float
        How much a node's own estimate counts against what its children say, for each level.
    """

    error_models: tuple[ErrorModel, ...]
    alphas: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        alone = []
        for level, error_model in enumerate(self.error_models, 1):
            even = np.full(self.shape.nodes(level), 1 / self.shape.nodes(level))
            alone.append(float(np.mean(error_model.variance(even) + even * (1 - even))))
        object.__setattr__(self, "alphas", alphas_of(self.shape, alone, self.reports))

    def weights(self, first: Places, last: Places) -> list[Array]:
        """Return what the estimates of each level's nodes weigh in ranges, as rows: see `TreeErrorModel`."""
        shape, indices = self.shape, np.arange(self.shape.size)
        held = [((first[:, None] <= indices) & (indices <= last[:, None])).astype(float)]
        for level in range(shape.levels, 0, -1):
            starts = np.arange(0, shape.nodes(level), shape.branching)
            counts = np.add.reduceat(np.ones(shape.nodes(level)), starts)
            held.insert(0, np.add.reduceat(held[0], starts, axis=1) / counts)
        found: list[Array] = []
        carried = np.zeros((len(first), 1))
        for level, alpha in enumerate(self.alphas, 1):
            parents = np.arange(shape.nodes(level)) // shape.branching
            own = held[level] - held[level - 1][:, parents] + carried[:, parents]
            found.append(alpha * own)
            carried = (1 - alpha) * own
        return found

    def variance(self, first: Places, last: Places, cumulative: Array) -> Array:
        """Return the variances of the estimates of ranges; see `RangeErrorModel.variance`."""
        inside = cumulative[last + 1] - cumulative[first]
        found = -inside * (1 - inside) / max(sum(self.reports), 1)
        matrices = [self._matrix(level, cumulative) for level in range(1, self.shape.levels + 1)]
        rows = max(1, _WEIGHTS // self.shape.size)
        for start in range(0, len(first), rows):
            part = slice(start, start + rows)
            weights = self.weights(first[part], last[part])
            for weight, matrix, count in zip(weights, matrices, self.reports, strict=True):
                if count:
                    found[part] += ((weight @ matrix) * weight).sum(axis=1) / count
                else:
                    found[part] = np.where((weight**2).sum(axis=1) > 1e-24, np.inf, found[part])
        return np.maximum(found, 0.0)

    def _matrix(self, level: int, cumulative: Array) -> Array:
        """Return the covariance matrix of the report of a respondent drawn from all."""
        ends = np.minimum(np.arange(self.shape.nodes(level) + 1) * self.shape.span(level), self.shape.size)
        shares = np.diff(cumulative[ends])
        fixed = self.error_models[level - 1].covariance(shares, np.arange(len(shares)))
        return np.asarray(fixed + np.diag(shares) - np.outer(shares, shares))


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
    (5, 10)
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
