"""The singular value bound of marginals in closed form, for domains of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Final

from sfumato import _check
from sfumato.bounds.workload_bound import WorkloadBound, bound_of
from sfumato.numerics.rounding import (
    add_down,
    div_down,
    fraction_down,
    fraction_up,
    mul_down,
    sqrt_down,
    sqrt_up,
)

__all__ = ["marginals_error_bound"]

_MOST: Final = 1 << 16
_WIDEST: Final = 1 << 1000


def marginals_error_bound(
    sizes: Sequence[int], *, orders: Iterable[int], mu: float, unbiased: bool = False
) -> WorkloadBound:
    r"""Bound the root mean squared error of the cells of all marginals of some orders.

    Parameters
    ----------
    sizes : sequence of int
        How many values each column has.
    orders : iterable of int
        How many columns a table is of: ``[2]`` for all two-way marginals.
    mu : float
        As in `svd_error_bound`.
    unbiased : bool
        As in `svd_error_bound`.

    Returns
    -------
    WorkloadBound

    Raises
    ------
    ParameterError
        If there are no columns, or no such tables, or more than 65,536, or more cells than 2**1000.

    Notes
    -----
    Guarantee: the bound of `svd_error_bound`, computed in closed form. With :math:`N = \prod n_i` cells, the
    Gram matrix of a table S is :math:`\bigotimes_{i \in S} I \otimes \bigotimes_{i \notin S} J`. All of them
    share eigenspaces, one for each set T of columns, of dimension :math:`\prod_{i \in T} (n_i - 1)`, with the
    eigenvalue :math:`N \sum_{S \supseteq T} \prod_{i \in S} 1/n_i`, a rational that is computed exactly.
    For Gaussian noise on linear measurements it is attained, as the square root of the Gram matrix has a
    constant diagonal.

    References
    ----------
    Li, Miklau (2013), "Optimal error of query sets under the differentially-private matrix mechanism"; Xiao,
    He, Zhang, Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under convex loss
    functions".

    Examples
    --------
    >>> adult = [85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2]
    >>> [round(marginals_error_bound(adult, orders=[k], mu=1.0).error, 4) for k in (1, 2, 3)]
    [3.0468, 6.3587, 10.5153]
    """
    columns = [_check.integer("sizes", size, minimum=1) for size in sizes]
    wanted = sorted({_check.integer("orders", order) for order in orders})
    remedy = "pass orders of 0 to the number of columns"
    if not columns or not wanted or wanted[-1] > len(columns):
        _check.refuse("orders", "be of some of the columns", wanted, remedy)
    if sum(math.comb(len(columns), order) for order in range(wanted[-1] + 1)) > _MOST:
        _check.refuse_state(
            "orders", f"make at most {_MOST} tables", "they make more", "ask for smaller tables"
        )
    total = 0.0
    for order in range(wanted[-1] + 1):
        for part in combinations(range(len(columns)), order):
            inside = math.prod(columns[i] for i in part)
            rest = _symmetric(
                [Fraction(1, n) for i, n in enumerate(columns) if i not in part], wanted[-1] - order
            )
            value = sum((rest[k - order] for k in wanted if k >= order), Fraction(0)) / inside
            many = math.prod(columns[i] - 1 for i in part)
            total = add_down(total, mul_down(fraction_down(many), sqrt_down(fraction_down(value))))
    cells = sum(_symmetric([Fraction(n) for n in columns], wanted[-1])[k] for k in wanted)
    if cells > _WIDEST:
        _check.refuse_state("sizes", "make at most 2**1000 cells", "they make more", "join values of columns")
    mean = div_down(total, sqrt_up(fraction_up(cells)))
    return bound_of(mean, mean, mu, unbiased, ("mean", "singular values of marginals (Li and Miklau 2013)"))


def _symmetric(values: Sequence[Fraction], degree: int) -> list[Fraction]:
    """Return the elementary symmetric polynomials up to a degree; 0 beyond the number of values."""
    found = [Fraction(1)] + [Fraction(0)] * degree
    for value in values:
        for k in range(degree, 0, -1):
            found[k] += value * found[k - 1]
    return found
