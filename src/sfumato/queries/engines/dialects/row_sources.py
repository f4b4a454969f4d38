"""What FROM reads beside tables, as SQL text: rows that a query lists, and the elements of arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from sfumato.queries.plan.schema import ColumnType

__all__ = ["RowSources"]


class RowSources(ABC):
    """The part of a dialect that makes rows which no table has."""

    @abstractmethod
    def column_type(self, stored: str) -> ColumnType | None:
        """Return the type that a stored type is computed in; None if a query cannot use it."""

    def listed_rows(self, rows: Sequence[Sequence[str]]) -> str:
        """Return the SELECT of rows of typed values, at least one, as columns ``c0, c1, ...``."""
        names = ", ".join(f"c{i}" for i in range(len(rows[0])))
        values = ", ".join(f"({', '.join(row)})" for row in rows)
        return f"SELECT {names} FROM (VALUES {values}) AS r({names})"

    def element_of(self, stored: str) -> str:
        """Return the stored type of the elements of an array; "" where UNNEST cannot read the type."""
        del stored
        return ""

    def element_type(self, stored: str) -> ColumnType | None:
        """Return the type that the elements of an array are computed in; None for what is no such array."""
        element = self.element_of(stored)
        return self.column_type(element) if element else None

    def unnested(self, items: Sequence[str], source: str, array: str, name: str, *, keep: bool) -> str:
        """Return the SELECT of items of a SELECT, once for each element of an array, which has a name.

        An array that is NULL or empty has no row; with ``keep`` it has one, with NULL.
        """
        word = "LEFT JOIN" if keep else "JOIN"
        listed = ", ".join([*items, f"s.e AS {name}"])
        return f"SELECT {listed} FROM ({source}) AS r {word} LATERAL unnest(r.{array}) AS s(e) ON TRUE"
