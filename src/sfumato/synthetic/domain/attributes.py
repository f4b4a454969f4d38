"""The cells of one column: categories, or bins of an ordered scale."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final, Self, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check
from sfumato.synthetic.domain.calendar_days import calendar_days
from sfumato.synthetic.domain.column_types import is_number, is_text, plain_column, unstorable, value_type
from sfumato.synthetic.domain.edges import MOST_CELLS, check_ends, edge_number, edge_text, rising_edges

__all__ = [
    "Attribute",
    "Categorical",
    "Codes",
    "Label",
    "Ordered",
    "attribute_of",
    "check_flags",
]

Codes: TypeAlias = NDArray[np.int64]
Label: TypeAlias = str | int | float | bool | None

OUTSIDE: Final = -1
_LIST: Final = "pass a list of texts, of whole numbers or of truth values"


@final
@dataclass(frozen=True, slots=True)
class Categorical:
    """A column of declared values.

    Parameters
    ----------
    values : sequence of str, of int or of bool
        Each a cell, all of one type; public, as a schema or a dictionary of variables has them.
    missing : bool
        Whether NULL is a cell of its own; else a row with NULL is not counted.
    other : bool
        Whether undeclared values are a cell; else a row with one is not counted.

    Raises
    ------
    ParameterError
        If values are none, repeated, or of several types.

    Examples
    --------
    >>> sex = Categorical(["f", "m"], missing=True)
    >>> sex.size, sex.labels
    (3, ('f', 'm', None))
    """

    values: Sequence[Any]
    missing: bool = False
    other: bool = False
    _kind: type = field(init=False, repr=False)  # so that True and False do not equal 1 and 0

    def __post_init__(self) -> None:
        check_flags(missing=self.missing, other=self.other)
        if self.other and isinstance(self.values, list | tuple) and "(other)" in self.values:
            found = "it is the label of the others"
            _check.refuse_state("values", "not have '(other)' beside other=True", found, "rename it")
        if isinstance(self.values, str | bytes | Mapping) or not isinstance(self.values, Sequence):
            _check.refuse_type("values", "be a list of the column's values", self.values, _LIST)
        values = tuple(self.values)
        if len({type(value) for value in values}) != 1 or not isinstance(values[0], str | int | bool):
            found = f"it has {len(values)} of types {sorted({type(value).__name__ for value in values})}"
            _check.refuse_state("values", "be texts, whole numbers or truth values alone", found, _LIST)
        if isinstance(values[0], str) and any(map(unstorable, values)):
            found = "one holds NUL or half a surrogate pair"
            _check.refuse_state("values", "be texts that a column can hold", found, "leave it out")
        if len(set(values)) != len(values) or len(values) > MOST_CELLS:
            found = "one is twice in it" if len(values) <= MOST_CELLS else f"it has {len(values)}"
            _check.refuse_state(
                "values", f"be at most {MOST_CELLS} different values", found, "leave some out"
            )
        kind = bool if isinstance(values[0], bool) else int if isinstance(values[0], int) else str
        object.__setattr__(self, "_kind", kind)
        # An enumeration's members, and texts of numpy, as what they are a kind of.
        object.__setattr__(self, "values", tuple(kind.__str__(v) if kind is str else kind(v) for v in values))

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.values) + self.other + self.missing

    @property
    def labels(self) -> tuple[Label, ...]:
        """The cells' labels: the values, then ``"(other)"`` and None where these are cells."""
        return (*self.values, *(["(other)"] if self.other else []), *([None] if self.missing else []))

    @property
    def _places(self) -> dict[Any, int]:
        return {value: place for place, value in enumerate(self.values)}

    def require(self, name: str, kind: pa.DataType) -> None:
        """Refuse a column of another type than the declared values.

        Parameters
        ----------
        name : str
            The column's, for messages.
        kind : pyarrow.DataType

        Raises
        ------
        ParameterError
            If texts, whole numbers or truth values are declared, and the column is of something else.
        """
        values = self._kind
        suits = {str: is_text, bool: pa.types.is_boolean, int: pa.types.is_integer}[values]
        if not suits(value_type(kind)):
            rule = f"be a column of {_NAMES[values]}, as its declared values are"
            _check.refuse_state(f"column {name!r}", rule, f"it is of {kind}", "cast it")

    def encode(self, name: str, column: pa.ChunkedArray) -> Codes:
        """Return each row's cell, -1 where it is not counted.

        Parameters
        ----------
        name : str
            The column's, for messages.
        column : pyarrow.ChunkedArray
            Texts for texts, whole numbers for whole numbers, truth values for truth values; private.

        Returns
        -------
        int64 array of shape (n,)

        Raises
        ------
        ParameterError
            If the column is of another type, whatever is in it.
        """
        column = plain_column(column)
        self.require(name, column.type)
        kind = self._kind
        wide = {str: pa.large_string(), bool: pa.bool_(), int: pa.int64()}[kind]
        lowest, beyond = -(2**63), 2**63
        if column.type == pa.uint64():
            wide, lowest, beyond = column.type, 0, 2**64
        known = [value for value in self.values if kind is not int or lowest <= value < beyond]
        places = np.array([self._places[value] for value in known], np.int64)
        found = pc.index_in(column.cast(wide), value_set=pa.array(known, wide))
        other = len(self.values) if self.other else OUTSIDE
        null = self.size - 1 if self.missing else OUTSIDE
        index = pc.fill_null(found, len(known)).to_numpy()
        codes = np.append(places, other)[index]
        return np.where(column.is_null().to_numpy(), null, codes)

    def described(self) -> dict[str, Any]:
        """Return what a document says of it.

        Returns
        -------
        dict
        """
        return {"values": list(self.values), "missing": self.missing, "other": self.other}


@final
@dataclass(frozen=True, slots=True)
class Ordered:
    """A column of numbers or dates in declared bins.

    Parameters
    ----------
    lower, upper : float, optional
        The ends of the scale; values beyond are counted in the first and last bins.
    bins : int, optional
        How many bins of one width there are between them.
    edges : sequence of float or of datetime.date, optional
        Instead of ``lower``, ``upper`` and ``bins``: the bins' edges, rising. A bin holds its left edge.
    missing : bool
        Whether NULL and NaN are a cell of their own; else a row with one is not counted.

    Raises
    ------
    ParameterError
        If edges do not rise, or what they follow from is not given.

    Examples
    --------
    >>> Ordered(0, 100, bins=4).labels
    ('[0, 25)', '[25, 50)', '[50, 75)', '[75, 100]')
    >>> Ordered.integers(17, 90).size
    74
    """

    lower: float | None = field(default=None, compare=False)  # what it is follows from the edges
    upper: float | None = field(default=None, compare=False)
    bins: int | None = field(default=None, compare=False)
    edges: Sequence[Any] | None = None
    missing: bool = False
    _whole: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        check_flags(missing=self.missing)
        if self.lower is not None and self.upper is not None:
            check_ends(self.lower, self.upper)
        if (self.edges is None) == (self.lower is None or self.upper is None or self.bins is None):
            rule = "be given, or else lower, upper and bins"
            _check.refuse("edges", rule, self.edges, "write Ordered(0, 100, bins=20)")
        if self.edges is not None:
            object.__setattr__(self, "edges", rising_edges(self.edges))
            return
        lower, upper = _check.finite("lower", self.lower), _check.finite("upper", self.upper)
        bins = _check.integer("bins", self.bins, minimum=1)
        if bins > MOST_CELLS:
            _check.refuse("bins", f"be at most {MOST_CELLS}", bins, "take fewer")
        object.__setattr__(self, "edges", rising_edges(np.linspace(lower, upper, bins + 1).tolist()))

    @classmethod
    def integers(cls, lower: int, upper: int, *, missing: bool = False) -> Self:
        """Return a scale with a cell for each whole number from ``lower`` to ``upper``.

        Parameters
        ----------
        lower, upper : int
        missing : bool
            As in the class.

        Returns
        -------
        Ordered
        """
        lower = _check.integer("lower", lower, minimum=-(2**52))
        upper = _check.integer("upper", upper, minimum=lower)
        if upper - lower >= MOST_CELLS:
            _check.refuse("upper", f"be less than {MOST_CELLS} above lower", upper, "take bins")
        edges = np.arange(lower, upper + 2, dtype=np.float64).tolist()
        return cls(edges=edges, missing=missing, _whole=True)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self._rising) - 1 + self.missing

    @property
    def labels(self) -> tuple[Label, ...]:
        """The cells' labels: the number, or the bin as text; None for NULL where that is a cell."""
        edges = self._rising
        if self._whole:
            names: list[Label] = [int(edge) for edge in edges[:-1]]
        else:
            names = [f"[{edge_text(a)}, {edge_text(b)})" for a, b in pairwise(edges)]
            names[-1] = f"{str(names[-1])[:-1]}]"
        return (*names, *([None] if self.missing else []))

    @property
    def numbers(self) -> tuple[float, ...]:
        """The edges as numbers; those that are dates in days since 1970."""
        return tuple(edge_number(edge) for edge in self._rising)

    @property
    def _rising(self) -> tuple[Any, ...]:
        return tuple(self.edges or ())

    @property
    def whole(self) -> bool:
        """Whether each cell is a whole number."""
        return self._whole

    @property
    def dated(self) -> bool:
        """Whether its edges are dates."""
        return isinstance(self._rising[0], dt.date)

    def require(self, name: str, kind: pa.DataType) -> None:
        """Refuse a column of another type than the edges.

        Parameters
        ----------
        name : str
            The column's, for messages.
        kind : pyarrow.DataType

        Raises
        ------
        ParameterError
            If edges are dates and the column is neither of dates nor of timestamps, or edges are numbers and
            the column is not.
        """
        of = value_type(kind)
        suits = (pa.types.is_date(of) or pa.types.is_timestamp(of)) if self.dated else is_number(of)
        if not suits:
            rule = f"be of {'dates' if self.dated else 'numbers'}, as its edges are"
            _check.refuse_state(f"column {name!r}", rule, f"it is of {kind}", "cast it")

    def encode(self, name: str, column: pa.ChunkedArray) -> Codes:
        """Return each row's cell, -1 where it is not counted.

        Parameters
        ----------
        name : str
            The column's, for messages.
        column : pyarrow.ChunkedArray
            Numbers where edges are numbers, dates or timestamps where they are dates; private. A timestamp
            is of its day in UTC; a moment outside of the years 1 to 9999 is NULL, as in SQL.

        Returns
        -------
        int64 array of shape (n,)

        Raises
        ------
        ParameterError
            If the column is of another type, whatever is in it.
        """
        column = plain_column(column)
        self.require(name, column.type)
        values = self.as_numbers(column)
        edges = np.array(self.numbers)
        codes = np.searchsorted(edges[1:-1], values, side="right")
        absent = self.size - 1 if self.missing else OUTSIDE
        return np.where(np.isnan(values), absent, codes)

    def as_numbers(self, column: pa.ChunkedArray) -> NDArray[np.float64]:
        """Return each row's number, of a date in days since 1970; NaN for NULL.

        Parameters
        ----------
        column : pyarrow.ChunkedArray
            Of a type that `require` accepts, and no dictionary; private.

        Returns
        -------
        float64 array of shape (n,)
        """
        if self.dated:
            return calendar_days(column)
        if pa.types.is_decimal(column.type):
            column = column.cast(pa.string())  # its text is read as the nearest float, which a cast is not
        values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
        return values

    def described(self) -> dict[str, Any]:
        """Return what a document says of it.

        Returns
        -------
        dict
        """
        if self._whole:
            edges = self._rising
            return {"integers": [int(edges[0]), int(edges[-1]) - 1], "missing": self.missing}
        edges = tuple(e.isoformat() if isinstance(e, dt.date) else float(e) for e in self._rising)
        return {"edges": list(edges), "missing": self.missing}


Attribute: TypeAlias = Categorical | Ordered


def attribute_of(name: str, given: object) -> Attribute:
    """Return an attribute, a list as the categories that it lists."""
    if isinstance(given, Categorical | Ordered):
        return given
    if isinstance(given, list | tuple | range):
        return Categorical(tuple(given))
    rule = "be Categorical, Ordered or a list of categories"
    return _check.refuse_type(name, rule, given, "declare its cells")


def check_flags(**flags: object) -> None:
    """Refuse what is neither True nor False: a number would be that many cells."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            _check.refuse(name, "be True or False", flag, "leave it out for False")


_NAMES: Final = {str: "texts", int: "whole numbers", bool: "truth values"}
