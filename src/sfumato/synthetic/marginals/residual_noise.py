"""How residuals' noise adds up in the answers of a table: its cells, or weighted sums of them."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.column_strategy import Array, CellStrategy, ColumnStrategy
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["AnswerNoise", "AnsweredColumn", "answer_noise", "clique_of"]


class AnswerNoise(NamedTuple):
    """Standard deviations of answers' noise, subgaussian parameters, and half of the lattices' steps.

    One number where all answers have the same, else arrays with an axis for each column.
    """

    stddev: float | Array
    proxy: float | Array
    half_step: float | Array


@final
@dataclass(frozen=True, slots=True, eq=False)
class AnsweredColumn:
    """A column of a table, and what is answered of it.

    Parameters
    ----------
    strategy : ColumnStrategy
        How it was measured.
    weights : float64 array of shape (answers, cells), optional
        Sums of its cells; the cells themselves unless given.
    """

    strategy: ColumnStrategy
    weights: Array | None = None

    @property
    def plain(self) -> bool:
        """Whether all answers have the same noise."""
        return self.weights is None and isinstance(self.strategy, CellStrategy)


def answer_noise(
    columns: Mapping[int, AnsweredColumn], distributions: Mapping[Clique, DiscreteGaussianDistribution]
) -> AnswerNoise:
    """Return the noise of each answer of a table.

    Parameters
    ----------
    columns : mapping of int to AnsweredColumn
        The table's, by number, in the order of its axes.
    distributions : mapping of tuple of int to DiscreteGaussianDistribution
        Of the residuals that the table is the sum of, in steps of one over the product of units.

    Returns
    -------
    AnswerNoise

    Notes
    -----
    Residuals have independent noise, and within one the measurements have: the variance of an answer is a
    sum over residuals of products over columns, covariances of cells included.
    """
    inner = {place: each.strategy.variances(each.weights) for place, each in columns.items()}
    outer = {place: np.square(each.strategy.bases(each.weights)) for place, each in columns.items()}
    reach = {place: each.strategy.magnitudes(each.weights) for place, each in columns.items()}
    even = {place: np.sqrt(outer[place]) for place in columns}
    plain = all(each.plain for each in columns.values())
    variance = proxy = step = np.zeros((1,) * len(columns))
    for part, distribution in distributions.items():
        unit = math.prod(columns[place].strategy.unit for place in part)
        shares = _product([inner[place] if place in part else outer[place] for place in columns])
        variance = variance + shares * (distribution.stddev / unit) ** 2
        proxy = proxy + shares * (float(distribution.sigma) / unit) ** 2
        sums = [reach[place] if place in part else even[place] for place in columns]
        step = step + _product(sums) / (2 * unit)
    if plain:
        # Each residual is a sum of its own lattice's steps, of one over the product of all units.
        cells = math.prod(each.strategy.unit for each in columns.values())
        half = len(distributions) / (2 * cells)
        return AnswerNoise(math.sqrt(variance.item()), math.sqrt(proxy.item()), half)
    return AnswerNoise(np.sqrt(variance), np.sqrt(proxy), step)


def _product(factors: Sequence[Array]) -> NDArray[np.float64]:
    return np.asarray(reduce(np.multiply.outer, factors, np.array(1.0)))


def clique_of(
    domain: TableDomain, columns: Sequence[str], measured: Container[Clique]
) -> tuple[Clique, Clique]:
    """Return the numbers of columns, rising: of all, and of those with several cells.

    Parameters
    ----------
    domain : TableDomain
    columns : sequence of str
    measured : container of tuple of int
        The residuals that there are.

    Raises
    ------
    ParameterError
        If columns are repeated, or their residual is not there.
    """
    clique = tuple(sorted(map(domain.index, columns)))
    if len(set(clique)) != len(clique):
        _check.refuse("columns", "be different", columns, "name each once")
    inner = tuple(place for place in clique if domain.sizes[place] > 1)
    if inner not in measured:
        _check.refuse("columns", "be among those of a table of the workload", columns, "measure it too")
    return clique, inner
