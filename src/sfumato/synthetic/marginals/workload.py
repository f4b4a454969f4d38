"""Which marginals are wanted: tables of counts by some columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final, Self, TypeAlias, final

import numpy as np

from sfumato import _check
from sfumato.synthetic.domain.domain import TableDomain

__all__ = ["Clique", "Marginals", "maximal", "subsets"]

Clique: TypeAlias = tuple[int, ...]
"""Columns by number, rising."""

_MOST: Final = 1 << 16
_COLUMNS: Final = 32  # the most axes of an array that every numpy has
_REMEDY: Final = "write Marginals([('age', 'sex'), ('sex', 'income')]), Marginals.every(2) or up_to(3)"


@final
@dataclass(frozen=True, slots=True)
class Marginals:
    """A workload of marginals.

    Parameters
    ----------
    tables : sequence of sequence of str, optional
        The columns of each; an empty one is the number of rows.
    weights : sequence of float, optional
        How much the squared errors of each table count; 1 unless given.

    Raises
    ------
    ParameterError
        If a table has a column twice, or two are of the same columns.

    Examples
    --------
    >>> domain = TableDomain(age=["young", "old"], sex=["f", "m"], income=["low", "high"])
    >>> Marginals.every(2).cliques(domain)
    ((0, 1), (0, 2), (1, 2))
    >>> Marginals([("age", "income")]).cliques(domain)
    ((0, 2),)
    """

    tables: Sequence[Sequence[str]] | None = None
    weights: Sequence[float] | None = None
    _orders: tuple[int, ...] = ()
    _target: str | None = None

    def __post_init__(self) -> None:
        if self.tables is None:
            if not self._orders:
                _check.refuse("tables", "be a list of lists of columns", self.tables, _REMEDY)
            return
        tables = _different(self.tables)
        object.__setattr__(self, "tables", tables)
        if self.weights is not None:
            given: object = self.weights
            if not isinstance(given, Sequence | np.ndarray):
                _check.refuse_type("weights", "be a number for each table", given, "leave them out")
            weights = tuple(_check.positive("weights", weight) for weight in self.weights)
            if len(weights) != len(tables):
                _check.refuse("weights", "be one for each table", weights, "leave them out")
            object.__setattr__(self, "weights", weights)

    @classmethod
    def every(cls, columns: int, *, target: str | None = None) -> Self:
        """Return the workload of all tables of so many columns.

        Parameters
        ----------
        columns : int
        target : str, optional
            A column that is in each of them.

        Returns
        -------
        Marginals
        """
        return cls(_orders=(_check.integer("columns", columns, minimum=0),), _target=target)

    @classmethod
    def up_to(cls, columns: int, *, target: str | None = None) -> Self:
        """Return the workload of all tables of one column, of two, and so on.

        Parameters
        ----------
        columns : int
            The most.
        target : str, optional
            A column that is in each of them.

        Returns
        -------
        Marginals
        """
        most = _check.integer("columns", columns, minimum=1)
        if most > _COLUMNS:
            _check.refuse("columns", f"be at most {_COLUMNS}", most, "take fewer")
        return cls(_orders=tuple(range(1, most + 1)), _target=target)

    def cliques(self, domain: TableDomain) -> tuple[Clique, ...]:
        """Return the tables' columns by number.

        Parameters
        ----------
        domain : TableDomain

        Returns
        -------
        tuple of tuple of int

        Raises
        ------
        ParameterError
            If a column is not in the domain, tables are more than 65,536, or one is of more than 32 columns.
        """
        widest = max(self._orders if self.tables is None else map(len, self.tables))
        if _COLUMNS < widest <= len(domain):
            _check.refuse("columns", f"be at most {_COLUMNS} in each table", widest, "take fewer")
        if self.tables is not None:
            return tuple(tuple(sorted(map(domain.index, each))) for each in self.tables)
        wanted = () if self._target is None else (domain.index(self._target),)
        others = [place for place in range(len(domain)) if place not in wanted]
        if max(self._orders) > len(domain):
            rule = f"be at most the domain's {len(domain)}"
            _check.refuse("columns", rule, max(self._orders), "take fewer")
        sizes = [order - len(wanted) for order in self._orders if order >= len(wanted)]
        if not sizes:
            _check.refuse("columns", "be at least 1 where a target is given", max(self._orders), "take more")
        if sum(math.comb(len(others), size) for size in sizes) > _MOST:
            rule = f"make at most {_MOST} tables of the domain's columns"
            _check.refuse("columns", rule, max(self._orders), "list the tables that are wanted")
        chosen = (part for size in sizes for part in combinations(others, size))
        return tuple(tuple(sorted((*wanted, *part))) for part in chosen)

    def weight(self, place: int) -> float:
        """Return how much the squared errors of a table count.

        Parameters
        ----------
        place : int
            Which of `cliques`.

        Returns
        -------
        float
        """
        return 1.0 if self.weights is None else self.weights[place]


def _is_no_list(table: object) -> bool:
    """Whether a table is not listed as names of columns."""
    if isinstance(table, str) or not isinstance(table, Sequence):
        return True
    return not all(isinstance(name, str) for name in table)


def _different(given: Any) -> tuple[tuple[str, ...], ...]:
    """Return lists of columns as tuples, none of them twice."""
    lists = not isinstance(given, str) and isinstance(given, Sequence) and len(given) > 0
    if not lists or any(_is_no_list(each) for each in given):
        _check.refuse_type("tables", "be a list of lists of columns", given, _REMEDY)
    tables = tuple(tuple(each) for each in given)
    repeated = any(len(set(each)) != len(each) for each in tables)
    if repeated or len(set(map(frozenset, tables))) < len(tables):
        _check.refuse("tables", "be different, each of different columns", tables, _REMEDY)
    return tables


def subsets(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return all subsets of cliques, each once, short ones first.

    Examples
    --------
    >>> subsets([(0, 2), (0, 1)])
    ((), (0,), (1,), (2,), (0, 1), (0, 2))
    """
    found = {part for clique in cliques for k in range(len(clique) + 1) for part in combinations(clique, k)}
    return tuple(sorted(found, key=lambda part: (len(part), part)))


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return the cliques that are in no other one, in their order.

    Examples
    --------
    >>> maximal([(0,), (0, 1), (1, 2), (0, 1)])
    ((0, 1), (1, 2))
    """
    different = tuple(dict.fromkeys(cliques))
    sets = [set(clique) for clique in different]
    return tuple(c for c, own in zip(different, sets, strict=True) if not any(own < other for other in sets))
