"""How residuals' noise adds up in the cells of a table."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from math import prod
from typing import NamedTuple

from sfumato import _check
from sfumato.numerics.distributions.discrete import DiscreteGaussianDistribution
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.residual_plan import share_of
from sfumato.synthetic.marginals.workload import Clique

__all__ = ["CellNoise", "cell_noise", "clique_of"]


class CellNoise(NamedTuple):
    """Standard deviation of a cell's noise, and its subgaussian parameter."""

    stddev: float
    proxy: float


def cell_noise(
    clique: Clique, sizes: Sequence[int], distributions: Mapping[Clique, DiscreteGaussianDistribution]
) -> CellNoise:
    """Return the noise of each cell of a table.

    Parameters
    ----------
    clique : tuple of int
        The table's columns.
    sizes : sequence of int
        Cells of all columns.
    distributions : mapping of tuple of int to DiscreteGaussianDistribution
        Of the residuals that the table is the sum of, in steps of one over their cells.

    Returns
    -------
    CellNoise
        The same in all cells.
    """
    variance = proxy = 0.0
    for part, distribution in distributions.items():
        unit = share_of(clique, part, sizes) / prod(sizes[place] for place in part) ** 2
        variance += unit * distribution.stddev**2
        proxy += unit * float(distribution.sigma) ** 2
    return CellNoise(math.sqrt(variance), math.sqrt(proxy))


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
