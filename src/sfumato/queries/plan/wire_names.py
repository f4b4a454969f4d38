"""The wire names of what a plan is made of: types, aggregates, functions, and nodes of expressions.

They stand in committed releases and in the keys that find them again. A Python name may change; the name on
the left of these tables never does.

>>> COLUMN_TYPE.encode(ColumnType.FLOAT), AGGREGATE.encode(AggregateKind.AVG)
('float', 'mean')
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

from sfumato._wire import Codec, Names
from sfumato.queries.plan.nodes import UnitFunction
from sfumato.queries.plan.query import AggregateKind, ColumnType, GroupSelection

__all__ = ["AGGREGATE", "COLUMN_TYPE", "EXPRESSION_NODES", "GROUP_SELECTION", "UNIT_FUNCTION"]

COLUMN_TYPE: Final[Codec[ColumnType]] = Names(
    "a column type",
    {
        "boolean": ColumnType.BOOLEAN,
        "date": ColumnType.DATE,
        "decimal": ColumnType.DECIMAL,
        "float": ColumnType.FLOAT,
        "integer": ColumnType.INTEGER,
        "text": ColumnType.TEXT,
        "timestamp": ColumnType.TIMESTAMP,
    },
)

AGGREGATE: Final[Codec[AggregateKind]] = Names(
    "an aggregate",
    {
        "correlation": AggregateKind.CORR,
        "count-distinct": AggregateKind.COUNT_DISTINCT,
        "count-rows": AggregateKind.COUNT_ROWS,
        "count-units": AggregateKind.COUNT_UNITS,
        "count-values": AggregateKind.COUNT_VALUES,
        "mean": AggregateKind.AVG,
        "population-covariance": AggregateKind.COVAR_POP,
        "population-standard-deviation": AggregateKind.STDDEV_POP,
        "population-variance": AggregateKind.VAR_POP,
        "quantile": AggregateKind.QUANTILE,
        "quantiles": AggregateKind.QUANTILES,
        "sample-covariance": AggregateKind.COVAR_SAMP,
        "sample-standard-deviation": AggregateKind.STDDEV_SAMP,
        "sample-variance": AggregateKind.VAR_SAMP,
        "sum": AggregateKind.SUM,
    },
)

GROUP_SELECTION: Final[Codec[GroupSelection]] = Names(
    "a selection of groups",
    {
        "gaussian-threshold": GroupSelection.GAUSSIAN_THRESHOLD,
        "laplace-threshold": GroupSelection.LAPLACE_THRESHOLD,
        "public-groups": GroupSelection.PUBLIC_GROUPS,
        "truncated-geometric": GroupSelection.TRUNCATED_GEOMETRIC,
    },
)

UNIT_FUNCTION: Final[Codec[UnitFunction]] = Names(
    "a function over the rows of one unit",
    {
        "count": UnitFunction.COUNT,
        "count-distinct": UnitFunction.COUNT_DISTINCT,
        "count-rows": UnitFunction.COUNT_ROWS,
        "dense-rank": UnitFunction.DENSE_RANK,
        "maximum": UnitFunction.MAX,
        "mean": UnitFunction.AVG,
        "minimum": UnitFunction.MIN,
        "rank": UnitFunction.RANK,
        "row-number": UnitFunction.ROW_NUMBER,
        "sum": UnitFunction.SUM,
    },
)

EXPRESSION_NODES: Final[dict[type[exp.Expr], tuple[str, tuple[str, ...]]]] = {
    exp.Abs: ("absolute", ("this",)),
    exp.Add: ("add", ("this", "expression")),
    exp.And: ("and", ("this", "expression")),
    exp.Between: ("between", ("this", "low", "high")),
    exp.Case: ("case", ("this", "ifs", "default")),
    exp.Ceil: ("ceiling", ("this",)),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.DPipe: ("concatenate", ("this", "expression")),
    exp.DateAdd: ("date-add", ("this", "expression", "unit")),
    exp.DateDiff: ("date-difference", ("this", "expression", "unit")),
    exp.DateSub: ("date-subtract", ("this", "expression", "unit")),
    exp.DateTrunc: ("date-truncate", ("this", "unit")),
    exp.Div: ("divide", ("this", "expression")),
    exp.EQ: ("equal", ("this", "expression")),
    exp.Exp: ("exponential", ("this",)),
    exp.Extract: ("extract", ("this", "expression")),
    exp.Floor: ("floor", ("this",)),
    exp.GT: ("greater", ("this", "expression")),
    exp.GTE: ("greater-or-equal", ("this", "expression")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.If: ("when", ("this", "true")),
    exp.In: ("in", ("this", "expressions")),
    exp.IntDiv: ("whole-quotient", ("this", "expression")),
    exp.Is: ("is", ("this", "expression")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Length: ("length", ("this",)),
    exp.LT: ("less", ("this", "expression")),
    exp.LTE: ("less-or-equal", ("this", "expression")),
    exp.Like: ("like", ("this", "expression")),
    exp.Ln: ("natural-logarithm", ("this",)),
    exp.Log: ("logarithm", ("this", "expression")),
    exp.Lower: ("lower-case", ("this",)),
    exp.Mod: ("modulo", ("this", "expression")),
    exp.Mul: ("multiply", ("this", "expression")),
    exp.NEQ: ("not-equal", ("this", "expression")),
    exp.Neg: ("negative", ("this",)),
    exp.Not: ("not", ("this",)),
    exp.Nullif: ("null-if", ("this", "expression")),
    exp.Or: ("or", ("this", "expression")),
    exp.Pow: ("power", ("this", "expression")),
    exp.RegexpExtract: ("matched-part", ("this", "expression")),
    exp.RegexpLike: ("matches", ("this", "expression")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Right: ("right", ("this", "expression")),
    exp.Round: ("round", ("this", "decimals")),
    exp.Sign: ("sign", ("this",)),
    exp.Sqrt: ("square-root", ("this",)),
    exp.StartsWith: ("starts-with", ("this", "expression")),
    exp.Sub: ("subtract", ("this", "expression")),
    exp.Substring: ("substring", ("this", "start", "length")),
    exp.TimestampAdd: ("timestamp-add", ("this", "expression", "unit")),
    exp.TimestampDiff: ("timestamp-difference", ("this", "expression", "unit")),
    exp.TimestampSub: ("timestamp-subtract", ("this", "expression", "unit")),
    exp.TimestampTrunc: ("timestamp-truncate", ("this", "unit")),
    exp.Trim: ("trim", ("this",)),
    exp.TryCast: ("cast", ("this", "to")),
    exp.Upper: ("upper-case", ("this",)),
}
"""The wire name of each node of an expression, and its operands in the order that they are written in."""
