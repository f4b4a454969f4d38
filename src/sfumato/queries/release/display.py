"""A released table as people read it: rows that cannot steer a terminal or a page, or bars with whiskers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato import _check
from sfumato._display import html_table, named, printable, shortened, shown
from sfumato.mechanisms.base.release_table import Rows, drawn_few
from sfumato.numerics.interval import Interval
from sfumato.privacy.interpretation.plotting import label_text

__all__ = ["as_html", "as_text", "drawn_table", "plain_rows", "plain_values", "printable", "promise", "shown"]

_MAX_ROWS = 10
_MAX_HTML_ROWS = 20
_ENDS = ("_lower", "_upper")


def promise(guarantee: str, privacy_unit: str, *, simulated: bool) -> str:
    """Say what one release promises to whom; a simulated one protects nobody.

    Examples
    --------
    >>> promise("1", "person", simulated=False)
    '1-DP for each person'
    """
    made = f"{guarantee}-DP for each {privacy_unit}"
    return f"simulated, protects nobody: would be {made}" if simulated else made


def plain_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Return a column as Python's values; in words if one is a date or time that Python has none for.

    Python's dates are of the years 1 to 9999, those of a query are not.

    Examples
    --------
    >>> plain_values(pa.array([0, 2_932_897], pa.int32()).cast(pa.date32()))
    ['1970-01-01', '10000-01-01']
    """
    try:
        found: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):
        found = column.cast(pa.string()).to_pylist()
    return found


def plain_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table, in values as `plain_values` has them.

    Parameters
    ----------
    table : pyarrow.Table
    """
    yield from zip(*map(plain_values, table.columns), strict=True)


def as_text(table: pa.Table, footer: str, keys: Collection[str] = ()) -> str:
    """Return the first rows in columns, and a last line; numbers of ``keys`` are names, such as years.

    Examples
    --------
    >>> print(as_text(pa.table({"state": ["Iowa", "Ohio"], "n": [950, 12000]}), "2 rows"))
    state       n
    Iowa      950
    Ohio   12,000
    2 rows
    """
    rows = list(_rows(table, keys))
    widths = [max(len(row[i]) for row in rows) for i in range(table.num_columns)]
    numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    right = [any(is_number(kind) for is_number in numbers) for kind in table.schema.types]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join((*lines, *_more(table), printable(footer)))


def as_html(
    table: pa.Table,
    footer: str,
    keys: Collection[str] = (),
    *,
    facts: Mapping[str, str] | None = None,
    intervals: pa.Table | None = None,
) -> str:
    """Return the first rows as an HTML table, with what is said of it below.

    Parameters
    ----------
    table : pyarrow.Table
    footer : str
        The table's caption: what it guarantees.
    keys : collection of str
        Columns whose numbers are names, such as years.
    facts : mapping of str to str, optional
        What else is said, by its name.
    intervals : pyarrow.Table, optional
        The same rows with columns ``<name>_lower`` and ``<name>_upper`` more, whose values stand beside those
        of ``<name>``.

    Examples
    --------
    >>> as_html(pa.table({"n": [7]}), "a count", facts={"cost": "nothing"})[-66:-6]
    '></tr></tbody></table><dl><dt>cost</dt><dd>nothing</dd></dl>'
    """
    head, *rows = _rows(table, keys, _MAX_HTML_ROWS)
    beside = {} if intervals is None else _beside(table, intervals)
    noted = (
        [
            (cell, beside[column][index]) if column in beside else cell
            for column, cell in zip(table.column_names, row, strict=True)
        ]
        for index, row in enumerate(rows)
    )
    return html_table(footer, head, noted, more="".join(_more(table, _MAX_HTML_ROWS)), facts=facts)


def _beside(table: pa.Table, intervals: pa.Table) -> dict[str, list[str]]:
    """Return the intervals of the columns that have some, one for each of the first rows."""
    found = {}
    for name in table.column_names:
        ends = [f"{name}_{end}" for end in ("lower", "upper")]
        if all(end in intervals.column_names and end not in table.column_names for end in ends):
            values = (intervals[end].slice(0, _MAX_HTML_ROWS).to_pylist() for end in ends)
            found[name] = [_interval(low, high) for low, high in zip(*values, strict=True)]
    return found


def _interval(low: object, high: object) -> str:
    if low is None or high is None or isinstance(low, list):
        return ""
    return f"[{shown(low)}, {shown(high)}]"


def _rows(table: pa.Table, keys: Collection[str], most: int = _MAX_ROWS) -> Iterator[tuple[str, ...]]:
    yield tuple(shortened(printable(name)) for name in table.column_names)
    few = table.slice(0, most)
    columns = [
        [shortened(named(value) if name in keys else shown(value)) for value in plain_values(column)]
        for name, column in zip(few.column_names, few.columns, strict=True)
    ]
    yield from zip(*columns, strict=True)


def _more(table: pa.Table, most: int = _MAX_ROWS) -> tuple[str, ...]:
    left = table.num_rows - most
    return (f"... and {left:,} more",) if left > 0 else ()


def drawn_table(
    table: pa.Table, column: str | None, *, keys: Collection[str], most: int, ax: Any = None
) -> Any:
    """Draw one column of an answer, with its intervals where it has any; return the axes, and show nothing.

    Parameters
    ----------
    table : pyarrow.Table
        The answer with its intervals.
    column : str or None
        Which column; None is the first one of numbers.
    keys : collection of str
        Columns that name the rows, such as years: not drawn unless they are named.
    most : int
        How many rows are drawn, the first ones.
    ax : matplotlib.axes.Axes, optional
        New ones if left out.

    Raises
    ------
    ParameterError
        If the column is none of the answer's, or none of numbers.
    MissingExtra
        If matplotlib is absent and no axes are given.
    """
    names = table.column_names
    ends = {f"{name}{end}" for name in names for end in _ENDS if f"{name}{end}" in names}
    own = [name for name in names if name not in ends]
    numbers = [name for name in own if _is_number(table.schema.field(name).type)]
    drawable = [name for name in numbers if name not in keys]
    if column is None:
        if not drawable:
            rule, found = "have a column of numbers to plot", "it has none"
            _check.refuse_state("the answer", rule, found, "read it as a table, by to_arrow()")
        column = drawable[0]
    elif column not in numbers:
        listed = ", ".join(map(repr, numbers)) or "none"
        _check.refuse("column", f"be a column of numbers ({listed})", column, "name one of them")
    few = table.slice(0, min(_check.integer("most", most, minimum=1), table.num_rows))
    naming = [name for name in own if name not in drawable and name != column]
    labels: dict[str, Sequence[Any]] = {name: list(map(named, plain_values(few[name]))) for name in naming}
    interval = None
    if all(f"{column}{end}" in names for end in _ENDS):
        lower, upper = (_floats(few[f"{column}{end}"]) for end in _ENDS)
        interval = Interval(lower, upper)
    labels = labels or {"entry": range(few.num_rows)}
    ax = drawn_few(Rows(labels, _floats(few[column]), interval), most, ax, of=table.num_rows)
    ax.set_ylabel(label_text(column))
    return ax


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _floats(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return numbers as floats; NULL is NaN, of which nothing is drawn."""
    values = [np.nan if value is None else float(value) for value in column.to_pylist()]
    return np.array(values, np.float64)
