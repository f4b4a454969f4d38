"""Factors of key sets: small relations of public keys, from lists, ranges and frames."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Final, NoReturn, final

import pyarrow as pa
from sqlglot import parse_one

from sfumato import _check
from sfumato.errors import OptionError, UnsupportedSql
from sfumato.frames.arrow import as_arrow
from sfumato.queries.plan.constants import stored_value
from sfumato.queries.plan.query import Column, ColumnType
from sfumato.queries.plan.schema import ARROW_TYPES
from sfumato.queries.plan.sql_text import literal_sql
from sfumato.queries.plan.typed_expressions import closest_name
from sfumato.queries.sql.clauses.array_literals import listed_values
from sfumato.queries.sql.clauses.public_lists import MAX_GROUPS
from sfumato.queries.sql.parser import PrivateSql

__all__ = [
    "KeyFactor",
    "frame_factor",
    "listed_factor",
    "positions",
    "range_factor",
    "refuse_empty",
    "require_apart",
    "require_few",
]

_TYPES: Final = (
    ColumnType.BOOLEAN,
    ColumnType.INTEGER,
    ColumnType.FLOAT,
    ColumnType.TEXT,
    ColumnType.TIMESTAMP,
    ColumnType.DATE,
)
_RULE: Final = (
    "be of one type: bools, whole numbers of 64 bits, finite numbers, texts without NUL, dates or datetimes"
)
_ARROW_KINDS: Final[tuple[tuple[Callable[[pa.DataType], bool], ColumnType], ...]] = (
    (pa.types.is_boolean, ColumnType.BOOLEAN),
    (pa.types.is_integer, ColumnType.INTEGER),
    (pa.types.is_floating, ColumnType.FLOAT),
    (pa.types.is_string, ColumnType.TEXT),
    (pa.types.is_large_string, ColumnType.TEXT),
    (pa.types.is_string_view, ColumnType.TEXT),
    (pa.types.is_date, ColumnType.DATE),
    (pa.types.is_null, ColumnType.TEXT),
)
_UNITS: Final = ("day", "week", "month", "quarter", "year")


@final
@dataclass(frozen=True, slots=True)
class KeyFactor:
    """Distinct rows of one or several columns.

    Parameters
    ----------
    columns : tuple of Column
        One without a type holds NULL alone.
    rows : tuple of tuple
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[object, ...], ...]

    @classmethod
    def of(cls, names: Sequence[str], rows: Iterable[Sequence[object]]) -> KeyFactor:
        """Return the distinct rows among some, their values as a query stores them.

        Parameters
        ----------
        names : sequence of str
        rows : iterable of sequence
            At most a million, each with a value for every name.

        Raises
        ------
        ParameterError
            If there is none, there are too many, or the values of a column are not of one type.
        """
        listed = list(itertools.islice(rows, MAX_GROUPS + 1))
        require_few(len(listed))
        if not listed:
            refuse_empty()
        stored = [
            _stored(name, values) for name, values in zip(names, zip(*listed, strict=True), strict=True)
        ]
        columns = tuple(Column(name, type_) for name, (type_, _) in zip(names, stored, strict=True))
        return cls(columns, tuple(dict.fromkeys(zip(*(values for _, values in stored), strict=True))))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def ordered(self) -> tuple[tuple[str, ...], frozenset[tuple[object, ...]]]:
        """The columns in the order of their names, and the rows in any order."""
        order = sorted(range(len(self.columns)), key=lambda place: self.columns[place].name)
        picked = self.picked(order)
        return picked.names, frozenset(picked.rows)

    def picked(self, places: Sequence[int]) -> KeyFactor:
        """Return some of the columns, each combination of their values once.

        Parameters
        ----------
        places : sequence of int
        """
        if list(places) == list(range(len(self.columns))):
            return self
        rows = dict.fromkeys(tuple(row[place] for place in places) for row in self.rows)
        return KeyFactor(tuple(self.columns[place] for place in places), tuple(rows))

    def to_arrow(self) -> pa.Table:
        """Return the rows as a table; what holds NULL alone is of Arrow's type for that."""
        kinds = [pa.null() if column.type is None else ARROW_TYPES[column.type] for column in self.columns]
        values = zip(*self.rows, strict=True)
        return pa.table([pa.array(v, k) for v, k in zip(values, kinds, strict=True)], list(self.names))


def listed_factor(name: object, rows: object) -> KeyFactor:
    """Return the factor of a column and its values, or of a tuple of columns and their rows.

    Parameters
    ----------
    name : str or tuple of str
    rows : iterable

    Raises
    ------
    ParameterError
        If they are not of these forms, or the values of a column are not of one type.
    """
    names = [_name(each) for each in name] if isinstance(name, tuple) and name else [_name(name)]
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        _check.refuse_type(f"the keys of {name!r}", "be a list", rows, "write ['CA', 'NY']")
    if not isinstance(name, tuple):
        return KeyFactor.of(names, ((value,) for value in rows))
    return KeyFactor.of(names, (_row(row, name) for row in rows))


def _row(row: object, names: tuple[object, ...]) -> tuple[object, ...]:
    if not isinstance(row, (tuple, list)) or len(row) != len(names):
        rule = f"be rows of {len(names)} values"
        _check.refuse_type(
            f"the keys of {names!r}", rule, row, "write them as tuples, one value for each column"
        )
    return tuple(row)


def _name(name: object) -> str:
    if not isinstance(name, str) or not name:
        _check.refuse("a column of a key set", "be a non-empty string", name, "name the GROUP BY item")
    return name


def range_factor(column: object, start: object, end: object, step: object, unit: str) -> KeyFactor:
    """Return whole numbers or dates at equal steps, as GENERATE_ARRAY and GENERATE_DATE_ARRAY list them.

    Parameters
    ----------
    column : str
    start, end : int or date
    step : int
    unit : str

    Raises
    ------
    ParameterError
        If the ends are not two whole numbers or two dates, or none or more than a million keys follow.
    """
    dates = [isinstance(end_, dt.date) and not isinstance(end_, dt.datetime) for end_ in (start, end)]
    whole = [isinstance(number, int) and not isinstance(number, bool) for number in (start, end, step)]
    if not whole[2] or not (all(dates) or all(whole)) or not step or (all(dates) and int(str(step)) < 0):
        found = f"they are {start!r}, {end!r} and {step!r}"
        rule = "be two whole numbers or two dates, and a whole number that is not 0 (of dates, positive)"
        _check.refuse_state("start, end and step", rule, found, "write from_range('age', 18, 99)")
    if unit not in _UNITS:
        _check.refuse("unit", f"be one of {', '.join(_UNITS)}", unit, "write unit='month', say")
    ends = f"{literal_sql(start)}, {literal_sql(end)}"
    text = f"GENERATE_ARRAY({ends}, {step})"
    if all(dates):
        text = f"GENERATE_DATE_ARRAY({ends}, INTERVAL {step} {unit.upper()})"
    values: list[object] = []
    try:
        values, _ = listed_values(parse_one(text, dialect=PrivateSql()))
    except UnsupportedSql:
        found = f"they are {start!r}, {end!r} and {step!r}"
        rule = "make 1 to 1,000,000 keys"
        _check.refuse_state("start, end and step", rule, found, "choose other ends")
    return KeyFactor.of([_name(column)], ((value,) for value in values))


def frame_factor(frame: object, columns: Sequence[object]) -> KeyFactor:
    """Return the distinct rows of columns of a frame.

    Parameters
    ----------
    frame : pyarrow Table, frame of pandas or Polars, or another frame
    columns : sequence of str
        All of them where there is none.

    Raises
    ------
    SourceError
        If it is no frame.
    ParameterError
        If a column is not there, or of a type that no key has.
    """
    table = as_arrow("keys", frame)
    known = [Column(name, None) for name in table.column_names]
    places = positions(known, columns) if columns else range(len(known))
    typed = {table.column_names[place]: _typed(table.column_names[place], table[place]) for place in places}
    distinct = pa.table(typed).group_by(list(typed), use_threads=False).aggregate([]) if typed else table
    rows: list[tuple[object, ...]] | None = None
    with suppress(ValueError, OverflowError):  # a year that Python has not
        rows = list(zip(*(distinct[name].to_pylist() for name in typed), strict=True))
    if rows is None:
        rule, found = "hold dates of the years 1 to 9999", "there are others"
        _check.refuse_state("a frame of keys", rule, found, "filter them first")
    return KeyFactor.of(list(typed), rows)


def _typed(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of a frame in the type that a query has for its values."""
    kind, found = column.type, None
    with suppress(pa.ArrowException):  # a number of more than 64 bits, or nanoseconds that no datetime has
        if pa.types.is_dictionary(kind):
            column = column.cast(kind.value_type)
        if pa.types.is_timestamp(column.type):
            found = column.cast(pa.timestamp("us"))
        for is_kind, type_ in _ARROW_KINDS:
            if is_kind(column.type):
                found = column.cast(ARROW_TYPES[type_])
    if found is None:
        state = f"it is of Arrow's type {kind}, or has values beyond"
        _check.refuse_state(f"column {name!r}", _RULE, state, "convert it, or leave it out")
    return found


def _stored(name: str, values: Sequence[object]) -> tuple[ColumnType | None, list[object]]:
    """Return the type of a column, which the first value gives, and its values as a query stores them."""
    first = next((value for value in values if value is not None), None)
    if first is None:
        return None, list(values)
    types = [type_ for type_ in _TYPES if _is_of(first, type_)]  # of a whole number two
    for type_ in types:
        if all(_is_of(value, type_) for value in values):
            return type_, [stored_value(value, type_, name) for value in values]
    fits = [bool(types) and _is_of(value, types[-1]) for value in values]
    wrong = next(value for value, fit in zip(values, fits, strict=True) if value is not None and not fit)
    return _check.refuse_type(f"the keys of {name!r}", _RULE, wrong, "convert them")


def _is_of(value: object, type_: ColumnType) -> bool:
    """Return whether a query can store a value in a type, a whole number without rounding its size away."""
    if type_ is ColumnType.FLOAT and isinstance(value, Integral):
        type_ = ColumnType.INTEGER
    try:
        stored_value(value, type_, "a key")
    except OptionError:
        return False
    return True


def positions(columns: Sequence[Column], names: Sequence[object]) -> list[int]:
    """Return where columns of some names are, without regard to case, as in SQL.

    Parameters
    ----------
    columns : sequence of Column
    names : sequence of str

    Raises
    ------
    ParameterError
        If there is no such column, or one is named twice.
    """
    known = [column.name.casefold() for column in columns]
    found: list[int] = []
    for name in names:
        place = known.index(name.casefold()) if isinstance(name, str) and name.casefold() in known else None
        if place is None:
            written = [column.name for column in columns]
            close = closest_name(name, written) if isinstance(name, str) else None
            remedy = f"its columns are {', '.join(written)}" if close is None else f"did you mean {close!r}?"
            _check.refuse("columns", "be columns of the key set", name, remedy)
        if place in found:
            _check.refuse("columns", "name each column once", name, "leave one out")
        found.append(place)
    return found


def require_apart(columns: Sequence[Column]) -> None:
    """Refuse columns of one name, without regard to case."""
    names = [column.name.casefold() for column in columns]
    for index, name in enumerate(names):
        if name in names[:index]:
            found = f"{columns[index].name!r} comes twice"
            _check.refuse_state("a key set", "name each column once", found, "rename one, or join on it")


def require_few(count: int) -> None:
    """Refuse to write out more than a million rows."""
    if count > MAX_GROUPS:
        rule, remedy = f"hold at most {MAX_GROUPS} rows that are written out", "list fewer, or filter first"
        _check.refuse("a key set", rule, count, remedy)


def refuse_empty() -> NoReturn:
    """Refuse a key set without groups."""
    _check.refuse_state("a key set", "hold at least one group", "none is left", "list more, or filter less")
