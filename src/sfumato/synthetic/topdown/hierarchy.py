"""Places within places: which lowest units there are, and what each of them lies in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check
from sfumato.frames.arrow import as_arrow
from sfumato.synthetic.domain.column_types import is_text, plain_column

__all__ = ["Hierarchy", "Nodes"]

Nodes: TypeAlias = NDArray[np.int64]

_REMEDY: Final = (
    "put the parent's code in front of each code, as FIPS codes of counties begin with the state's"
)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Hierarchy:
    """Levels of places, each within one place of the level above; public.

    Parameters
    ----------
    root : str
        Name of the top level, which has one place.
    names : tuple of str
        Columns of the levels below, from the largest places to the smallest.
    labels : tuple of pyarrow.Array
        The places of each of these levels, ordered so that those of one parent are neighbors.
    parents : tuple of int64 array
        For each place of these levels the index of its parent in the level above.

    Notes
    -----
    `from_table` makes one from a table of the lowest units.

    Examples
    --------
    >>> blocks = pa.table({"state": ["A", "A", "B"], "block": ["A1", "A2", "B1"]})
    >>> Hierarchy.from_table(blocks, ["state", "block"], root="country")
    <Hierarchy country: 1 > state: 2 > block: 3>
    """

    root: str
    names: tuple[str, ...]
    labels: tuple[pa.Array, ...]
    parents: tuple[Nodes, ...]

    @classmethod
    def from_table(cls, units: Any, levels: list[str] | tuple[str, ...], *, root: str = "all") -> Self:
        """Return the hierarchy of a table with a row for each lowest unit.

        Parameters
        ----------
        units : frame
            Public: every unit that there may be, with people in it or not.
        levels : list of str
            The columns that name a unit and what it lies in, from the largest places to the units.
        root : str
            Name of the level above, of one place: everything.

        Returns
        -------
        Hierarchy

        Raises
        ------
        ParameterError
            If a unit is there twice, a place lies in two others, or a label is NULL.
        """
        names = _names(levels, root)
        table = as_arrow("units", units)
        codes, dictionaries = [], []
        for name in names:
            code, values = _coded(table, name)
            codes.append(code)
            dictionaries.append(values)
        if not len(codes[0]):
            _check.refuse_state("units", "have a row for each lowest unit", "it has none", "list the units")
        order = np.lexsort(codes[::-1])
        above, labels, parents = np.zeros(len(order), np.int64), [], []
        for name, code, values in zip(names, codes, dictionaries, strict=True):
            ordered = code[order]
            first = np.flatnonzero(np.r_[True, (np.diff(ordered) != 0) | (np.diff(above) != 0)])
            if len(first) != len(values):
                rule, found = "nest", f"a place of the level {name!r} lies in two places of the level above"
                _check.refuse_state("levels", rule, found, _REMEDY)
            labels.append(values.take(pa.array(ordered[first])))
            parents.append(above[first])
            above = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(ordered)]))
        if len(labels[-1]) != len(order):
            rule, found = f"have each {names[-1]!r} in one row", "one is in several"
            _check.refuse_state("units", rule, found, "leave one row of each, or add a level below")
        return cls(root, names, tuple(labels), tuple(parents))

    def __repr__(self) -> str:
        sizes = " > ".join(f"{name}: {self.size(i)}" for i, name in enumerate(self.levels))
        return f"<Hierarchy {sizes}>"

    @property
    def levels(self) -> tuple[str, ...]:
        """Names of all levels, the root's first."""
        return (self.root, *self.names)

    def size(self, depth: int) -> int:
        """Return how many places a level has.

        Parameters
        ----------
        depth : int
            0 for the root.

        Returns
        -------
        int
        """
        return len(self.labels[depth - 1]) if depth else 1

    def depth(self, level: str) -> int:
        """Return how far below the root a level is.

        Parameters
        ----------
        level : str

        Returns
        -------
        int

        Raises
        ------
        ParameterError
            If there is none of that name.
        """
        if level not in self.levels:
            _check.refuse("level", f"be one of {list(self.levels)}", level, "name a level of the hierarchy")
        return self.levels.index(level)

    def places(self, level: str) -> pa.Array:
        """Return the labels of a level's places, in the order of all counts of it.

        Parameters
        ----------
        level : str

        Returns
        -------
        pyarrow.Array
        """
        depth = self.depth(level)
        return self.labels[depth - 1] if depth else pa.array([self.root])

    def index(self, level: str, labels: Any) -> Nodes:
        """Return which places of a level labels are of.

        Parameters
        ----------
        level : str
        labels : sequence
            Each a place of that level.

        Returns
        -------
        int64 array

        Raises
        ------
        ParameterError
            If one is none.
        """
        known = self.places(level)
        if not isinstance(labels, Iterable):
            rule = f"be a list of places of the level {level!r}"
            _check.refuse_type("labels", rule, labels, "see places(level)")
        given = list(labels) if not isinstance(labels, str) else [labels]
        try:
            found = pc.index_in(pa.array(given, known.type), value_set=known)
        except (pa.ArrowException, TypeError, OverflowError):  # of another type
            found = pa.nulls(1, pa.int32())
        if found.null_count:
            _check.refuse("labels", f"be places of the level {level!r}", given[:5], "see places(level)")
        return np.asarray(found.to_numpy(zero_copy_only=False), np.int64)

    def starts(self, depth: int) -> Nodes:
        """Return where each place's children begin in the level below, and where the last one's end.

        Parameters
        ----------
        depth : int
            Of the parents.

        Returns
        -------
        int64 array, one longer than there are places
        """
        return np.searchsorted(self.parents[depth], np.arange(self.size(depth) + 1))

    def ancestors(self, depth: int) -> Nodes:
        """Return the place of a level that each lowest unit lies in.

        Parameters
        ----------
        depth : int
            Of the level.

        Returns
        -------
        int64 array with an entry for each lowest unit
        """
        place = np.arange(self.size(len(self.names)))
        for parents in self.parents[depth:][::-1]:
            place = parents[place]
        return place

    def encode(self, table: pa.Table) -> Nodes:
        """Return the lowest unit of each row, -1 where it is none of them.

        Parameters
        ----------
        table : pyarrow.Table
            Private; the column of the lowest level is read and no other.

        Returns
        -------
        int64 array of shape (rows,)

        Raises
        ------
        ParameterError
            If it has no such column, or one of another type, whatever is in it.
        """
        name, known = self.names[-1], self.labels[-1]
        if table.schema.names.count(name) != 1:
            rule, found = f"have the column {name!r} once", "it has not"
            _check.refuse_state("table", rule, found, "rename its columns")
        column = plain_column(pa.chunked_array(table[name]))
        if _kind(column.type) != _kind(known.type):
            rule, found = f"be of {known.type}, as its places are", f"it is of {column.type}"
            _check.refuse_state(f"column {name!r}", rule, found, "cast it")
        if pa.types.is_integer(column.type) and column.type != known.type:
            column = column.cast(pa.int64(), safe=False)
        found = pc.fill_null(pc.index_in(column.cast(known.type), value_set=known), -1)
        return np.asarray(found.to_numpy(), np.int64)


def _names(levels: object, root: object) -> tuple[str, ...]:
    if isinstance(levels, str) or not isinstance(levels, list | tuple) or not levels:
        _check.refuse_type("levels", "be a list of columns", levels, "write ['state', 'county', 'block']")
    names = tuple(levels)
    if len({*names, root}) <= len(names) or not all(isinstance(name, str) for name in (*names, root)):
        _check.refuse("levels", "be different texts, and other than the root", names, "name each level once")
    return names


def _coded(table: pa.Table, name: str) -> tuple[Nodes, pa.Array]:
    """Return a column's values as numbers of its different ones."""
    if table.schema.names.count(name) != 1:
        rule, found = (
            "have a column for each level",
            f"{name!r} is there {table.schema.names.count(name)} times",
        )
        _check.refuse_state("units", rule, found, "rename its columns, or name other levels")
    column = plain_column(pa.chunked_array(table[name]))
    if column.null_count or _kind(column.type) == "other":
        found = "one is NULL" if column.null_count else f"those of {name!r} are of {column.type}"
        _check.refuse_state("labels", "be texts or whole numbers", found, "give each place a label")
    column = column.cast(pa.large_string() if _kind(column.type) == "text" else pa.int64())
    values = column.unique()
    values = values.take(pc.sort_indices(values))
    return np.asarray(pc.index_in(column, value_set=values).to_numpy(), np.int64), values


def _kind(kind: pa.DataType) -> str:
    if is_text(kind):
        return "text"
    return "number" if pa.types.is_integer(kind) else "other"
