"""Which marginals are wanted: tables of counts by some columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final, Self, TypeAlias, final

import numpy as np

from sfumato import _check
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.ordered_queries import OrderedQueries, check_ordered

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
    _ordered: tuple[tuple[str, OrderedQueries], ...] = ()

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

    @classmethod
    def prefixes(cls, *columns: str, by: Sequence[str] = ()) -> Self:
        """Return the workload of one table: all prefixes of ordered columns, by the cells of others.

        Parameters
        ----------
        *columns : str
            Ordered columns, as in `with_prefixes`.
        by : sequence of str
            Columns whose cells they are crossed with.

        Returns
        -------
        Marginals

        Examples
        --------
        >>> Marginals.prefixes("age", by=["sex"])
        Marginals(tables=(('age', 'sex'),)).with_prefixes('age')
        """
        return cls([(*columns, *by)]).with_prefixes(*columns)

    @classmethod
    def ranges(cls, *columns: str, by: Sequence[str] = ()) -> Self:
        """Return the workload of one table: all ranges of ordered columns, by the cells of others.

        Parameters
        ----------
        *columns : str
            Ordered columns, as in `with_ranges`.
        by : sequence of str
            Columns whose cells they are crossed with.

        Returns
        -------
        Marginals
        """
        return cls([(*columns, *by)]).with_ranges(*columns)

    def with_prefixes(self, *columns: str) -> Self:
        """Return the workload that asks of each table for the prefixes of columns: a distribution function.

        A prefix is the number of rows up to the end of a bin. The cell for NULL is asked by itself.

        Parameters
        ----------
        *columns : str
            `Ordered` columns of at most 1,024 cells.

        Returns
        -------
        Marginals
            Wherever these columns are in a table, their prefixes are wanted, and not their cells.

        Examples
        --------
        >>> Marginals.every(2, target="sex").with_prefixes("age")
        Marginals.every(2, target='sex').with_prefixes('age')
        """
        return self._with(columns, OrderedQueries.PREFIXES)

    def with_ranges(self, *columns: str) -> Self:
        """Return the workload that asks of each table for all ranges of columns.

        A range is the number of rows from one bin to another; single cells are among them. The squared errors
        of all ranges of a column count as much as those of its cells would. The cell for NULL is asked by
        itself.

        Parameters
        ----------
        *columns : str
            `Ordered` columns of at most 1,024 cells.

        Returns
        -------
        Marginals
            Wherever these columns are in a table, their ranges are wanted, and not only their cells.
        """
        return self._with(columns, OrderedQueries.RANGES)

    def _with(self, columns: tuple[str, ...], queries: OrderedQueries) -> Self:
        given: tuple[object, ...] = columns
        if not given or not all(isinstance(name, str) for name in given):
            _check.refuse_type("columns", "be names of ordered columns", given, "write with_ranges('age')")
        changed = dict.fromkeys(columns, queries)
        return replace(self, _ordered=tuple({**dict(self._ordered), **changed}.items()))

    @property
    def ordered(self) -> Mapping[str, OrderedQueries]:
        """The columns that are asked by prefixes or ranges."""
        return dict(self._ordered)

    def described(self) -> dict[str, str]:
        """Return which columns are asked by prefixes or ranges, as JSON.

        Returns
        -------
        dict
        """
        return {name: queries.value for name, queries in self._ordered}

    def error_factor(self, domain: TableDomain, table: Clique, part: Clique) -> float:
        """Return how much a table's squared error grows where prefixes and ranges are asked instead of cells.

        Parameters
        ----------
        domain : TableDomain
        table : tuple of int
            Its columns.
        part : tuple of int
            The columns in whose cells counts are off, independently; over the table's others evenly.

        Returns
        -------
        float

        Examples
        --------
        >>> from sfumato.synthetic import Ordered
        >>> domain = TableDomain(age=Ordered.integers(0, 9), sex=["f", "m"])
        >>> Marginals.every(2).error_factor(domain, (0, 1), (0,))
        1.0
        >>> Marginals.prefixes("age", by=["sex"]).error_factor(domain, (0, 1), (0,))
        5.5
        """
        factor = 1.0
        for name, queries in self._ordered:
            if (place := domain.index(name)) in table:
                gram = queries.gram(check_ordered(name, domain[name]))
                factor *= float(gram.trace() / len(gram) if place in part else gram.mean() * len(gram))
        return factor

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
            If a column is not in the domain, tables are more than 65,536, or one is of more than 32 columns;
            if one that is asked by prefixes or ranges is not ordered, too large, or in no table.
        """
        found = self._cliques(domain)
        for name, _ in self._ordered:
            place = domain.index(name)
            check_ordered(name, domain[name])
            if not any(place in clique for clique in found):
                rule, remedy = "be in a table of the workload", "add a table, or leave it out"
                _check.refuse("columns with prefixes or ranges", rule, name, remedy)
        return found

    def _cliques(self, domain: TableDomain) -> tuple[Clique, ...]:
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

    def __repr__(self) -> str:
        if self.tables is None:
            name = "every" if len(self._orders) == 1 else "up_to"
            target = "" if self._target is None else f", target={self._target!r}"
            text = f"Marginals.{name}({self._orders[-1]}{target})"
        else:
            weights = "" if self.weights is None else f", weights={self.weights}"
            text = f"Marginals(tables={self.tables}{weights})"
        for queries in OrderedQueries:
            columns = [name for name, each in self._ordered if each is queries]
            text += f".with_{queries.value}({', '.join(map(repr, columns))})" if columns else ""
        return text

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
