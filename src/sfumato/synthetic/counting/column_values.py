"""Values of a column, counted by an engine: what buying its categories or edges takes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from sqlglot import exp

from sfumato import _check
from sfumato.queries.plan.measure import Measure, RowCount
from sfumato.queries.plan.nodes import Filter, Relation
from sfumato.queries.plan.query import AggregationJob
from sfumato.queries.plan.schema import Column, ColumnType, Expression, Named
from sfumato.queries.plan.typed_expressions import TypedTree, cast, column
from sfumato.synthetic.counting.cell_expressions import comparable, is_null
from sfumato.synthetic.counting.counting_job import column_of
from sfumato.synthetic.domain.attributes import Ordered
from sfumato.synthetic.domain.bought_domain import BoughtCategories, BoughtEdges, declarable

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_values", "values_job"]

_LISTED: Final = frozenset({ColumnType.TEXT, ColumnType.INTEGER})


def values_job(relation: Relation, name: str, wanted: BoughtCategories | BoughtEdges) -> AggregationJob:
    """Return the job that counts the rows of each value of a column, of a unit one at most.

    Parameters
    ----------
    relation : Relation
        Private rows, each a function of one unit's.
    name : str
        The column.
    wanted : BoughtCategories or BoughtEdges

    Returns
    -------
    AggregationJob

    Raises
    ------
    ParameterError
        If the column is not there, or is of another type.

    Notes
    -----
    Guarantee: an engine's. Rows without a value are left out before a unit's row is chosen, so a unit that
    leaves takes one row out of one value at most.
    """
    known = column_of(relation.schema, name)
    if isinstance(wanted, BoughtEdges):
        value = _number(known, wanted)
    else:
        if known.type not in _LISTED:
            found = "no type that queries have" if known.type is None else known.type.value
            rule = "be of texts or whole numbers, where its categories are bought"
            _check.refuse_state(f"column {name!r}", rule, f"it is of {found}", "cast it, or declare it")
        value = Expression(column(known.name, known.type).tree, known.type)
    there = exp.Not(this=exp.Paren(this=is_null(TypedTree(value.tree, value.type))))
    rows = Filter(relation, Expression(there, ColumnType.BOOLEAN))
    most = None if relation.unit is None else 1
    return AggregationJob(rows, (Named("value", value),), (Measure(RowCount()),), None, None, None, most)


def _number(known: Column, wanted: BoughtEdges) -> Expression:
    """Return a column of numbers as floats, or of moments as dates."""
    value = comparable(Ordered(edges=[wanted.lower, wanted.upper]), known)
    kind = ColumnType.DATE if isinstance(wanted.lower, dt.date) else ColumnType.FLOAT
    if value.type is kind:
        return value
    return Expression(cast(TypedTree(value.tree, value.type), kind).tree, kind)


def read_values(wanted: BoughtCategories | BoughtEdges, answer: pa.Table) -> Any:
    """Return what the mechanism of a column takes.

    Parameters
    ----------
    wanted : BoughtCategories or BoughtEdges
    answer : pyarrow.Table
        Of `values_job`; private.

    Returns
    -------
    dict or float64 array
    """
    counts = answer["m0"].to_numpy()
    if isinstance(wanted, BoughtCategories):
        return declarable(dict(zip(answer["k0"].to_pylist(), counts.tolist(), strict=True)))
    ends = Ordered(edges=[wanted.lower, wanted.upper])
    return np.repeat(ends.as_numbers(answer["k0"]), counts)
