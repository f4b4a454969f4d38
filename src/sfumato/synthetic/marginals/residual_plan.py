"""How much noise each residual of a workload gets so that the marginals' squared errors are least."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import prod
from types import MappingProxyType
from typing import final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.marginals.column_strategy import CellStrategy, ColumnStrategy, squared_shift
from sfumato.synthetic.marginals.workload import Clique, subsets

__all__ = ["AskedColumn", "ResidualPlan", "l2_squared_shift", "residual_plan", "share_of"]


def l2_squared_shift(sizes: Sequence[int], *, two: bool) -> int:
    r"""Return the square of the L2 norm by which one row moves an integer residual.

    Parameters
    ----------
    sizes : sequence of int
        Cells of its columns, each at least 2.
    two : bool
        Whether a row is replaced, so that two cells move; else it is added or removed.

    Returns
    -------
    int

    Notes
    -----
    A row moves the residual by the product of vectors :math:`n e_a - 1`, one for each column, whose squared
    norms are :math:`n(n-1)`; two of one column have the inner product :math:`n(n-1)` if they are equal, else
    :math:`-n`. By `squared_shift` their difference is at most :math:`2Pn/(n-1)`, with P the product of the
    squared norms and n the fewest cells.

    Examples
    --------
    >>> l2_squared_shift([2, 3], two=False), l2_squared_shift([2, 3], two=True)
    (12, 48)
    """
    return squared_shift([CellStrategy(size) for size in sizes], two=two)


def share_of(table: Clique, part: Clique, sizes: Sequence[int]) -> float:
    r"""Return the variance of a table's cells for one unit of a residual's variance.

    Parameters
    ----------
    table, part : tuple of int
        The residual's columns are among the table's.
    sizes : sequence of int
        Cells of all columns.

    Returns
    -------
    float
        :math:`\prod_{i \in A} (n_i - 1)/n_i \prod_{j \notin A} n_j^{-2}`.

    Examples
    --------
    >>> share_of((0, 1), (0,), (2, 10))
    0.005
    """
    inner = prod((sizes[i] - 1) / sizes[i] for i in part)
    return inner / prod(sizes[j] ** 2 for j in table if j not in part)


@final
@dataclass(frozen=True, slots=True)
class ResidualPlan:
    """Variances of residuals for a loss of 1-Gaussian DP, were the noise continuous.

    Parameters
    ----------
    variances : mapping of tuple of int to float
        By the residual's columns.
    squared_error : float
        The sum over all cells of all tables, by weight.
    """

    variances: Mapping[Clique, float]
    squared_error: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class AskedColumn:
    """How a column is measured, and what is asked of it.

    Parameters
    ----------
    strategy : ColumnStrategy
    gram : float64 array of shape (cells, cells), optional
        How many questions hold two cells, as `OrderedQueries.gram` has it; its cells unless given.
    """

    strategy: ColumnStrategy
    gram: NDArray[np.float64] | None = None
    inner: float = field(init=False)
    outer: float = field(init=False)

    def __post_init__(self) -> None:
        base, covariance = self.strategy.base, self.strategy.covariance
        if self.gram is None:
            cells = 1 / float(base[0])
            inner, outer = cells - 1, 1 / cells
        elif covariance is None:
            outer = float(self.gram.mean())
            inner = float(self.gram.trace()) - outer * len(self.gram)
        else:
            inner, outer = float((self.gram * covariance).sum()), float(base @ self.gram @ base)
        object.__setattr__(self, "inner", inner)
        object.__setattr__(self, "outer", outer)


def residual_plan(
    cliques: Sequence[Clique],
    weights: Sequence[float],
    sizes: Sequence[int],
    *,
    two: bool,
    ordered: Mapping[int, AskedColumn] = MappingProxyType({}),
) -> ResidualPlan:
    r"""Return the variances that make the weighted sum of squared errors least.

    Parameters
    ----------
    cliques : sequence of tuple of int
        The tables wanted.
    weights : sequence of float
    sizes : sequence of int
        Cells of all columns. A column of one cell is in no residual: there is nothing to measure.
    two : bool
        As in `l2_squared_shift`.
    ordered : mapping of int to AskedColumn
        The columns that are asked by prefixes or ranges.

    Returns
    -------
    ResidualPlan

    Notes
    -----
    With :math:`v_A` the error that a unit of the residual's variance makes in all tables and :math:`p_A` what
    it costs (the squared shift over :math:`\prod n_i^2`), :math:`\sum v_A \sigma_A^2` is least under
    :math:`\sum p_A/\sigma_A^2 = 1` at :math:`\sigma_A^2 = \sqrt{p_A/v_A} \sum_B \sqrt{v_B p_B}`, by
    Cauchy-Schwarz.

    References
    ----------
    Xiao, He, Zhang, Kifer, "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions" (NeurIPS 2023): residuals, and that no other linear measurement has less error.

    Examples
    --------
    >>> plan = residual_plan([(0,)], [1.0], (4,), two=False)
    >>> sorted(plan.variances), round(plan.squared_error, 12)
    ([(), (0,)], 4.0)
    """
    asked = [ordered[i] if i in ordered else AskedColumn(CellStrategy(n)) for i, n in enumerate(sizes)]
    several = [tuple(i for i in clique if sizes[i] > 1) for clique in cliques]
    errors = dict.fromkeys(subsets(several), 0.0)
    for clique, inner, weight in zip(cliques, several, weights, strict=True):
        for part in subsets([inner]):
            factors = (asked[i].inner if i in part else asked[i].outer for i in clique)
            errors[part] += weight * prod(factors)
    roots = {}
    for part in errors:
        strategies = [asked[i].strategy for i in part]
        shift = squared_shift(strategies, two=two)
        cost = float(Fraction(shift, prod(strategy.unit for strategy in strategies) ** 2))
        roots[part] = math.sqrt(cost), math.sqrt(errors[part])
    total = math.fsum(cost * error for cost, error in roots.values())
    variances = {part: total * cost / error for part, (cost, error) in roots.items()}
    if not all(0 < variance < math.inf for variance in variances.values()):
        _check.refuse_state("weights", "be of like size", "some error is beyond floats", "leave them out")
    return ResidualPlan(MappingProxyType(variances), total**2)
