"""Columns, their types, and expressions over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

import pyarrow as pa
from sqlglot import exp

__all__ = ["DECLARE", "Column", "ColumnType", "Expression", "Named", "Schema", "declare_of"]

DECLARE: Final = "declare"
"""Under which a tree that is a column carries that column's ``declare``."""


class ColumnType(Enum):
    """The types that a private query may compute with.

    A ``DECIMAL`` has more digits than the other numbers hold apart. It is carried as the one text of its
    digits: distinguished from others and counted as it is, and cast before anything is computed with it.
    """

    BOOLEAN = "BOOL"
    INTEGER = "INT64"
    FLOAT = "FLOAT64"
    TEXT = "STRING"
    DATE = "DATE"
    TIMESTAMP = "TIMESTAMP"
    DECIMAL = "NUMERIC"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its name as the source spells it, and its type (None: not usable in a query).

    ``element`` is the type of its elements where it is an array of a table, which UNNEST reads.
    ``declare`` holds the keys, table and column or the column alone, under which ``connect(types=...)`` could
    give a type to a column of a CSV file that is text because none was declared; it is for messages only.
    """

    name: str
    type: ColumnType | None
    declare: tuple[str, ...] = field(default=(), compare=False, repr=False)
    element: ColumnType | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, looked up without regard to case, as SQL does."""

    columns: tuple[Column, ...]

    def find(self, name: str) -> Column | None:
        """Return the column of that name, or None."""
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)

    @property
    def usable(self) -> Schema:
        """The columns that a query can use."""
        return Schema(tuple(column for column in self.columns if column.type is not None))

    def with_names(self, names: tuple[str, ...], other: Schema) -> Schema:
        """Return these columns and the usable ones of another schema under new names."""
        pairs = zip(names, other.usable.columns, strict=True)
        return Schema((*self.columns, *(Column(name, column.type, column.declare) for name, column in pairs)))


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked scalar expression over one row.

    ``tree`` holds only whitelisted nodes; every column in it is unqualified and spelled as the relation
    below it names that column.
    """

    tree: exp.Expression
    type: ColumnType

    @property
    def sql(self) -> str:
        """The expression as text, for people and for identity."""
        return self.tree.sql(dialect="bigquery")

    @property
    def declare(self) -> tuple[str, ...]:
        """Where this is a column alone, that column's ``declare``."""
        return declare_of(self.tree)


def declare_of(tree: exp.Expr) -> tuple[str, ...]:
    """Return the ``declare`` of the column that a tree is; nothing for any other tree."""
    return tuple(tree.meta.get(DECLARE, ())) if isinstance(tree, exp.Column) else ()


@dataclass(frozen=True, slots=True)
class Named:
    """An expression and the name it has in the relation it makes."""

    name: str
    expression: Expression


ARROW_TYPES = {
    ColumnType.BOOLEAN: pa.bool_(),
    ColumnType.INTEGER: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
    ColumnType.TEXT: pa.string(),
    ColumnType.DATE: pa.date32(),
    ColumnType.TIMESTAMP: pa.timestamp("us"),
    ColumnType.DECIMAL: pa.string(),
}
"""The Arrow type of a key of each type."""
