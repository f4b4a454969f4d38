"""What the SQL around private SELECTs may hold: a whitelist of syntax nodes, put into the terms of DuckDB.

A node that is not listed is refused by name, so nothing that reads files, settings, tables of the system or
the time gets further. The same text over the same answers gives the same rows. A function that has no value
gives NULL, as in private SELECTs: a division by zero, the root of a negative number, a cast that fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from sqlglot import exp

from sfumato.errors import UnsupportedSql
from sfumato.queries.outer.top_lists import in_list, sliced
from sfumato.queries.plan.constants import number, text
from sfumato.queries.plan.query import ColumnType
from sfumato.queries.plan.typed_expressions import closest_name, only
from sfumato.queries.sql.expressions.scalar import function_name
from sfumato.queries.sql.top_counts import TopList

__all__ = ["in_duckdb"]

_SELECT: Final = (
    *("with_", "expressions", "distinct", "from_", "joins", "where", "group", "having", "qualify"),
    *("windows", "order", "limit", "offset"),
)
_PLAIN: Final = frozenset(
    {
        *(exp.Alias, exp.CTE, exp.Column, exp.Distinct, exp.From, exp.Group, exp.Having, exp.Identifier),
        *(exp.Limit, exp.Offset, exp.Order, exp.Ordered, exp.Qualify, exp.Rollup, exp.Cube, exp.GroupingSets),
        *(exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple, exp.Where),
        *(exp.Union, exp.Intersect, exp.Except, exp.Exists, exp.Window, exp.WindowSpec),
        *(exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Paren, exp.DPipe, exp.Mod),
        *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
        *(exp.And, exp.Or, exp.Not, exp.Is, exp.Between, exp.Like, exp.Boolean, exp.Null, exp.Var),
        *(exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.SafeDivide),
        *(exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Sign, exp.Exp, exp.Greatest, exp.Least),
        *(exp.Concat, exp.Lower, exp.Upper, exp.Length, exp.Trim, exp.StartsWith, exp.EndsWith),
        *(exp.Left, exp.Right, exp.Replace, exp.LastDay),
        *(exp.RowNumber, exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist, exp.Ntile),
        *(exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue),
        *(exp.Sum, exp.Count, exp.CountIf, exp.Avg, exp.Min, exp.Max),
        *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop),
        *(exp.Corr, exp.CovarPop, exp.CovarSamp),
    }
)
"""Nodes that mean the same in BigQuery and as they are written for DuckDB."""

_AGGREGATES: Final[Mapping[str, type[exp.Func]]] = {
    "AVG": exp.Avg,
    "CORR": exp.Corr,
    "COUNT": exp.Count,
    "COUNTIF": exp.CountIf,
    "COVAR_POP": exp.CovarPop,
    "COVAR_SAMP": exp.CovarSamp,
    "MAX": exp.Max,
    "MIN": exp.Min,
    "STDDEV": exp.Stddev,
    "STDDEV_POP": exp.StddevPop,
    "STDDEV_SAMP": exp.StddevSamp,
    "SUM": exp.Sum,
    "VARIANCE": exp.Variance,
    "VAR_POP": exp.VariancePop,
    "VAR_SAMP": exp.Variance,
}
"""Aggregates, which the parser leaves as plain calls."""

FUNCTION_NAMES: Final = (
    *("ABS", "CAST", "CEIL", "COALESCE", "CONCAT", "CUME_DIST", "DATE_ADD", "DATE_DIFF", "DATE_SUB"),
    *("DATE_TRUNC", "DENSE_RANK", "ENDS_WITH", "EXP", "EXTRACT", "FIRST_VALUE", "FLOOR", "GREATEST", "IF"),
    *("IFNULL", "LAG", "LAST_DAY", "LAST_VALUE", "LEAD", "LEAST", "LEFT", "LENGTH", "LN", "LOG", "LOG10"),
    *("LOWER", "MOD", "NTH_VALUE", "NTILE", "NULLIF", "PERCENT_RANK", "POWER", "RANK", "REPLACE", "RIGHT"),
    *("ROUND", "ROW_NUMBER", "SAFE_CAST", "SAFE_DIVIDE", "SIGN", "SQRT", "STARTS_WITH", "SUBSTR"),
    *("TIMESTAMP_TRUNC", "TRIM", "UPPER", *sorted(_AGGREGATES)),
)
"""What the outer SQL may call, as messages list it."""

_TYPES: Final = {
    exp.DataType.Type[name]: target
    for target, names in {
        "BOOLEAN": ("BOOLEAN",),
        "BIGINT": ("TINYINT", "SMALLINT", "INT", "BIGINT"),
        "DOUBLE": ("FLOAT", "DOUBLE"),
        "DECIMAL(38, 9)": ("DECIMAL",),
        "VARCHAR": ("TEXT", "VARCHAR"),
        "DATE": ("DATE",),
        "TIMESTAMP": ("TIMESTAMP", "TIMESTAMPTZ"),
    }.items()
    for name in names
}
_NUMERIC: Final = re.compile(r"[+-]?0*[0-9]{1,29}(\.[0-9]{0,9}0*)?")
_DATE_PARTS: Final = frozenset({"YEAR", "QUARTER", "MONTH", "DAY"})
_TIME_PARTS: Final = _DATE_PARTS | {"HOUR", "MINUTE", "SECOND"}
_EXTRACTED: Final = _TIME_PARTS | {"DAYOFYEAR", "DAYOFWEEK"}


def in_duckdb(tree: exp.Expr) -> exp.Expr:
    """Return a tree in the terms of DuckDB, or refuse it.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        A query in BigQuery's spelling; it is changed.

    Returns
    -------
    sqlglot.exp.Expr

    Raises
    ------
    UnsupportedSql
        If a node of it is not on the whitelist.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> in_duckdb(parse_one("SELECT a / b, CAST(c AS INT64) FROM t", dialect="bigquery")).sql("duckdb")
    'SELECT a / NULLIF(b, 0), TRY_CAST(c AS BIGINT) FROM t'
    """
    for node in reversed(list(tree.walk())):  # children first, since some rules copy what is below
        read = _RULES.get(type(node))
        if read is not None:
            made = read(node)
        elif type(node) in _PLAIN:
            made = node
        else:
            _refuse(node)
        if made is not node:
            node.replace(made)
    return tree


def _refuse(node: exp.Expr) -> NoReturn:
    name = function_name(node)
    if isinstance(node, exp.Parameter | exp.Placeholder):
        raise UnsupportedSql("a query parameter must be named; write @name, and pass params={'name': ...}")
    if isinstance(node, exp.Kwarg):
        raise UnsupportedSql(
            "a named argument belongs to an aggregate of a private SELECT; leave it out in the SQL around it"
        )
    if name and not isinstance(node, exp.Binary | exp.Connector):
        close = closest_name(name, FUNCTION_NAMES)
        hint = f"did you mean {close}?" if close else f"the functions there are {', '.join(FUNCTION_NAMES)}"
        raise UnsupportedSql(
            f"the function {name[:60]} is not answered in the SQL around private SELECTs; {hint}"
        )
    raise UnsupportedSql(
        f"{node.key.upper()} is not answered in the SQL around private SELECTs; use SELECT, WITH, JOIN, "
        "UNION, windows, arithmetic and functions"
    )


def _select(node: exp.Expr) -> exp.Expr:
    only(node, *_SELECT, what="a SELECT around private ones")
    return node


def _join(node: exp.Expr) -> exp.Expr:
    only(node, "this", "side", "kind", "on", "using", what="a JOIN around private SELECTs")
    words = {str(node.args.get(slot) or "").upper() for slot in ("side", "kind")}
    if not words <= {"", "LEFT", "RIGHT", "FULL", "INNER", "OUTER", "CROSS"}:
        raise UnsupportedSql("a JOIN must be INNER, LEFT, RIGHT, FULL or CROSS; write one of them")
    return node


def _with(node: exp.Expr) -> exp.Expr:
    if node.args.get("recursive"):
        raise UnsupportedSql("WITH RECURSIVE is not supported; write a plain WITH or a subquery")
    only(node, "expressions", what="WITH")
    return node


def _in(node: exp.Expr) -> exp.Expr:
    listed = node.args.get("unnest")
    if listed is not None:
        values = listed.expressions[0] if len(listed.expressions) == 1 else None
        if not isinstance(values, exp.Array) or not values.expressions:
            raise UnsupportedSql("IN UNNEST must list values; write x IN UNNEST(['a', 'b'])")
        node.set("unnest", None)
        node.set("expressions", values.expressions)
    return node


def _unnest(node: exp.Expr) -> exp.Expr:
    only(node, "expressions", "alias", what="UNNEST")
    constants = (exp.Literal, exp.Neg, exp.Boolean, exp.Null, exp.TryCast)
    values = node.expressions[0] if len(node.expressions) == 1 else None
    if not isinstance(node.parent, exp.From | exp.Join | exp.In) or not isinstance(values, exp.Array):
        raise UnsupportedSql("UNNEST must list constants in FROM; write FROM UNNEST(['a', 'b']) AS name")
    if not all(isinstance(each, constants) for each in values.expressions):
        raise UnsupportedSql("UNNEST must list constants in FROM; write the values themselves")
    return node


def _star(node: exp.Expr) -> exp.Expr:
    inner = node.parent if isinstance(node.parent, exp.Column) else node  # of a table, or of all
    holder = inner.parent
    listed = isinstance(holder, exp.Select) and inner.arg_key == "expressions"
    if not listed and not (isinstance(holder, exp.Anonymous) and holder.name.upper() == "COUNT"):
        raise UnsupportedSql("* must stand in a SELECT list or in COUNT(*); name the columns")
    return node


def _array(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.Unnest):
        raise UnsupportedSql("an array must stand in UNNEST; write UNNEST(['a', 'b']), or single values")
    return node


def _struct(node: exp.Expr) -> exp.Expr:
    if not in_list(node):
        _refuse(node)
    return node


def _literal(node: exp.Expr) -> exp.Expr:
    if node.is_string:
        return text(node.name).tree
    found = number(node.name)
    digits = found.tree.name
    real = found.type is ColumnType.FLOAT and "e" not in digits  # a decimal, where DuckDB reads it
    return exp.Literal.number(f"{digits}e0" if real else digits)


def _anonymous(node: exp.Expr) -> exp.Expr:
    kind = _AGGREGATES.get(node.name.upper())
    if kind is None:
        _refuse(node)
    arguments = list(node.expressions)
    slots = [slot for slot in kind.arg_types if slot in ("this", "expression")]
    if len(arguments) > len(slots) or not arguments:
        raise UnsupportedSql(
            f"{node.name.upper()} must have {len(slots)} argument{'s'[: len(slots) - 1]} in the SQL around "
            f"private SELECTs, got {len(arguments)}; bounds and epsilon belong into a private SELECT"
        )
    return kind(**dict(zip(slots, arguments, strict=False)))


def _division(node: exp.Expr) -> exp.Expr:
    divisor = exp.Nullif(this=node.expression, expression=exp.Literal.number("0"))
    node.set("expression", divisor)
    return node


def _cast(node: exp.Expr) -> exp.Expr:
    only(node, "this", "to", "safe", what="CAST")
    if node.args["to"].this is exp.DataType.Type.DECIMAL and isinstance(node.this, exp.Literal):
        _require_digits(node.this.name)
    return exp.TryCast(this=node.this, to=node.args["to"], safe=True)


def _type(node: exp.Expr) -> exp.Expr:
    target = _TYPES.get(node.this)
    if target is None or node.expressions:
        raise UnsupportedSql(
            "a CAST must be to BOOL, INT64, FLOAT64, NUMERIC, STRING, DATE or TIMESTAMP, without a size; "
            "name one of them"
        )
    return exp.DataType.build(target, dialect="duckdb")


def _require_digits(digits: str) -> None:
    """Refuse a literal that NUMERIC would have to round, or has no room for."""
    if not _NUMERIC.fullmatch(digits):
        raise UnsupportedSql(
            "a NUMERIC in the SQL around private SELECTs must have at most 29 digits before the point and 9 "
            f"behind it, got {digits[:60]!r}; write fewer, or a FLOAT64"
        )


def _domain(least: str) -> Callable[[Any], exp.Expr]:
    """Return a reader of functions of numbers above a limit, or from it on, which have no value elsewhere."""

    def read(node: exp.Expr) -> exp.Expr:
        test = exp.GTE if isinstance(node, exp.Sqrt) else exp.GT
        condition = test(this=exp.Paren(this=node.this.copy()), expression=exp.Literal.number(least))
        node.set("this", exp.Case(ifs=[exp.If(this=condition, true=node.this)]))
        return node

    return read


def _log(node: exp.Expr) -> exp.Expr:
    base, value = node.this, node.args.get("expression")
    if value is None or not isinstance(base, exp.Literal) or base.is_string or float(base.name) <= 1:
        raise UnsupportedSql("LOG must have a base above 1; write LOG10(x), LOG(x, 2) or LN(x)")
    condition = exp.GT(this=exp.Paren(this=value.copy()), expression=exp.Literal.number("0"))
    node.set("expression", exp.Case(ifs=[exp.If(this=condition, true=value)]))
    return node


def _power(node: exp.Expr) -> exp.Expr:
    nan = exp.Cast(this=exp.Literal.string("nan"), to=exp.DataType.build("DOUBLE"))
    return exp.Nullif(this=exp.Pow(this=node.this, expression=node.expression), expression=nan)


def _extract(node: exp.Expr) -> exp.Expr:
    part = node.this.name.upper() if isinstance(node.this, exp.Var) else ""
    _require_part(part, _EXTRACTED, "EXTRACT")
    if part != "DAYOFWEEK":
        return node
    return exp.Paren(this=exp.Add(this=node.copy(), expression=exp.Literal.number("1")))  # from Sunday, 1


def _require_part(part: str, parts: frozenset[str], what: str) -> None:
    if part not in parts:
        raise UnsupportedSql(
            f"{what} must name one of {', '.join(sorted(parts))} in the SQL around private SELECTs; "
            "name one of them"
        )


def _part_of(node: exp.Expr) -> str:
    unit = node.args.get("unit")
    return str(unit.name).upper() if isinstance(unit, exp.Var | exp.Literal) else ""


def _date_step(node: exp.Expr) -> exp.Expr:
    _require_part(_part_of(node), _DATE_PARTS | {"WEEK"}, "DATE_ADD and DATE_SUB")
    return exp.TryCast(this=node.copy(), to=exp.DataType.build("DATE"), safe=True)


def _date_trunc(node: exp.Expr) -> exp.Expr:
    _require_part(_part_of(node), _DATE_PARTS, "DATE_TRUNC")
    return exp.TryCast(this=node.copy(), to=exp.DataType.build("DATE"), safe=True)


def _timestamp_trunc(node: exp.Expr) -> exp.Expr:
    only(node, "this", "unit", what="TIMESTAMP_TRUNC")
    _require_part(_part_of(node), _TIME_PARTS, "TIMESTAMP_TRUNC")
    return node


def _date_diff(node: exp.Expr) -> exp.Expr:
    _require_part(_part_of(node), _DATE_PARTS, "DATE_DIFF")
    return node


def _substring(node: exp.Expr) -> exp.Expr:
    start = node.args.get("start")
    if not isinstance(start, exp.Literal) or start.is_string or start.name == "0":
        raise UnsupportedSql("SUBSTR must start at a literal position from 1; write SUBSTR(s, 1, 3)")
    return node


_RULES: Final[Mapping[type[exp.Expr], Callable[[Any], exp.Expr]]] = {
    exp.Anonymous: _anonymous,
    exp.Array: _array,
    exp.Cast: _cast,
    exp.DataType: _type,
    exp.DateAdd: _date_step,
    exp.DateDiff: _date_diff,
    exp.DateSub: _date_step,
    exp.DateTrunc: _date_trunc,
    exp.Div: _division,
    exp.Extract: _extract,
    exp.In: _in,
    exp.Join: _join,
    exp.Literal: _literal,
    exp.Ln: _domain("0"),
    exp.Log: _log,
    exp.Pow: _power,
    exp.PropertyEQ: _struct,
    exp.Select: _select,
    exp.Sqrt: _domain("0"),
    exp.Star: _star,
    exp.Struct: _struct,
    exp.Substring: _substring,
    TopList: sliced,
    exp.TimestampTrunc: _timestamp_trunc,
    exp.TryCast: _cast,
    exp.Unnest: _unnest,
    exp.With: _with,
}
"""Nodes that need a look of their own, or other words in DuckDB."""
