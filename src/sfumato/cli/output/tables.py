"""Releases as tables that people read."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sfumato._display import named
from sfumato._progress import is_terminal
from sfumato.queries.release.display import plain_rows, printable, shown

__all__ = [
    "cut",
    "dashed",
    "interval",
    "plain_table",
    "print_table",
    "printable",
    "release_table",
    "shown",
    "wide_console",
]

_UNLIMITED = 100_000
_TEXT = 12
"""Columns that a text needs at least, to be read."""


def interval(lower: object, upper: object) -> str:
    """Return an interval in words, which stay clear where a bound is negative.

    Examples
    --------
    >>> interval(-5, 1200)
    '-5 to 1,200'
    """
    return f"{shown(lower)} to {shown(upper)}"


def dashed(lower: object, upper: object) -> str:
    """Return an interval in few characters, for a narrow table.

    Examples
    --------
    >>> dashed(731, 1767)
    '731–1,767'
    """
    return f"{shown(lower)}\N{EN DASH}{shown(upper)}"


def cut(text: str, width: int) -> str:
    """Return at most ``width`` characters of a text, the last of them an ellipsis where more was there.

    Examples
    --------
    >>> cut("Native Hawaiian", 9), cut("Iowa", 9)
    ('Native H…', 'Iowa')
    """
    return text if len(text) <= width else f"{text[: width - 1].rstrip(' ,;')}…"


def plain_table(names: Sequence[str], *, right: Iterable[int] = ()) -> Table:
    """Return an empty table in the one look of this command line; columns ``right`` hold numbers."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    numbers = frozenset(right)
    for index, name in enumerate(names):
        table.add_column(
            Text(printable(name)),
            justify="right" if index in numbers else "left",
            no_wrap=index in numbers,
            overflow="fold",
        )
    return table


def fits(table: Table, width: int) -> bool:
    """Whether a table's numbers have room in so many columns; texts may wrap.

    Parameters
    ----------
    table : Table
        Whose columns that do not wrap hold numbers.
    width : int
    """
    longest = [max(map(cell_len, (str(each.header), *map(str, each.cells)))) for each in table.columns]
    pairs = zip(table.columns, longest, strict=True)
    return sum(2 + (size if column.no_wrap else min(size, _TEXT)) for column, size in pairs) <= width


def print_table(console: Console, table: Table) -> None:
    """Print a table; where the terminal is too narrow for its numbers, each row's cells below each other.

    Nothing is cut off: a digit that is missing at the edge would be another number.

    Parameters
    ----------
    console : Console
    table : Table
    """
    if fits(table, console.width):
        console.print(table)
        return
    for row in zip(*(column.cells for column in table.columns), strict=True):
        for column, cell in zip(table.columns, row, strict=True):
            console.print(
                Text(f"{column.header}: {cell}" if str(column.header) else str(cell)), soft_wrap=True
            )
        console.print()


def release_table(answer: pa.Table, keys: Collection[str] = ()) -> Table:
    """Return a release as a table, each interval in one column beside its answer.

    Parameters
    ----------
    answer : pyarrow.Table
    keys : collection of str
        Columns whose numbers are names, such as years.
    """
    columns = list(_columns(answer))
    fields = [answer.schema.field(parts[0]) for _, parts in columns]
    right = [i for i, field in enumerate(fields) if _is_number(field.type)]
    table = plain_table([title for title, _ in columns], right=right)
    for values in plain_rows(answer):
        row = dict(zip(answer.column_names, values, strict=True))
        cells = [
            (named if p[0] in keys else shown)(row[p[0]]) if len(p) == 1 else interval(row[p[0]], row[p[1]])
            for _, p in columns
        ]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _columns(answer: pa.Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    names = answer.column_names
    bounds: set[str] = set()
    for index, name in enumerate(names):
        if name in bounds:
            continue
        yield name, (name,)
        pair = (f"{name}_lower", f"{name}_upper")
        if tuple(names[index + 1 : index + 3]) == pair:
            bounds.update(pair)
            yield "95 % interval", pair


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def wide_console(file: IO[str] | None = None) -> Console:
    """Return a console that cuts nothing off where no terminal is behind it; standard output by default."""
    terminal = is_terminal(sys.stdout if file is None else file)
    return Console(file=file, highlight=False, width=None if terminal else _UNLIMITED)
