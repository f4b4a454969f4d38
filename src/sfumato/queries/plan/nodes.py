"""Rows as a tree of typed nodes: where they come from, with unit column and columns on every node.

Guarantee: whatever the tree, a row of it is a function of one unit's rows (and of public tables), and carries
that unit. So bounding what one unit's rows add to an answer bounds what one unit adds, and a unit that leaves
changes no other unit's rows. Only ``Scan`` reads private rows; every other node keeps this, as it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from sfumato.queries.plan.schema import Column, ColumnType, Expression, Named, Schema

__all__ = [
    "Distinct",
    "Filter",
    "InPublic",
    "JoinOnUnit",
    "JoinPublic",
    "PerUnit",
    "Project",
    "PublicRows",
    "PublicScan",
    "Relation",
    "Scan",
    "Union",
    "UnitAggregate",
    "UnitFunction",
    "UnitOrder",
    "UnitWindow",
    "UnitWindows",
    "Unnest",
]


@dataclass(frozen=True, slots=True)
class Scan:
    """All rows of a private table; ``unit`` is its privacy-unit column, None where each row is a unit."""

    table: str
    schema: Schema
    unit: str | None


@dataclass(frozen=True, slots=True)
class _SameUnit:
    """Rows made of those of ``child``: the same unit column, and the same columns unless a node says more."""

    child: Relation

    @property
    def unit(self) -> str | None:
        """The unit column, passed through."""
        return self.child.unit

    @property
    def schema(self) -> Schema:
        """The columns, passed through."""
        return self.child.schema


@dataclass(frozen=True, slots=True)
class Filter(_SameUnit):
    """The rows for which ``predicate`` is true; stability 1."""

    predicate: Expression


@dataclass(frozen=True, slots=True)
class Project:
    """New columns computed row by row; stability 1.

    It holds the unit column, renamed to ``unit``, unless rows are units.
    """

    child: Relation
    columns: tuple[Named, ...]
    unit: str | None

    @property
    def schema(self) -> Schema:
        """The columns this node makes."""
        return Schema(
            tuple(
                Column(named.name, named.expression.type, named.expression.declare) for named in self.columns
            )
        )


@dataclass(frozen=True, slots=True)
class PublicScan:
    """All rows of a public table; it has no unit, for it says nothing about anybody."""

    table: str
    schema: Schema

    @property
    def unit(self) -> None:
        """None: nobody's rows."""


@dataclass(frozen=True, slots=True)
class PublicRows:
    """Rows that a query writes out: one expression without columns for each column of ``schema``, in each."""

    schema: Schema
    rows: tuple[tuple[Expression, ...], ...]

    @property
    def unit(self) -> None:
        """None: nobody's rows."""


@dataclass(frozen=True, slots=True)
class JoinPublic(_SameUnit):
    """Rows with the public rows that meet ``on``; a row may come several times.

    Parameters
    ----------
    child : Relation
    public : Relation
        Over public tables only.
    names : tuple of str
        What the usable columns of ``public`` are called in the result, in order.
    on : Expression or None
        A condition on the columns of the result; None joins every row with every public row.
    keep : bool
        Whether a row without a match stays, with NULLs.
    single : tuple of Expression or None
        Where rows are units, a row must not come twice: then only the first public row of those with the
        same values of these expressions is joined, in the order of their columns. Without an expression
        that is the first of all: so a subquery in an expression is joined, which an engine refuses before
        the charge if it has several rows.

    Notes
    -----
    Guarantee: a row of the result is a function of one row of ``child`` and of public rows, so one unit's
    rows make one unit's rows, however many. Where rows are units, each makes one row at most: two public rows
    that match it agree in ``single``.
    """

    public: Relation
    names: tuple[str, ...]
    on: Expression | None
    keep: bool
    single: tuple[Expression, ...] | None = None

    @property
    def schema(self) -> Schema:
        """The columns of the rows, then those of the public rows."""
        return self.child.schema.usable.with_names(self.names, self.public.schema)


@dataclass(frozen=True, slots=True)
class Unnest(_SameUnit):
    """The rows of a table, each once for every element of an array of its own.

    Parameters
    ----------
    child : Scan, PublicScan or Unnest
        Arrays are read where the table is: no other node has them.
    array : str
        The column of the table.
    name : str
        What its elements are called in the result, behind the columns of ``child``.
    type : ColumnType
        Their type.
    keep : bool
        Whether a row whose array is NULL or empty stays, with NULL.

    Notes
    -----
    Guarantee: a row of the result is a function of one row of ``child``, so one unit's rows make one unit's
    rows, however many. Rows that are units of their own are not taken apart: each would be several units.
    """

    array: str
    name: str
    type: ColumnType
    keep: bool

    @property
    def schema(self) -> Schema:
        """The columns of the rows, then the element."""
        return Schema((*self.child.schema.columns, Column(self.name, self.type)))


@dataclass(frozen=True, slots=True)
class JoinOnUnit:
    """Rows with the rows of another private relation that have the same unit and meet ``on``.

    ``names`` are what ``right_columns`` are called in the result; with ``keep`` a row without a match stays,
    with NULLs. Without it, the unit of the right side is that of the left and has no column of its own.

    Notes
    -----
    Guarantee: a row of the result is a function of rows of one unit, and carries that unit.
    """

    left: Relation
    right: Relation
    names: tuple[str, ...]
    on: Expression | None
    keep: bool

    @property
    def unit(self) -> str | None:
        """The unit column of the left side."""
        return self.left.unit

    @property
    def right_columns(self) -> Schema:
        """The columns that the right side adds."""
        unit = None if self.keep or self.right.unit is None else self.right.unit.casefold()
        columns = self.right.schema.usable.columns
        return Schema(tuple(column for column in columns if column.name.casefold() != unit))

    @property
    def schema(self) -> Schema:
        """The columns of both sides."""
        return self.left.schema.usable.with_names(self.names, self.right_columns)


@dataclass(frozen=True, slots=True)
class InPublic(_SameUnit):
    """The rows whose ``subject`` is in the one column of a public relation, or with ``negated`` is not."""

    subject: Expression
    public: Relation
    negated: bool


@dataclass(frozen=True, slots=True)
class Union:
    """All rows of all parts, whose usable columns have the same types and the unit in the same position.

    Notes
    -----
    Guarantee: a row of the result is a row of one part, with its unit. Rows that are units of their own are
    not united: a row in two parts would be a unit twice.
    """

    parts: tuple[Relation, ...]

    @property
    def unit(self) -> str | None:
        """The unit column of the first part."""
        return self.parts[0].unit

    @property
    def schema(self) -> Schema:
        """The columns of the first part."""
        return self.parts[0].schema.usable


@dataclass(frozen=True, slots=True)
class Distinct(_SameUnit):
    """Each row of each unit once; units are part of what is compared, so no unit's rows touch another's."""

    @property
    def schema(self) -> Schema:
        """The usable columns, passed through."""
        return self.child.schema.usable


class UnitFunction(Enum):
    """What may be computed over the rows of one unit."""

    COUNT_ROWS = "COUNT(*)"
    COUNT = "COUNT"
    COUNT_DISTINCT = "COUNT(DISTINCT)"
    SUM = "SUM"
    AVG = "AVG"
    MIN = "MIN"
    MAX = "MAX"
    ROW_NUMBER = "ROW_NUMBER"
    RANK = "RANK"
    DENSE_RANK = "DENSE_RANK"


@dataclass(frozen=True, slots=True)
class UnitAggregate:
    """A function over rows of one unit, and the name of its column.

    SUM and AVG of floats are exact sums of the values to the nearest 2**-20, between -2**42 and 2**42, so
    that they do not depend on the order of rows.
    """

    name: str
    function: UnitFunction
    expression: Expression | None = None

    @property
    def type(self) -> ColumnType:
        """The type of its column."""
        if self.function is UnitFunction.AVG:
            return ColumnType.FLOAT
        if self.expression is None or self.function.value.startswith("COUNT"):
            return ColumnType.INTEGER
        return self.expression.type


@dataclass(frozen=True, slots=True)
class PerUnit:
    """One row for each unit and each value of the other ``keys`` among its rows.

    Over public rows ``unit`` is None, and there is one row for each value of the keys; without keys, one row.

    Notes
    -----
    Guarantee: groups are formed within a unit, so a row of the result is a function of one unit's rows; where
    there is no unit, of public rows.
    """

    child: Relation
    keys: tuple[Named, ...]
    aggregates: tuple[UnitAggregate, ...]
    unit: str | None

    @property
    def schema(self) -> Schema:
        """The keys, then the aggregates."""
        keys = (Column(key.name, key.expression.type) for key in self.keys)
        return Schema((*keys, *(Column(made.name, made.type) for made in self.aggregates)))


@dataclass(frozen=True, slots=True)
class UnitOrder:
    """One term of the order of a unit's rows."""

    expression: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class UnitWindow:
    """A function over the rows of one unit that agree in ``partition``, with one result in each of them.

    ROW_NUMBER breaks ties by all columns of the row, so it depends on the rows alone, never on the engine.
    """

    aggregate: UnitAggregate
    partition: tuple[Expression, ...] = ()
    order: tuple[UnitOrder, ...] = ()


@dataclass(frozen=True, slots=True)
class UnitWindows(_SameUnit):
    """All rows, each with columns computed over rows of its own unit.

    Notes
    -----
    Guarantee: a window is a set of rows of one unit, so a row of the result is a function of one unit's rows;
    each comes from one row below.
    """

    windows: tuple[UnitWindow, ...]

    @property
    def schema(self) -> Schema:
        """The usable columns, then the windows'."""
        made = (Column(w.aggregate.name, w.aggregate.type) for w in self.windows)
        return Schema((*self.child.schema.usable.columns, *made))


Relation: TypeAlias = (
    Scan
    | PublicScan
    | PublicRows
    | Filter
    | Project
    | JoinPublic
    | JoinOnUnit
    | InPublic
    | Union
    | Distinct
    | PerUnit
    | UnitWindows
    | Unnest
)
