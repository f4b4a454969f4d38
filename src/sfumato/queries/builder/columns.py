"""Expressions over columns, written in Python: each is a piece of SQL that the front door reads like any.

A string stands for the SQL in it wherever an expression is taken; :func:`col` and Python's operators write
the same without quotes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, final

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from sfumato._check import refuse
from sfumato.errors import SqlSyntaxError
from sfumato.queries.plan.sql_text import literal_sql, name_sql
from sfumato.queries.sql.parser import PrivateSql

__all__ = [
    "ColumnExpression",
    "Expressible",
    "col",
    "expression_sql",
    "require_call",
]


def _binary(sign: str, *, reflected: bool = False) -> Callable[[ColumnExpression, object], ColumnExpression]:
    """Make the method of an operator; reflected, the expression is its right side."""

    def written(self: ColumnExpression, other: object) -> ColumnExpression:
        sides = (_operand(other), self.sql) if reflected else (self.sql, _operand(other))
        return ColumnExpression(f"({sides[0]} {sign} {sides[1]})")

    return written


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColumnExpression:
    """A computation over one row, as SQL; made by :func:`col` and by operators.

    ``&``, ``|`` and ``~`` are SQL's AND, OR and NOT, ``==`` and ``!=`` its ``=`` and ``<>``: an expression
    has no truth value in Python.

    Parameters
    ----------
    sql : str
        The expression in BigQuery's spelling, closed: it can stand as an operand.

    Examples
    --------
    >>> ((col("age") >= 18) & ~col("state").is_in(["CA", "NY"])).sql
    "((`age` >= 18) AND (NOT (`state` IN ('CA', 'NY'))))"
    """

    sql: str

    def __repr__(self) -> str:
        return f"ColumnExpression({self.sql})"

    def __bool__(self) -> bool:
        raise TypeError("a column expression has no truth value; write & for AND, | for OR, ~ for NOT")

    __hash__ = None  # type: ignore[assignment]

    __eq__ = _binary("=")  # type: ignore[assignment]
    __ne__ = _binary("<>")  # type: ignore[assignment]
    __lt__ = _binary("<")
    __le__ = _binary("<=")
    __gt__ = _binary(">")
    __ge__ = _binary(">=")
    __add__ = _binary("+")
    __radd__ = _binary("+", reflected=True)
    __sub__ = _binary("-")
    __rsub__ = _binary("-", reflected=True)
    __mul__ = _binary("*")
    __rmul__ = _binary("*", reflected=True)
    __truediv__ = _binary("/")
    __rtruediv__ = _binary("/", reflected=True)
    __and__ = _binary("AND")
    __or__ = _binary("OR")

    def __neg__(self) -> ColumnExpression:
        return ColumnExpression(f"(-{self.sql})")

    def __invert__(self) -> ColumnExpression:
        return ColumnExpression(f"(NOT {self.sql})")

    def is_null(self) -> ColumnExpression:
        """Whether there is no value."""
        return ColumnExpression(f"({self.sql} IS NULL)")

    def is_in(self, values: Iterable[object]) -> ColumnExpression:
        """Whether the value is one of some literals."""
        listed = [literal_sql(value) for value in values]
        if not listed:
            refuse("values", "hold at least one literal", listed, "leave the condition out")
        return ColumnExpression(f"({self.sql} IN ({', '.join(listed)}))")

    def between(self, lower: object, upper: object) -> ColumnExpression:
        """Whether the value lies within two others, the ends included."""
        return ColumnExpression(f"({self.sql} BETWEEN {_operand(lower)} AND {_operand(upper)})")

    def cast(self, type_: str) -> ColumnExpression:
        """Return the value in another type, such as ``"INT64"``; NULL where it has none there."""
        given: object = type_
        if not isinstance(given, str) or not given.isascii() or not given.isidentifier():
            refuse("type_", "be the name of a type", given, "write 'INT64', 'FLOAT64' or 'STRING', say")
        return ColumnExpression(f"CAST({self.sql} AS {type_})")


Expressible: TypeAlias = str | ColumnExpression
"""What is taken as an expression: SQL in a string, or a :class:`ColumnExpression`."""


def col(name: str) -> ColumnExpression:
    """Return a column by its name, to compute and compare with.

    Parameters
    ----------
    name : str
        Of a column; it is quoted, so any name will do.

    Returns
    -------
    ColumnExpression

    Examples
    --------
    >>> (col("income") / 1000).sql
    '(`income` / 1000)'
    """
    return ColumnExpression(name_sql(name))


def expression_sql(value: Expressible, what: str) -> str:
    """Return the SQL of one expression, checked to be a single whole one.

    Raises
    ------
    SqlSyntaxError
        If a string does not hold one expression, or holds a comment.
    """
    if isinstance(value, ColumnExpression):
        _single(value.sql, what)
        return value.sql
    if not isinstance(value, str):
        refuse(what, "be SQL in a string or a column expression", value, "write 'age >= 18', say")
    tree = _single(value, what)
    return value.strip() if isinstance(tree, (exp.Column, exp.Literal)) else f"({value.strip()})"


def require_call(sql: str, what: str) -> None:
    """Refuse the SQL of an aggregate that is not a single whole expression.

    Raises
    ------
    SqlSyntaxError
        If it is more, or holds a comment.
    """
    _single(sql, what)


def _single(sql: str, what: str) -> exp.Expr:
    try:
        trees = parse(sql, dialect=PrivateSql())
    except (SqlglotError, RecursionError):
        trees = []
    tree = trees[0] if len(trees) == 1 else None
    if tree is None or isinstance(tree, (exp.Query, exp.Alias, exp.Command, exp.DDL)) or _has_comment(tree):
        raise SqlSyntaxError(
            f"{what} must be one SQL expression without comments, got {sql[:40]!r}; write 'age >= 18', say"
        )
    return tree


def _has_comment(tree: exp.Expr) -> bool:
    return any(node.comments for node in tree.walk())


def _operand(value: object) -> str:
    return value.sql if isinstance(value, ColumnExpression) else literal_sql(value)
