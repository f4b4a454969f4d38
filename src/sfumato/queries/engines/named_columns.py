"""The columns that a curator names: no other column of a table that stays in its place is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from sfumato._check import refuse, refuse_state, refuse_type

__all__ = ["Columns", "NamedColumns", "columns_of", "named_columns"]

Columns: TypeAlias = Iterable[str] | Mapping[str, Iterable[str]]
"""Columns as they are named: of the only table, or table by table."""
NamedColumns: TypeAlias = "tuple[str, ...] | Mapping[str, tuple[str, ...]] | None"
"""The same, checked; None for all columns of all tables."""
_REMEDY = "pass columns=['person', 'state'], or columns={'people': ['person', 'state']}"


def named_columns(given: Columns | None, tables: Sequence[str] | None) -> NamedColumns:
    """Return columns as tuples.

    Parameters
    ----------
    given : iterable of str, or mapping of str to these, or None
    tables : sequence of str or None
        The tables that are meant; None where that is not known yet.

    Raises
    ------
    ParameterError
        If they are no names, are named twice or of no table that is meant, or of one of several tables.

    Examples
    --------
    >>> named_columns(["person", "state"], ["people"])
    ('person', 'state')
    >>> named_columns({"people": ["person"]}, ["people", "visits"])
    {'people': ('person',)}
    """
    if given is None:
        return None
    if not isinstance(given, Iterable):
        refuse_type("columns", "be names", given, _REMEDY)
    if isinstance(given, Mapping):
        strangers = [name for name in given if tables is not None and name not in tables]
        if strangers:
            refuse("columns", "be of tables that are meant", strangers[0], "name the table among them too")
        return {name: _names(columns) for name, columns in given.items()}
    if tables is not None and len(tables) > 1:
        found = f"there are {len(tables)} tables"
        refuse_state("columns", "be stated table by table", found, "pass columns={'people': ['person']}")
    return _names(given)


def columns_of(columns: NamedColumns, table: str) -> tuple[str, ...] | None:
    """Return the columns of one table that are meant; None for all of them.

    Examples
    --------
    >>> columns_of({"people": ("person",)}, "visits") is None
    True
    """
    return columns.get(table) if isinstance(columns, Mapping) else columns


def _names(columns: Iterable[str]) -> tuple[str, ...]:
    if not isinstance(columns, Iterable):
        refuse_type("columns", "be names", columns, _REMEDY)
    names: tuple[object, ...] = (columns,) if isinstance(columns, str) else tuple(columns)
    for name in names:
        if not isinstance(name, str) or not name or "\0" in name:
            refuse("columns", "be names", name, _REMEDY)
    if not names or len(set(names)) < len(names):
        refuse("columns", "name each column once, and one at least", names, _REMEDY)
    return tuple(str(name) for name in names)
