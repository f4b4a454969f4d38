"""Key sets: public groups as values in Python, made from lists, frames, public tables and ranges.

>>> from sfumato import KeySet
>>> states, years = KeySet.from_dict({"state": ["CA", "NY", "TX"]}), KeySet.from_range("year", 2020, 2024)
>>> keys = (states * years).filter("state <> 'TX' OR year >= 2023")
>>> keys
KeySet(state STRING, year INT64: 12 groups)

A key set says nothing about anybody only if it was made without looking at private rows: that is the
caller's part of the guarantee, as for every list of public groups.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import pyarrow as pa

from sfumato import _check
from sfumato.queries.builder.columns import Expressible
from sfumato.queries.builder.key_algebra import filtered, joined, multiplied, parts_of, split
from sfumato.queries.builder.key_factors import (
    KeyFactor,
    frame_factor,
    listed_factor,
    positions,
    range_factor,
    require_apart,
)
from sfumato.queries.builder.query_session import QuerySession
from sfumato.queries.plan.query import Column
from sfumato.queries.sql.catalog import PublicSource, Tables

__all__ = ["KeySet"]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KeySet(Mapping[Any, Sequence[object]]):
    """Public groups: a set of keys, as a product of independent lists; taken wherever groups are listed.

    Made by `from_dict`, `from_range`, `from_frame` and `from_public_table`; immutable. Products are not
    written out before a query asks for them. ``session.table().group_by(keys)`` groups by its columns, and
    every function with ``public_groups=`` takes it: it is a mapping of the columns of each factor to their
    rows, of which ``len`` says how many factors there are; `size` says how many groups.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> visits = pa.table({"person": range(1000), "state": ["CA", "NY"] * 500, "year": [2023] * 1000})
    >>> keys = sf.KeySet.from_dict({"state": ["CA", "NY"], "year": [2022, 2023]})
    >>> with sf.connect(visits, privacy_unit="person", epsilon=2, rng=7) as session:
    ...     query = session.table().group_by(keys).agg(n=sf.count())
    ...     release = query.release(epsilon=1, delta=0, max_groups_contributed=1)
    >>> release.to_arrow().num_rows
    4
    """

    _factors: tuple[KeyFactor, ...]

    @classmethod
    def from_dict(cls, keys: Mapping[Any, Iterable[object]]) -> KeySet:
        """Return all combinations of listed values.

        Parameters
        ----------
        keys : mapping
            For each column its values, or for a tuple of columns rows of values. What is listed twice is one
            group; None is the group of NULL.

        Returns
        -------
        KeySet

        Raises
        ------
        ParameterError
            If it is no such mapping, or the values of a column are not of one type.

        Examples
        --------
        >>> KeySet.from_dict({("city", "state"): [("LA", "CA"), ("NYC", "NY")], "year": range(2020, 2025)})
        KeySet(city STRING, state STRING, year INT64: 2 x 5 = 10 groups)
        """
        given: object = keys
        if not isinstance(given, Mapping) or not given:
            _check.refuse_type("keys", "map columns to their values", given, "write {'state': ['CA', 'NY']}")
        factors = [listed_factor(name, rows) for name, rows in keys.items()]
        require_apart([column for factor in factors for column in factor.columns])
        return cls(tuple(factors))

    @classmethod
    def from_range(
        cls, column: str, start: int | dt.date, end: int | dt.date, *, step: int = 1, unit: str = "day"
    ) -> KeySet:
        """Return whole numbers or dates at equal steps, the end included if a step reaches it.

        Parameters
        ----------
        column : str
        start, end : int or date
        step : int
            Of dates at least 1.
        unit : str
            Of the step between dates: ``"day"``, ``"week"``, ``"month"``, ``"quarter"`` or ``"year"``.

        Returns
        -------
        KeySet
            The keys of ``GENERATE_ARRAY`` and ``GENERATE_DATE_ARRAY``.

        Raises
        ------
        ParameterError
            If the ends are not two whole numbers or two dates, or none or more than a million keys follow.

        Examples
        --------
        >>> import datetime as dt
        >>> KeySet.from_range("month", dt.date(2024, 1, 1), dt.date(2024, 12, 31), unit="month")
        KeySet(month DATE: 12 groups)
        """
        return cls((range_factor(column, start, end, step, unit),))

    @classmethod
    def from_frame(cls, frame: object, *columns: str) -> KeySet:
        """Return the distinct rows of a frame, which must be public.

        Parameters
        ----------
        frame : pyarrow Table, frame of pandas or Polars, or another frame
            As `sfumato.connect` takes it.
        *columns : str
            Of the frame; all of them where none is named.

        Returns
        -------
        KeySet

        Raises
        ------
        SourceError
            If it is no frame.
        ParameterError
            If it has no such column, or one of a type that no key has.

        Examples
        --------
        >>> import pyarrow as pa
        >>> KeySet.from_frame(pa.table({"state": ["CA", "CA", "NY"], "city": ["LA", "SF", "NYC"]}), "state")
        KeySet(state STRING: 2 groups)
        """
        factor = frame_factor(frame, columns)
        require_apart(factor.columns)
        return cls((factor,))

    @classmethod
    def from_public_table(cls, session: QuerySession[Any], table: str, *columns: str) -> KeySet:
        """Return the distinct rows of a public table of a session, as they are now; nothing is charged.

        Parameters
        ----------
        session : Session
        table : str
            A public one. The groups of a private one have to be released.
        *columns : str
            All of them where none is named.

        Returns
        -------
        KeySet

        Raises
        ------
        SchemaError
            If the session has no such table.
        ParameterError
            If it is private, or has no such column.

        Examples
        --------
        >>> import pyarrow as pa
        >>> import sfumato as sf
        >>> people, states = pa.table({"person": [1], "state": ["CA"]}), pa.table({"state": ["CA", "NY"]})
        >>> with sf.connect(people, privacy_unit="person", epsilon=1, public={"states": states}) as session:
        ...     KeySet.from_public_table(session, "states")
        KeySet(state STRING: 2 groups)
        """
        found = Tables(session.catalog).find(table)
        if not isinstance(found, PublicSource):
            remedy = "group by its columns, which releases its groups, or list them"
            _check.refuse("table", "be a public table of the session", table, remedy)
        return cls.from_frame(session.engine.public_rows(found.name), *columns)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self._columns)

    @property
    def size(self) -> int:
        """How many groups there are."""
        return math.prod(len(factor.rows) for factor in self._factors)

    def __mul__(self, other: KeySet) -> KeySet:
        """Return all combinations of the groups of two key sets, which share no column."""
        _require_key_set(other)
        require_apart([*self._columns, *other._columns])
        return KeySet((*self._factors, *other._factors))

    def filter(self, *conditions: Expressible) -> KeySet:
        """Return the groups for which every condition is true; it reads columns of the key set alone.

        Parameters
        ----------
        *conditions : str or ColumnExpression
            As in WHERE.

        Returns
        -------
        KeySet

        Raises
        ------
        ParameterError
            If no group is left, or the lists that a condition reads have more than a million combinations.
        QueryError
            If it is no condition over the columns.

        Examples
        --------
        >>> KeySet.from_range("age", 0, 99).filter("MOD(age, 10) = 0", "age >= 18")
        KeySet(age INT64: 8 groups)
        """
        factors = self._factors
        for condition in conditions:
            factors = filtered(factors, condition)
        return KeySet(factors)

    def select(self, *columns: str) -> KeySet:
        """Return some columns, each combination of their values once: the projection.

        Parameters
        ----------
        *columns : str

        Returns
        -------
        KeySet

        Raises
        ------
        ParameterError
            If none is named, one is not there, or one is named twice.

        Examples
        --------
        >>> KeySet.from_dict({("city", "state"): [("LA", "CA"), ("SF", "CA")]}).select("state")
        KeySet(state STRING: 1 group)
        """
        if not columns:
            _check.refuse("columns", "name at least one column", columns, f"write {self.columns[0]!r}")
        wanted = positions(self._columns, columns)
        start, parts = 0, []
        for factor in self._factors:
            places = sorted(place - start for place in wanted if 0 <= place - start < len(factor.columns))
            start += len(factor.columns)
            if places:
                parts.append(factor.picked(places))
        return KeySet(tuple(parts))

    def join(self, other: KeySet) -> KeySet:
        """Return the groups of two key sets that agree in the columns that both have.

        Parameters
        ----------
        other : KeySet

        Returns
        -------
        KeySet
            With the columns of both, the shared ones once. NULL agrees with NULL, as they are one group.

        Raises
        ------
        ParameterError
            If no column is shared, a shared one has two types, or no groups agree.

        Examples
        --------
        >>> states = KeySet.from_dict({("state", "region"): [("CA", "west"), ("NY", "east")]})
        >>> KeySet.from_dict({"state": ["CA", "TX"], "year": [2023, 2024]}).join(states)
        KeySet(state STRING, region STRING, year INT64: 1 x 2 = 2 groups)
        """
        _require_key_set(other)
        known = {name.casefold() for name in self.columns}
        shared = {name.casefold() for name in other.columns if name.casefold() in known}
        if not shared:
            found = f"the columns are {', '.join(self.columns)} and {', '.join(other.columns)}"
            _check.refuse_state("other", "share a column", found, "write keys * other for all combinations")
        (left, apart), (right, more) = split(self._factors, shared), split(other._factors, shared)
        pairs = [
            (place, positions(right.columns, [column.name])[0])
            for place, column in enumerate(left.columns)
            if column.name.casefold() in shared
        ]
        return KeySet((joined(left, right, pairs), *apart, *more))

    def to_arrow(self) -> pa.Table:
        """Return the groups as a table, a row for each.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        ParameterError
            If they are more than a million.
        """
        return multiplied(self._factors).to_arrow()

    def __getitem__(self, name: object) -> Sequence[object]:
        """Return the values of a factor of one column, or the rows of one of several."""
        for factor in self._factors:
            if name == factor.names:
                return factor.rows
            if (name,) == factor.names:
                return [value for (value,) in factor.rows]
        raise KeyError(name)

    def __iter__(self) -> Iterator[Any]:
        """Yield for each factor its column, or the tuple of its columns."""
        return (factor.names if len(factor.names) > 1 else factor.names[0] for factor in self._factors)

    def __len__(self) -> int:
        """Return how many factors there are."""
        return len(self._factors)

    def __eq__(self, other: object) -> bool:
        """Whether both hold the same groups, in whatever order."""
        if not isinstance(other, KeySet):
            return NotImplemented
        if self.size != other.size or set(self._columns) != set(other._columns):
            return False
        mine, theirs = self._factors, other._factors
        parts = parts_of([*mine, *theirs])
        return all(split(mine, part)[0].ordered == split(theirs, part)[0].ordered for part in parts)

    def __hash__(self) -> int:
        return hash((frozenset(self._columns), self.size))

    def __repr__(self) -> str:
        columns = ", ".join(
            column.name if column.type is None else f"{column.name} {column.type.value}"
            for column in self._columns
        )
        sizes = [len(factor.rows) for factor in self._factors]
        product = f"{' x '.join(map(str, sizes))} = " if len(sizes) > 1 else ""
        return f"KeySet({columns}: {product}{self.size} group{'' if self.size == 1 else 's'})"

    @property
    def _columns(self) -> tuple[Column, ...]:
        return tuple(column for factor in self._factors for column in factor.columns)


def _require_key_set(other: object) -> None:
    if not isinstance(other, KeySet):
        _check.refuse_type("other", "be a KeySet", other, "write KeySet.from_dict({'state': ['CA', 'NY']})")
