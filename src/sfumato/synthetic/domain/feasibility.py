"""Whether structural zeros leave any combination of cells."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.structural_zeros import StructuralZero, possible_cells, require_few

__all__ = ["consistent_zeros", "leave_some_cell"]

_CELLS: Final = 1 << 22
_AXES: Final = 32  # the most of an array that every numpy has


def leave_some_cell(sizes: Sequence[int], zeros: Sequence[StructuralZero]) -> bool | None:
    """Return whether a row can be anywhere: exact, or None where that would need too large tables.

    Parameters
    ----------
    sizes : sequence of int
        Cells of each column.
    zeros : sequence of StructuralZero

    Returns
    -------
    bool or None

    Notes
    -----
    Columns are eliminated one after another, that with the smallest table first: what remains of the tables
    that have it is whether some cell of it is possible (bucket elimination: Dechter 1999). To decide it for
    any zeros is as hard as satisfiability, so tables of more than 2**22 cells are not made; generators
    refuse such zeros for their size.

    References
    ----------
    Dechter, "Bucket elimination: a unifying framework for reasoning" (Artificial Intelligence 1999).

    Examples
    --------
    >>> leave_some_cell((2, 2), [((0, (0,)),), ((0, (1,)), (1, (0,)))])
    True
    >>> leave_some_cell((2, 2), [((0, (0,)),), ((0, (1,)), (1, (0, 1)))])
    False
    """
    by_scope: dict[tuple[int, ...], list[StructuralZero]] = {}
    for zero in zeros:
        by_scope.setdefault(tuple(place for place, _ in zero), []).append(zero)
    if any(_too_large(sizes, scope) for scope in by_scope):
        return None
    tables = [(scope, possible_cells(scope, sizes, each)) for scope, each in by_scope.items()]
    left = {place for scope in by_scope for place in scope}
    while left:
        joint = {
            column: sorted({other for scope, _ in tables if column in scope for other in scope})
            for column in sorted(left)
        }
        column = min(joint, key=lambda each: prod(sizes[other] for other in joint[each]))
        if _too_large(sizes, joint[column]):
            return None
        tables = _without(column, joint[column], tables, sizes)
        left.discard(column)
    return all(bool(table) for _, table in tables)


def consistent_zeros(sizes: Sequence[int], zeros: tuple[StructuralZero, ...]) -> tuple[StructuralZero, ...]:
    """Return structural zeros, which must be few and leave some cell.

    Parameters
    ----------
    sizes : sequence of int
    zeros : tuple of StructuralZero

    Returns
    -------
    tuple of StructuralZero

    Raises
    ------
    ParameterError
        If they are more than 4,096, or leave none.
    """
    require_few(len(zeros))
    if leave_some_cell(sizes, zeros) is False:
        remedy = "leave out one of them: they contradict each other"
        _check.refuse_state("zeros", "leave some cell", "together they leave none", remedy)
    return zeros


def _without(
    column: int,
    scope: Sequence[int],
    tables: Sequence[tuple[tuple[int, ...], NDArray[np.bool_]]],
    sizes: Sequence[int],
) -> list[tuple[tuple[int, ...], NDArray[np.bool_]]]:
    """Return tables in which a column is eliminated."""
    product = np.ones([sizes[place] for place in scope], bool)
    for axes, table in tables:
        if column in axes:
            product &= table.reshape([sizes[place] if place in axes else 1 for place in scope])
    rest = tuple(place for place in scope if place != column)
    reduced = np.asarray(product.any(axis=list(scope).index(column)))
    return [*(each for each in tables if column not in each[0]), (rest, reduced)]


def _too_large(sizes: Sequence[int], scope: Sequence[int]) -> bool:
    return len(scope) > _AXES or prod(sizes[place] for place in scope) > _CELLS
