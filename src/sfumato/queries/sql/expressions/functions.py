"""The scalar functions a private query may call: a closed list with typing rules.

Every function here is a pure function of one row. The engine makes each of them total: what has no value
(an overflow, a logarithm of zero, a cast that fails) is NULL, never an error.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.plan.constants import common
from sfumato.queries.plan.date_arithmetic import last_day, read_moved, read_timestamp_diff
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import (
    NUMERIC,
    Compile,
    TypedTree,
    only,
    operand,
    require,
    require_order,
)
from sfumato.queries.sql.expressions.casts import read_cast, read_extract, read_truncate
from sfumato.queries.sql.expressions.date_text import read_date, read_date_of_parts, read_formatted
from sfumato.queries.sql.expressions.regular_expressions import (
    read_extracted_pattern,
    read_matched_pattern,
)
from sfumato.queries.sql.expressions.rewrites import (
    join_text,
    read_ends_with,
    read_left,
    read_replace,
    read_right,
    read_width_bucket,
)
from sfumato.queries.sql.expressions.weeks import read_date_diff, read_whole_weeks

__all__ = ["FUNCTIONS", "FUNCTION_NAMES", "VOLATILE", "Reader"]

Reader: TypeAlias = Callable[[exp.Expr, Compile], TypedTree]

FUNCTION_NAMES = (
    *("ABS", "CAST", "CEIL", "COALESCE", "CONCAT", "DATE", "DATE_ADD", "DATE_DIFF", "DATE_SUB", "DATE_TRUNC"),
    *(
        "ENDS_WITH",
        "EXP",
        "EXTRACT",
        "FLOOR",
        "FORMAT_DATE",
        "FORMAT_TIMESTAMP",
        "GREATEST",
        "IF",
        "IFNULL",
        "LAST_DAY",
        "LEAST",
        "LEFT",
    ),
    *(
        "LENGTH",
        "LN",
        "LOG10",
        "LOWER",
        "MOD",
        "NULLIF",
        "POWER",
        "REGEXP_CONTAINS",
        "REGEXP_EXTRACT",
        "REPLACE",
        "RIGHT",
        "ROUND",
        "SAFE_CAST",
    ),
    *("SAFE_DIVIDE", "SIGN", "SQRT", "STARTS_WITH", "SUBSTR", "TIMESTAMP_ADD", "TIMESTAMP_DIFF"),
    *("TIMESTAMP_SUB", "TIMESTAMP_TRUNC", "TRIM", "UPPER", "WIDTH_BUCKET"),
)
"""The functions, as messages list them."""

VOLATILE = frozenset(
    {
        *("RAND", "RANDOM", "RANDN", "GENERATE_UUID", "UUID", "NOW", "TODAY", "SESSION_USER", "CURRENT_USER"),
        *("CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_DATETIME"),
    }
)
"""Functions whose value is not determined by the row."""

_TEXT = frozenset({ColumnType.TEXT})


@dataclass(frozen=True, slots=True)
class _Unary:
    """A function of one argument; ``result`` None keeps the argument's type."""

    name: str
    make: type[exp.Expression]
    accepts: Collection[ColumnType]
    result: ColumnType | None = None

    def __call__(self, node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "binary", what=self.name)
        argument = require(compile_(node.this), self.accepts, f"the argument of {self.name}")
        return TypedTree(self.make(this=argument.tree), self.result or argument.type)


@dataclass(frozen=True, slots=True)
class _Common:
    """A function whose arguments and result share one type."""

    name: str
    make: type[exp.Expression]

    def __call__(self, node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "expressions", "ignore_nulls", what=self.name)
        parts = [compile_(part) for part in (node.this, *node.expressions)]
        if self.make is not exp.Coalesce:
            require_order(parts, self.name)
        terms, type_ = common(parts, self.name)
        first, *rest = [term.tree for term in terms]
        # LEAST and GREATEST are NULL if any argument is, as in BigQuery; some engines skip NULLs by default
        nulls = {} if self.make is exp.Coalesce else {"ignore_nulls": False}
        return TypedTree(self.make(this=first, expressions=rest, **nulls), type_)


@dataclass(frozen=True, slots=True)
class _Binary:
    """A function of two arguments; ``result`` None is the type that they have in common."""

    name: str
    make: Callable[..., exp.Expression]
    accepts: Collection[ColumnType]
    result: ColumnType | None = None
    operator: bool = False

    def __call__(self, node: exp.Expr, compile_: Compile) -> TypedTree:
        only(node, "this", "expression", what=self.name)
        sides = [
            require(compile_(side), self.accepts, f"an argument of {self.name}")
            for side in (node.this, node.expression)
        ]
        left, right = (operand(side) if self.operator else side.tree for side in sides)
        type_ = self.result or common(sides, self.name)[1]
        return TypedTree(self.make(this=left, expression=right), type_)


def _nullif(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "expression", what="NULLIF")
    (value, null), type_ = common([compile_(node.this), compile_(node.expression)], "NULLIF")
    return TypedTree(exp.Nullif(this=value.tree, expression=null.tree), type_)


def _log10(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "expression", what="LOG10")
    base = node.this
    if not isinstance(base, exp.Literal) or base.name != "10" or node.args.get("expression") is None:
        raise UnsupportedSql("LOG with a base is not supported; write LN(x) / LN(base), or LOG10(x)")
    argument = require(compile_(node.expression), NUMERIC, "the argument of LOG10")
    return TypedTree(exp.Log(this=exp.Literal.number("10"), expression=argument.tree), ColumnType.FLOAT)


def _round(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "decimals", what="ROUND")
    argument = require(compile_(node.this), NUMERIC, "the argument of ROUND")
    written = node.args.get("decimals")
    decimals = (
        None if written is None else _literal_integer(written, compile_, "the decimals of ROUND", 0, 15)
    )
    return TypedTree(exp.Round(this=argument.tree, decimals=decimals), ColumnType.FLOAT)


def _trim(node: exp.Expr, compile_: Compile) -> TypedTree:
    if node.args.get("expression") is not None or node.args.get("position") is not None:
        raise UnsupportedSql("TRIM must take one string and trims white space on both sides; write TRIM(x)")
    return _Unary("TRIM", exp.Trim, _TEXT)(node, compile_)


def _substring(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "start", "length", what="SUBSTR")
    argument = require(compile_(node.this), _TEXT, "the argument of SUBSTR")
    start = _literal_integer(node.args.get("start"), compile_, "the start of SUBSTR", 1, 1_000_000)
    if node.args.get("length") is None:
        return TypedTree(exp.Substring(this=argument.tree, start=start), ColumnType.TEXT)
    length = _literal_integer(node.args["length"], compile_, "the length of SUBSTR", 0, 1_000_000)
    return TypedTree(exp.Substring(this=argument.tree, start=start, length=length), ColumnType.TEXT)


def _literal_integer(
    node: exp.Expr | None, compile_: Compile, what: str, minimum: int, maximum: int
) -> exp.Expression:
    term = None if node is None else compile_(node)
    if term is not None and isinstance(term.tree, exp.Literal) and term.type is ColumnType.INTEGER:
        tree = term.tree
        if minimum <= int(tree.name) <= maximum:
            return tree
    raise UnsupportedSql(f"{what} must be an integer literal from {minimum} to {maximum}; write the number")


def _concat(node: exp.Expr, compile_: Compile) -> TypedTree:
    # CONCAT becomes ||: some engines skip the NULLs of CONCAT, || is NULL everywhere if any operand is
    only(node, "expressions", "safe", "coalesce", what="CONCAT")
    terms = [require(compile_(part), _TEXT, "an argument of CONCAT") for part in node.expressions]
    if not terms:
        raise UnsupportedSql("CONCAT must take at least one string; write CONCAT(a, b)")
    return join_text(terms)


def _if(node: exp.Expr, compile_: Compile) -> TypedTree:
    only(node, "this", "true", "false", what="IF")
    condition = require(compile_(node.this), {ColumnType.BOOLEAN}, "the condition of IF")
    other = node.args.get("false")
    if other is None:
        raise UnsupportedSql("IF must take three arguments; write IF(condition, then, otherwise)")
    (then, default), type_ = common([compile_(node.args["true"]), compile_(other)], "IF")
    return TypedTree(exp.Case(ifs=[exp.If(this=condition.tree, true=then.tree)], default=default.tree), type_)


FUNCTIONS: dict[type[exp.Expr], Reader] = {
    exp.Abs: _Unary("ABS", exp.Abs, NUMERIC),
    exp.Cast: read_cast,
    exp.Ceil: _Unary("CEIL", exp.Ceil, NUMERIC, ColumnType.FLOAT),
    exp.Coalesce: _Common("COALESCE", exp.Coalesce),
    exp.Concat: _concat,
    exp.Date: read_date,
    exp.DateAdd: read_moved(1, ColumnType.DATE),
    exp.DateDiff: read_date_diff,
    exp.DateFromParts: read_date_of_parts,
    exp.DateSub: read_moved(-1, ColumnType.DATE),
    exp.DateTrunc: read_truncate,
    exp.DatetimeAdd: read_moved(1, ColumnType.TIMESTAMP),
    exp.DatetimeDiff: read_timestamp_diff,
    exp.DatetimeSub: read_moved(-1, ColumnType.TIMESTAMP),
    exp.DatetimeTrunc: read_truncate,
    exp.EndsWith: read_ends_with,
    exp.Exp: _Unary("EXP", exp.Exp, NUMERIC, ColumnType.FLOAT),
    exp.Extract: read_extract,
    exp.Floor: _Unary("FLOOR", exp.Floor, NUMERIC, ColumnType.FLOAT),
    exp.Greatest: _Common("GREATEST", exp.Greatest),
    exp.If: _if,
    exp.IntDiv: read_whole_weeks,
    exp.LastDay: last_day,
    exp.Least: _Common("LEAST", exp.Least),
    exp.Left: read_left,
    exp.Length: _Unary("LENGTH", exp.Length, _TEXT, ColumnType.INTEGER),
    exp.Ln: _Unary("LN", exp.Ln, NUMERIC, ColumnType.FLOAT),
    exp.Log: _log10,
    exp.Lower: _Unary("LOWER", exp.Lower, _TEXT),
    exp.Mod: _Binary("MOD", exp.Mod, NUMERIC, operator=True),
    exp.Nullif: _nullif,
    exp.Pow: _Binary("POWER", exp.Pow, NUMERIC, ColumnType.FLOAT),
    exp.RegexpExtract: read_extracted_pattern,
    exp.RegexpLike: read_matched_pattern,
    exp.Replace: read_replace,
    exp.Right: read_right,
    exp.Round: _round,
    exp.SafeDivide: _Binary(
        "SAFE_DIVIDE", partial(exp.Div, typed=False, safe=False), NUMERIC, ColumnType.FLOAT, operator=True
    ),
    exp.Sign: _Unary("SIGN", exp.Sign, NUMERIC),
    exp.Sqrt: _Unary("SQRT", exp.Sqrt, NUMERIC, ColumnType.FLOAT),
    exp.StartsWith: _Binary("STARTS_WITH", exp.StartsWith, _TEXT, ColumnType.BOOLEAN),
    exp.Substring: _substring,
    exp.TimestampAdd: read_moved(1, ColumnType.TIMESTAMP),
    exp.TimestampDiff: read_timestamp_diff,
    exp.TimestampSub: read_moved(-1, ColumnType.TIMESTAMP),
    exp.TimestampTrunc: read_truncate,
    exp.TimeToStr: read_formatted,
    exp.Trim: _trim,
    exp.TryCast: read_cast,
    exp.Upper: _Unary("UPPER", exp.Upper, _TEXT),
    exp.WidthBucket: read_width_bucket,
}
"""How each function of the parser's tree is read; a node that is not here is refused."""
