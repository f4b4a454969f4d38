"""Typed terms: canonical trees with their types.

A canonical tree is built afresh from whitelisted nodes; nothing of the parser's tree is retained. Operands
that are operators themselves stand in parentheses, so a tree means the same whatever a dialect's precedence.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from sqlglot import exp

from sfumato.errors import SchemaError, UnsupportedSql
from sfumato.queries.plan.schema import DECLARE, ColumnType, Expression, declare_of

__all__ = [
    "ANY",
    "DATA_TYPES",
    "NUMERIC",
    "TEMPORAL",
    "UNSIGNED",
    "ZONED",
    "Compile",
    "Term",
    "TypedTree",
    "advice",
    "cast",
    "closest_name",
    "coerced",
    "column",
    "from_decimal",
    "listing",
    "only",
    "operand",
    "require",
    "require_order",
    "unsigned",
]

_LIKENESS = 0.75
NUMERIC = frozenset({ColumnType.INTEGER, ColumnType.FLOAT})
TEMPORAL = frozenset({ColumnType.DATE, ColumnType.TIMESTAMP})
ANY = frozenset(ColumnType)

DATA_TYPES = {type_: exp.DataType.build(type_.value, dialect="bigquery") for type_ in ColumnType}
"""The type node that a canonical tree casts to."""

UNSIGNED = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind="UINT64")
"""The node of a cast to integers from 0 to 2**64 - 1, whose values are carried as NUMERIC."""

_OPERATORS: tuple[type[exp.Expr], ...] = (
    exp.Add, exp.And, exp.Between, exp.Div, exp.DPipe, exp.EQ, exp.GT, exp.GTE, exp.In, exp.Is, exp.LT,
    exp.LTE, exp.Like, exp.Mod, exp.Mul, exp.NEQ, exp.Neg, exp.Not, exp.Or, exp.Sub,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TypedTree:
    """A canonical tree and its type; the type is None for a bare NULL, which fits everywhere."""

    tree: exp.Expression
    type: ColumnType | None


Compile: TypeAlias = Callable[[exp.Expr], TypedTree]
Term: TypeAlias = TypedTree | Expression
"""A canonical tree with its type, as far as it is known."""

TermT = TypeVar("TermT", TypedTree, Expression)


ZONED: Final = (
    "timestamps are in UTC; write TIMESTAMP_ADD(t, INTERVAL 1 HOUR), or make a column of local time"
)
"""What to write instead of a time zone."""


def only(node: exp.Expr, *slots: str, what: str) -> None:
    """Refuse a node that carries more than the slots that are understood."""
    for slot, value in node.args.items():
        if slot not in slots and value not in (None, False, []):
            word = slot.strip("_").replace("_", " ").upper()
            raise UnsupportedSql(
                f"{what} must not carry {word}; {ZONED if slot == 'zone' else 'leave it out'}"
            )


def listing(names: Collection[str]) -> str:
    """Join names for a message, in a stable order."""
    return ", ".join(sorted(names))


def closest_name(name: str, known: Collection[str]) -> str | None:
    """Return the known name that was surely meant: a letter or two away, or behind a dot; else None.

    Examples
    --------
    >>> closest_name("incme", ["age", "Income"]), closest_name("main.data", ["data"])
    ('Income', 'data')
    >>> closest_name("nope", ["income"]) is None
    True
    """
    folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    wanted = name.casefold()
    last = wanted.rpartition(".")[2]
    if last in folded:
        return folded[last]
    close = difflib.get_close_matches(wanted, folded, 1, cutoff=_LIKENESS)
    return folded[close[0]] if close else None


def operand(term: Term) -> exp.Expression:
    """Return the tree as an operand: in parentheses where it is an operator itself."""
    return exp.Paren(this=term.tree) if isinstance(term.tree, _OPERATORS) else term.tree


def column(name: str, type_: ColumnType | None, declare: tuple[str, ...] = ()) -> TypedTree:
    """Return a column, unqualified and spelled as its relation names it."""
    tree = exp.Column(this=exp.to_identifier(name, quoted=True))
    if declare:
        tree.meta[DECLARE] = declare
    return TypedTree(tree, type_)


def cast(term: TypedTree, type_: ColumnType) -> TypedTree:
    """Return the term cast to a type; what cannot be cast becomes NULL."""
    return TypedTree(exp.TryCast(this=term.tree, to=DATA_TYPES[type_].copy(), safe=True), type_)


def unsigned(term: TypedTree) -> TypedTree:
    """Return the term cast to UINT64: a NUMERIC, and NULL where it is none of its integers."""
    return TypedTree(exp.TryCast(this=term.tree, to=UNSIGNED.copy(), safe=True), ColumnType.DECIMAL)


def coerced(read: Expression) -> Expression:
    """Return a NUMERIC cast to FLOAT64, as GoogleSQL coerces it for a function of floats; others as they are.

    Examples
    --------
    >>> price = column("price", ColumnType.DECIMAL)
    >>> coerced(Expression(price.tree, ColumnType.DECIMAL)).sql
    'SAFE_CAST(`price` AS FLOAT64)'
    """
    if read.type is not ColumnType.DECIMAL:
        return read
    return Expression(cast(TypedTree(read.tree, read.type), ColumnType.FLOAT).tree, ColumnType.FLOAT)


def require(term: TermT, accepted: Collection[ColumnType], what: str) -> TermT:
    """Return the term if its type is accepted, else refuse it."""
    if term.type in accepted:
        return term
    names = [type_.value for type_ in ColumnType if type_ in accepted]
    to_declare = advice(term, names[0])
    rule = " or ".join(names)
    if term.type is None:
        raise SchemaError(f"{what} must be {rule}, got a bare NULL; write CAST(NULL AS {names[0]})")
    if term.type is ColumnType.BOOLEAN and ColumnType.INTEGER in accepted:
        raise SchemaError(f"{what} must be {rule}, got BOOL; write IF(condition, 1, 0)")
    if term.type in TEMPORAL and ColumnType.INTEGER in accepted:
        raise SchemaError(
            f"{what} must be {rule}, got {term.type.value}; use EXTRACT, or compare with a literal"
        )
    if term.type is ColumnType.DECIMAL and not {ColumnType.FLOAT, ColumnType.TEXT}.isdisjoint(accepted):
        raise SchemaError(f"{what} must be {rule}, got NUMERIC; {from_decimal(term)}")
    if names == ["BOOL"]:
        raise SchemaError(f"{what} must be BOOL, got {term.type.value}; {to_declare}write a comparison")
    raise SchemaError(
        f"{what} must be {rule}, got {term.type.value}; {to_declare}use CAST(... AS {names[0]})"
    )


def require_order(terms: Sequence[Term], what: str) -> None:
    """Refuse digits of any length where values are put in order: they are only distinguished."""
    for term in terms:
        if term.type is ColumnType.DECIMAL:
            raise SchemaError(f"{what} must have values with an order, got NUMERIC; {from_decimal(term)}")


def from_decimal(term: Term) -> str:
    """Return the remedy where digits of any length cannot stand."""
    sql = term.tree.sql(dialect="bigquery")
    return f"write CAST({sql} AS FLOAT64) for the nearest float, or CAST({sql} AS STRING) for the digits"


def advice(term: Term, type_: str) -> str:
    """Return how to declare a type for the column of a CSV file that a term is, to stand before a remedy.

    Empty for any other term.

    Examples
    --------
    >>> advice(column("age", ColumnType.TEXT, ("age",)), "INT64")
    'declare types={"age": "INT64"} on connecting (on the command line --type age=INT64), or '
    """
    keys = declare_of(term.tree)
    if not keys:
        return ""
    given: object = type_
    for key in reversed(keys):
        given = {key: given}
    given = json.dumps(given, ensure_ascii=False)
    return f"declare types={given} on connecting (on the command line --type {'.'.join(keys)}={type_}), or "


_SPELLINGS = {
    ColumnType.BOOLEAN: ("BOOLEAN",),
    ColumnType.INTEGER: ("TINYINT", "SMALLINT", "INT", "BIGINT"),
    ColumnType.FLOAT: ("FLOAT", "DOUBLE"),
    ColumnType.TEXT: ("TEXT", "VARCHAR"),
    ColumnType.DATE: ("DATE",),
    ColumnType.TIMESTAMP: ("TIMESTAMP", "TIMESTAMPTZ"),
}
_TARGETS = {exp.DataType.Type[name]: type_ for type_, names in _SPELLINGS.items() for name in names}


def target_type(node: exp.Expr) -> ColumnType | None:
    """Return the type that a node of the query's tree names; None for one that no query computes with."""
    target = _TARGETS.get(node.this)
    return None if node.expressions or node.args.get("nested") else target
