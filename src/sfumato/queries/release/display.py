"""A released table as people read it: a few rows of text that cannot steer a terminal or a page."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal

import pyarrow as pa

__all__ = ["as_html", "as_text", "printable", "promise", "shown"]

_MAX_ROWS = 10
_MAX_HTML_ROWS = 20
_WIDEST_CELL = 40


def printable(text: str) -> str:
    r"""Return a text that cannot steer a terminal: what is not printable is written as an escape.

    Examples
    --------
    >>> print(printable("Iowa" + chr(0x202E)))
    Iowa\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(value: object) -> str:
    """Return a value as a person reads it; of a list of values with their counts these.

    Examples
    --------
    >>> shown(2839), shown(48123.7), shown(0.51234), shown("Iowa"), shown(None)
    ('2,839', '48,124', '0.5123', 'Iowa', 'NULL')
    >>> shown(Decimal("1270.500000000"))
    '1,270.5'
    >>> shown([{"value": "Iowa", "count": 2839}, {"value": None, "count": 7}])
    'Iowa (2,839), NULL (7)'
    """
    if value is None:
        return "NULL"
    if isinstance(value, dict):
        first, *others = map(shown, value.values())
        return f"{first} ({', '.join(others)})"
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return ", ".join(map(shown, value))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return printable(str(value))
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    whole, point, part = (
        f"{value:,f}".partition(".") if isinstance(value, Decimal) else (f"{value:,}", "", "")
    )
    return f"{whole}{point}{part}".rstrip("0").rstrip(".") if point else whole


def promise(guarantee: str, privacy_unit: str, *, simulated: bool) -> str:
    """Say what one release promises to whom; a simulated one protects nobody.

    Examples
    --------
    >>> promise("1", "person", simulated=False)
    '1-DP for each person'
    """
    made = f"{guarantee}-DP for each {privacy_unit}"
    return f"simulated, protects nobody: would be {made}" if simulated else made


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
    >>> as_html(pa.table({"n": [7]}), "a count", facts={"cost": "nothing"})[-60:]
    '></tr></tbody></table><dl><dt>cost</dt><dd>nothing</dd></dl>'
    """
    head, *rows = _rows(table, keys, _MAX_HTML_ROWS)
    beside = {} if intervals is None else _beside(table, intervals)
    names = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{html.escape(cell)}{beside[column][index] if column in beside else ''}</td>"
            for column, cell in zip(table.column_names, row, strict=True)
        )
        + "</tr>"
        for index, row in enumerate(rows)
    )
    more = "".join(f"<p>{html.escape(line)}</p>" for line in _more(table, _MAX_HTML_ROWS))
    said = "".join(
        f"<dt>{html.escape(name)}</dt><dd>{html.escape(printable(text))}</dd>"
        for name, text in (facts or {}).items()
    )
    caption = f"<caption>{html.escape(printable(footer))}</caption>"
    listed = f"<dl>{said}</dl>" if said else ""
    return f"<table>{caption}<thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{more}{listed}"


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
    return f" <small>[{html.escape(shown(low))}, {html.escape(shown(high))}]</small>"


def _rows(table: pa.Table, keys: Collection[str], most: int = _MAX_ROWS) -> Iterator[tuple[str, ...]]:
    yield tuple(_cut(printable(name)) for name in table.column_names)
    few = table.slice(0, most)
    columns = [
        [_cut(shown(_named(value) if name in keys else value)) for value in column.to_pylist()]
        for name, column in zip(few.column_names, few.columns, strict=True)
    ]
    yield from zip(*columns, strict=True)


def _named(value: object) -> object:
    return None if value is None else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 3] + "..."


def _more(table: pa.Table, most: int = _MAX_ROWS) -> tuple[str, ...]:
    left = table.num_rows - most
    return (f"... and {left:,} more",) if left > 0 else ()
