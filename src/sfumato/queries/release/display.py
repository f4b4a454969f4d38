"""A released table as people read it: a few rows of text that cannot steer a terminal or a page."""

from __future__ import annotations

import html
import math
from collections.abc import Collection, Iterator

import pyarrow as pa

__all__ = ["as_html", "as_text", "printable", "shown"]

_MAX_ROWS = 10
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
    """Return a value as a person reads it.

    Examples
    --------
    >>> shown(2839), shown(48123.7), shown(0.51234), shown("Iowa"), shown(None)
    ('2,839', '48,124', '0.5123', 'Iowa', 'NULL')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return printable(str(value))
    if isinstance(value, float):
        return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else f"{value:.4g}"
    return f"{value:,}"


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
    right = [pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in table.schema.types]
    lines = [
        "  ".join(
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in rows
    ]
    return "\n".join((*lines, *_more(table), printable(footer)))


def as_html(table: pa.Table, footer: str, keys: Collection[str] = ()) -> str:
    """Return the first rows as an HTML table, and a last line."""
    head, *rows = (tuple(html.escape(cell) for cell in row) for row in _rows(table, keys))
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    last = "".join(f"<p>{html.escape(printable(line))}</p>" for line in (*_more(table), footer))
    names = "".join(f"<th>{cell}</th>" for cell in head)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table>{last}"


def _rows(table: pa.Table, keys: Collection[str]) -> Iterator[tuple[str, ...]]:
    yield tuple(_cut(printable(name)) for name in table.column_names)
    few = table.slice(0, _MAX_ROWS)
    columns = [
        [_cut(shown(_named(value) if name in keys else value)) for value in column.to_pylist()]
        for name, column in zip(few.column_names, few.columns, strict=True)
    ]
    yield from zip(*columns, strict=True)


def _named(value: object) -> object:
    return None if value is None else str(value)


def _cut(text: str) -> str:
    return text if len(text) <= _WIDEST_CELL else text[: _WIDEST_CELL - 3] + "..."


def _more(table: pa.Table) -> tuple[str, ...]:
    left = table.num_rows - _MAX_ROWS
    return (f"... and {left:,} more",) if left > 0 else ()
