r"""Tables of attributes and the coefficients that they share.

An attribute with r categories has r functions :math:`\varphi_0 = 1, \varphi_1, ..., \varphi_{r-1}` on them,
orthogonal and with the mean square 1 under even shares (Helmert's; for two categories 1 and -1). A table's
coefficients are the means of the products of its attributes' functions. A product whose functions are
constant but for the set A of attributes is a coefficient *of A*: it is the same in every table with A.
So tables agree on all that they have in common exactly where they agree on these coefficients, and cells are
their sums, orthogonally: cell x of a table with L cells is :math:`\frac1L \sum_j \theta_j \varphi_j(x)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from math import prod, sqrt
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.local.frequency.variance import Array

__all__ = ["Attributes", "Lattice", "analysed", "functions", "synthesised"]

Attributes = tuple[int, ...]
_MAX: Final = 1 << 22
_MAX_SETS: Final = 1 << 18


@lru_cache(maxsize=256)
def functions(categories: int) -> Array:
    """Return the functions of an attribute, as rows: see the module.

    Examples
    --------
    >>> functions(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    found = np.ones((categories, categories))
    for row in range(1, categories):
        found[row, :row] = sqrt(categories / (row * (row + 1)))
        found[row, row] = -row * found[row, 0]
        found[row, row + 1 :] = 0.0
    found.flags.writeable = False
    return found


def transformed(tables: Array, matrices: Sequence[Array]) -> Array:
    """Apply a matrix to each axis but the first."""
    for axis, matrix in enumerate(matrices, 1):
        tables = np.moveaxis(np.tensordot(matrix, tables, (1, axis)), 0, axis)
    return np.asarray(tables)


def analysed(tables: Array, sizes: Sequence[int]) -> Array:
    """Return the coefficients of tables, which are rows of cells.

    Examples
    --------
    >>> analysed(np.array([[0.4, 0.1, 0.2, 0.3]]), (2, 2)).round(3).tolist()
    [[1.0, 0.2, 0.0, 0.4]]
    """
    cubes = tables.reshape(len(tables), *sizes)
    return transformed(cubes, [functions(size) for size in sizes]).reshape(len(tables), -1)


def synthesised(coefficients: Array, sizes: Sequence[int]) -> Array:
    """Return the tables of coefficients; the inverse of `analysed`."""
    cubes = coefficients.reshape(len(coefficients), *sizes)
    back = [functions(size).T for size in sizes]
    return transformed(cubes, back).reshape(len(coefficients), -1) / prod(sizes)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """The coefficients of some tables.

    Parameters
    ----------
    sizes : tuple of int
        Categories of each attribute.
    views : tuple of tuples of int
        The tables: rising indices of their attributes.

    Attributes
    ----------
    starts : mapping
        For each set of attributes that are together in a table: where its coefficients begin. They are in the
        order of the sets, first by how many attributes; the first of all is the constant.
    total : int
        How many coefficients there are.
    """

    sizes: tuple[int, ...]
    views: tuple[Attributes, ...]
    starts: Mapping[Attributes, int] = field(init=False, repr=False)
    total: int = field(init=False)

    def __post_init__(self) -> None:
        found: set[Attributes] = {()}
        for view in self.views:
            if 1 << len(view) <= _MAX_SETS:
                found.update(*(combinations(view, of) for of in range(1, len(view) + 1)))
            if max(len(found), 1 << len(view)) > _MAX_SETS:
                remedy = "take fewer or narrower tables"
                _check.refuse(
                    "views", f"have at most {_MAX_SETS} sets of attributes", len(self.views), remedy
                )
        starts, total = {}, 0
        for among in sorted(found, key=lambda one: (len(one), one)):
            starts[among] = total
            total += self.width(among)
        if total > _MAX:
            _check.refuse("views", f"have at most {_MAX} coefficients", total, "take narrower tables")
        object.__setattr__(self, "starts", starts)
        object.__setattr__(self, "total", total)

    def width(self, among: Attributes) -> int:
        """Return how many coefficients a set of attributes has."""
        return prod(self.sizes[at] - 1 for at in among)

    def shape(self, attributes: Attributes) -> tuple[int, ...]:
        """Return the categories of some attributes."""
        return tuple(self.sizes[at] for at in attributes)

    def checked(self, attributes: Sequence[object]) -> Attributes:
        """Return attributes as a tuple, or refuse what is none."""
        rule = f"be increasing indices of attributes from 0 to {len(self.sizes) - 1}"
        found = []
        for at in attributes:
            if isinstance(at, bool) or not isinstance(at, int | np.integer) or not 0 <= at < len(self.sizes):
                _check.refuse("attributes", rule, at, "count attributes from 0")
            found.append(int(at))
        if not found or found != sorted(set(found)):
            _check.refuse("attributes", rule, tuple(found), "name each once, in the order of the domains")
        return tuple(found)

    def indices(self, attributes: Attributes) -> NDArray[np.int64]:
        """Return where the coefficients of a table are, in the order of `analysed`; -1 for unknown ones."""
        shape = self.shape(attributes)
        found = np.full(shape, -1, np.int64)
        for of in range(len(attributes) + 1):
            for inside in combinations(range(len(attributes)), of):
                among = tuple(attributes[at] for at in inside)
                if among in self.starts:
                    index = tuple(slice(1, None) if at in inside else 0 for at in range(len(shape)))
                    numbers = self.starts[among] + np.arange(self.width(among))
                    found[index] = numbers.reshape([shape[at] - 1 for at in inside])
        return found.ravel()

    def supports(self, attributes: Attributes) -> NDArray[np.int64]:
        """Return which attributes of a table its coefficients are of, as bits, the first attribute lowest."""
        grid = np.indices(self.shape(attributes)).reshape(len(attributes), -1)
        return np.asarray((grid > 0).T @ (1 << np.arange(len(attributes))), np.int64)

    def largest(self, attributes: Attributes) -> list[Attributes]:
        """Return the largest parts of some attributes that are together in a table."""
        parts = {tuple(sorted(set(view) & set(attributes))) for view in self.views} - {()}
        return sorted(one for one in parts if not any(set(one) < set(other) for other in parts))
