"""What is measured of a histogram: its cells in groups, by some columns or by coarser ones."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.attributes import Label
from sfumato.synthetic.domain.domain import TableDomain

__all__ = ["CellQuery", "Recode", "cell_query"]

_REMEDY: Final = (
    "write ('race', 'sex'), () for the total, or ('race', Recode('age', {'minor': range(18), ...}))"
)


@final
@dataclass(frozen=True, slots=True)
class Recode:
    """A column with its cells in coarser groups.

    Parameters
    ----------
    column : str
    groups : mapping of str to sequence
        Labels of the column's cells by name of the group; each label in one of them.

    Examples
    --------
    >>> Recode("age", {"minor": range(18), "adult": range(18, 116)}).column
    'age'
    """

    column: str
    groups: Mapping[str, Sequence[Any]]

    def __post_init__(self) -> None:
        groups: Any = self.groups
        if not isinstance(groups, Mapping) or not groups:
            _check.refuse_type("groups", "be a mapping of names to labels", groups, _REMEDY)
        column: object = self.column
        if not isinstance(column, str):
            _check.refuse_type("column", "be a column's name", column, _REMEDY)
        for labels in groups.values():
            single = not isinstance(labels, str | bytes) and isinstance(labels, Collection)
            if not single or not all(isinstance(label, Hashable) for label in labels):
                _check.refuse_type("groups", "have a list of labels for each name", labels, _REMEDY)

    def __hash__(self) -> int:
        return hash((self.column, tuple((name, tuple(labels)) for name, labels in self.groups.items())))

    def group_of(self, labels: Sequence[Label]) -> NDArray[np.int64]:
        """Return the group of each cell of the column.

        Parameters
        ----------
        labels : sequence
            Of the column's cells.

        Returns
        -------
        int64 array

        Raises
        ------
        ParameterError
            If a label is in no group or in two, or a group has one that the column has not.
        """
        found = {label: place for place, group in enumerate(self.groups.values()) for label in group}
        listed = sum(len(group) for group in self.groups.values())
        if found.keys() != set(labels) or listed != len(labels):
            rule = f"hold each label of the column {self.column!r} once"
            _check.refuse_state("groups", rule, "they do not", "list every label in one group")
        return np.array([found[label] for label in labels], np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class CellQuery:
    """A partition of the histogram's cells into groups, whose counts are asked for.

    Parameters
    ----------
    name : str
        Of its columns.
    columns : tuple of int
        Which columns of the domain the groups are by, rising.
    shape : tuple of int
        How many groups there are by each of them.
    group_of : int64 array
        The group of each cell, both numbered in row-major order.
    recoded : bool
        Whether a column is coarser than in the domain.
    """

    name: str
    columns: tuple[int, ...]
    shape: tuple[int, ...]
    group_of: NDArray[np.int64]
    recoded: bool

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return prod(self.shape)


def cell_query(domain: TableDomain, given: Any) -> CellQuery:
    """Return the groups of cells that some columns, or recoded ones, make.

    Parameters
    ----------
    domain : TableDomain
    given : sequence of str or Recode
        An empty one is the total.

    Returns
    -------
    CellQuery

    Raises
    ------
    ParameterError
        If a column is twice in it, or not in the domain.

    Examples
    --------
    >>> domain = TableDomain(sex=["f", "m"], age=[1, 2, 3])
    >>> cell_query(domain, ["age"]).group_of.tolist()
    [0, 1, 2, 0, 1, 2]
    >>> cell_query(domain, ["sex", Recode("age", {"low": [1, 2], "high": [3]})]).group_of.tolist()
    [0, 0, 1, 2, 2, 3]
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        _check.refuse_type("queries", "be lists of columns", given, _REMEDY)
    parts = {}
    for part in given:
        if not isinstance(part, str | Recode):
            _check.refuse_type("queries", "be of columns' names and of Recode", part, _REMEDY)
        column = part if isinstance(part, str) else part.column
        place = domain.index(column)
        if place in parts:
            _check.refuse("queries", "have a column once", column, _REMEDY)
        size = domain[column].size
        parts[place] = np.arange(size) if isinstance(part, str) else part.group_of(domain[column].labels)
    columns = tuple(sorted(parts))
    shape = tuple(int(parts[place].max()) + 1 for place in columns)
    cells = np.zeros(domain.sizes, np.int64)
    for place, size in zip(columns, shape, strict=True):
        along = [-1 if axis == place else 1 for axis in range(len(domain))]
        cells = cells * size + parts[place].reshape(along)
    recoded = tuple(part.column for part in given if isinstance(part, Recode))
    names = [f"{list(domain)[i]}{'*' if list(domain)[i] in recoded else ''}" for i in columns]
    return CellQuery(" x ".join(names) or "total", columns, shape, cells.ravel(), bool(recoded))
