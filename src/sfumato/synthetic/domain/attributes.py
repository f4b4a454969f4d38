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

__all__ = ["Attribute", "Categorical", "Codes", "Label", "Ordered", "attribute_of"]

Codes: TypeAlias = NDArray[np.int64]
Label: TypeAlias = str | int | float | bool | None
Edge: TypeAlias = float | dt.date

OUTSIDE: Final = -1
_MOST: Final = 1 << 20
_WIDEST: Final = 1e308
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

    def __post_init__(self) -> None:
        _check_flags(missing=self.missing, other=self.other)
        if self.other and isinstance(self.values, list | tuple) and "(other)" in self.values:
            found = "it is the label of the others"
            _check.refuse_state("values", "not have '(other)' beside other=True", found, "rename it")
        if isinstance(self.values, str | bytes | Mapping) or not isinstance(self.values, Sequence):
            _check.refuse_type("values", "be a list of the column's values", self.values, _LIST)
        values = tuple(self.values)
        if len({type(value) for value in values}) != 1 or not isinstance(values[0], str | int | bool):
            found = f"it has {len(values)} of types {sorted({type(value).__name__ for value in values})}"
            _check.refuse_state("values", "be texts, whole numbers or truth values alone", found, _LIST)
        if len(set(values)) != len(values) or len(values) > _MOST:
            found = "one is twice in it" if len(values) <= _MOST else f"it has {len(values)}"
            _check.refuse_state("values", f"be at most {_MOST} different values", found, "leave some out")
        object.__setattr__(self, "values", values)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.values) + self.other + self.missing

    @property
    def labels(self) -> tuple[Label, ...]:
        """The cells' labels: the values, then ``"(other)"`` and None where these are cells."""
        return (*self.values, *(["(other)"] if self.other else []), *([None] if self.missing else []))

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
        kind = type(self.values[0])
        suits = {str: _is_text, bool: pa.types.is_boolean, int: pa.types.is_integer}[kind]
        if not suits(column.type):
            rule = f"be a column of {_NAMES[kind]}, as its declared values are"
            _check.refuse_state(f"column {name!r}", rule, f"it is of {column.type}", "cast it")
        wide = {str: pa.large_string(), bool: pa.bool_(), int: pa.int64()}[kind]
        if kind is int and column.type == pa.uint64():
            column = pc.if_else(pc.greater(column, pa.scalar(2**63 - 1, pa.uint64())), None, column)
        known = [value for value in self.values if kind is not int or -(2**63) <= value < 2**63]
        places = np.array([self.values.index(value) for value in known], np.int64)
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
        _check_flags(missing=self.missing)
        if self.lower is not None and self.upper is not None:
            _check_ends(self.lower, self.upper)
        if (self.edges is None) == (self.lower is None or self.upper is None or self.bins is None):
            rule = "be given, or else lower, upper and bins"
            _check.refuse("edges", rule, self.edges, "write Ordered(0, 100, bins=20)")
        if self.edges is not None:
            object.__setattr__(self, "edges", _rising(self.edges))
            return
        lower, upper = _check.finite("lower", self.lower), _check.finite("upper", self.upper)
        bins = _check.integer("bins", self.bins, minimum=1)
        if bins > _MOST:
            _check.refuse("bins", f"be at most {_MOST}", bins, "take fewer")
        object.__setattr__(self, "edges", _rising(np.linspace(lower, upper, bins + 1).tolist()))

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
        if upper - lower >= _MOST:
            _check.refuse("upper", f"be less than {_MOST} above lower", upper, "take bins")
        edges = tuple(range(lower, upper + 2))
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
            names = [f"[{_text(a)}, {_text(b)})" for a, b in pairwise(edges)]
            names[-1] = f"{str(names[-1])[:-1]}]"
        return (*names, *([None] if self.missing else []))

    @property
    def _rising(self) -> tuple[Any, ...]:
        return tuple(self.edges or ())

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
        dated = isinstance(self._rising[0], dt.date)
        if dated and not (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
            _check.refuse_state(
                f"column {name!r}", "be of dates, as its edges are", f"it is of {column.type}", "cast it"
            )
        if not dated and not _is_number(column.type):
            _check.refuse_state(
                f"column {name!r}", "be of numbers, as its edges are", f"it is of {column.type}", "cast it"
            )
        # NULL becomes NaN
        values = calendar_days(column) if dated else column.cast(pa.float64(), safe=False).to_numpy()
        edges = np.array([_number(edge) for edge in self._rising])
        codes = np.searchsorted(edges[1:-1], values, side="right")
        absent = self.size - 1 if self.missing else OUTSIDE
        return np.where(np.isnan(values), absent, codes)

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
    if isinstance(given, list | tuple):
        return Categorical(tuple(given))
    rule = "be Categorical, Ordered or a list of categories"
    return _check.refuse_type(name, rule, given, "declare its cells")


def plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with its dictionary decoded, if it has one."""
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    return column


def _check_flags(**flags: object) -> None:
    """Refuse what is neither True nor False: a number would be that many cells."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            _check.refuse(name, "be True or False", flag, "leave it out for False")


def _check_ends(lower: object, upper: object) -> None:
    """Refuse ends that do not rise, or whose distance is beyond floats."""
    first, last = _check.finite("lower", lower), _check.finite("upper", upper)
    if not first < last <= first + _WIDEST:
        _check.refuse("upper", "be above lower, by at most 1e308", upper, "exchange them, or rescale")


def _rising(edges: object) -> tuple[Any, ...]:
    if isinstance(edges, str | bytes) or not isinstance(edges, Sequence | np.ndarray) or len(edges) < 2:
        _check.refuse_type("edges", "be a list of at least two numbers or dates", edges, "pass [0, 10, 20]")
    given = tuple(edges)
    dated = all(isinstance(e, dt.date) and not isinstance(e, dt.datetime) for e in given)
    if not dated:
        given = tuple(_check.finite("edges", edge) for edge in given)
    if len(given) - 1 > _MOST or not all(a < b for a, b in pairwise(given)):
        rule = f"rise, and be those of at most {_MOST} bins"
        _check.refuse_state("edges", rule, "they do not", "sort them and leave out what is twice in it")
    return given


def _number(edge: Edge) -> float:
    return float((edge - dt.date(1970, 1, 1)).days) if isinstance(edge, dt.date) else edge


def _text(edge: Edge) -> str:
    return edge.isoformat() if isinstance(edge, dt.date) else f"{edge:.10g}"


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


_NAMES: Final = {str: "texts", int: "whole numbers", bool: "truth values"}
