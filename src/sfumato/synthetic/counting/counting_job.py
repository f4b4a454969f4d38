"""All tables that are wanted as one job of an engine: rows of a unit bounded, then counted by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from sqlglot import exp

from sfumato import _check
from sfumato.queries.plan.measure import BinCounts, GridColumn, Measure, RowCount
from sfumato.queries.plan.nodes import Filter, JoinPublic, Project, PublicRows, Relation
from sfumato.queries.plan.query import AggregationJob
from sfumato.queries.plan.schema import Column, ColumnType, Expression, Named, Schema
from sfumato.queries.plan.typed_expressions import closest_name, column
from sfumato.synthetic.counting.cell_expressions import (
    INTEGER,
    both,
    cell_among,
    cell_of,
    comparable,
    is_null,
    listed_cells,
    whole,
)
from sfumato.synthetic.domain.domain import TableDomain
from sfumato.synthetic.marginals.workload import Clique, maximal

__all__ = ["CountingJob", "column_of", "counting_job"]

_ONE_NUMBER: Final = 1 << 61
"""Cells that one integer of an engine tells apart."""
_BY_TABLE: Final = 4
_FEW_CELLS: Final = 1 << 22
"""Tables up to which an engine counts each by itself, if all their columns together have more cells."""
_UNIT: Final = "unit"


@final
@dataclass(frozen=True, slots=True)
class CountingJob:
    """What an engine computes to count tables, and how its answer is read.

    Parameters
    ----------
    job : AggregationJob
        Of one measure for each table; or one that counts rows by key, where all columns are counted together.
    tables : tuple of tuple of int
        The columns of each measure, or of each key, by number, rising.
    together : bool
        Whether the tables are keys of one count.
    """

    job: AggregationJob
    tables: tuple[Clique, ...]
    together: bool


def counting_job(
    domain: TableDomain,
    relation: Relation,
    cliques: Sequence[Clique],
    *,
    max_rows_contributed: int = 1,
    together: bool | None = None,
) -> CountingJob:
    """Return the job that counts the rows of a relation by the cells of some tables.

    Parameters
    ----------
    domain : TableDomain
    relation : Relation
        Private rows, each a function of one unit's.
    cliques : sequence of tuple of int
        The tables, by their columns.
    max_rows_contributed : int
        The most rows of a unit that are counted; of no effect where each row is a unit.
    together : bool, optional
        Whether rows are counted by all columns at once, which is one pass over them, and returns no more
        groups than there are rows. Unless given, so for more than 4 tables, for columns of at most 2**22
        cells, and for tables too large for one number.

    Returns
    -------
    CountingJob

    Raises
    ------
    ParameterError
        If a column is not there, or is of another type than its cells.

    Notes
    -----
    Guarantee: an engine's (`sfumato.queries.engines.engine.Engine`). Rows without a cell in some column of
    the domain, or in a cell that cannot be, are left out before a unit's rows are chosen, one by one. The
    chosen rows are the same for all tables: there is one job, with one choice by a keyed rank of the unit's
    own rows. So a unit that leaves takes at most ``max_rows_contributed`` rows out of every table, the same
    ones, and changes no other unit's.
    """
    _check.integer("max_rows_contributed", max_rows_contributed, minimum=1)
    most = None if relation.unit is None else max_rows_contributed
    rows, tables = _counted_rows(domain, relation), maximal(cliques)
    places = sorted({place for table in tables for place in table})
    if together is None:
        together = len(tables) > _BY_TABLE or _cells(domain, tuple(places)) <= _FEW_CELLS
    if together or any(_cells(domain, table) >= _ONE_NUMBER for table in tables):
        tables = _parts(domain, places)
        numbers = [_number(domain, table) for table in tables]
        keys = tuple(Named(f"table_{i}", number) for i, number in enumerate(numbers))
        counted = Measure(RowCount(), upper=max_rows_contributed)
        job = AggregationJob(rows, keys, (counted,), None, None, None, most)
        return CountingJob(job, tables, together=True)
    ends = [GridColumn(_number(domain, table), 0, 0, _cells(domain, table) - 1) for table in tables]
    measures = tuple(Measure(BinCounts(each), upper=max_rows_contributed) for each in ends)
    return CountingJob(AggregationJob(rows, (), measures, None, most, None), tables, together=False)


def _cells(domain: TableDomain, clique: Clique) -> int:
    return math.prod(domain.sizes[place] for place in clique)


def _parts(domain: TableDomain, places: Sequence[int]) -> tuple[Clique, ...]:
    """Return columns in groups whose cells one integer tells apart."""
    parts: list[list[int]] = [[]]
    for place in places:
        if _cells(domain, (*parts[-1], place)) >= _ONE_NUMBER:
            parts.append([])
        parts[-1].append(place)
    return tuple(map(tuple, parts))


def _number(domain: TableDomain, clique: Clique) -> Expression:
    """Return the number of a row's cell in a table, in the order of rows of an array."""
    made = whole(0).tree
    for step, place in enumerate(clique):
        cell = column(_cell_name(place), INTEGER).tree
        if step:
            scaled = exp.Mul(this=exp.Paren(this=made), expression=whole(domain.sizes[place]).tree)
            made = exp.Add(this=exp.Paren(this=scaled), expression=cell)
        else:
            made = cell
    return Expression(made, INTEGER)


def _cell_name(place: int) -> str:
    return f"cell_{place}"


def _counted_rows(domain: TableDomain, relation: Relation) -> Relation:
    """Return the rows that are counted, with their cells and their unit."""
    known = [column_of(relation.schema, name) for name in domain]
    unit = _unit(relation)
    pairs = list(zip(domain.values(), known, strict=True))
    values = [Named(f"value_{i}", comparable(each, column_)) for i, (each, column_) in enumerate(pairs)]
    rows: Relation = Project(relation, (*unit, *values), _UNIT if unit else None)
    kinds = [value.expression.type for value in values]
    found: dict[int, str] = {}
    for place, (attribute, kind) in enumerate(zip(domain.values(), kinds, strict=True)):
        listed = listed_cells(attribute, kind)
        if listed is not None:
            found[place] = f"listed_{place}"
            rows = _joined(rows, place, kind, listed)
    cells = [
        Named(_cell_name(place), cell_of(attribute, f"value_{place}", kind, found.get(place)))
        for place, (attribute, kind) in enumerate(zip(domain.values(), kinds, strict=True))
    ]
    rows = Project(rows, (*_unit(rows), *cells), _UNIT if unit else None)
    there: list[exp.Expression] = [
        exp.Not(this=exp.Paren(this=is_null(column(each.name, INTEGER)))) for each in cells
    ]
    for zero in domain.structural_zeros:
        inside = both([cell_among(_cell_name(place), among) for place, among in zero])
        there.append(exp.Not(this=exp.Paren(this=inside)))
    return Filter(rows, Expression(both(there), ColumnType.BOOLEAN))


def _unit(relation: Relation) -> tuple[Named, ...]:
    """Return the unit column under its name here; nothing where each row is a unit."""
    if relation.unit is None:
        return ()
    known = column_of(relation.schema, relation.unit)
    assert known.type is not None  # noqa: S101 - a session refuses other units
    return (Named(_UNIT, Expression(column(known.name, known.type).tree, known.type)),)


def _joined(
    rows: Relation, place: int, kind: ColumnType, listed: Sequence[tuple[Expression, Expression]]
) -> Relation:
    """Return the rows with the cells of their listed values; NULL for other values."""
    public = PublicRows(Schema((Column("value", kind), Column("cell", INTEGER))), tuple(listed))
    names = f"known_{place}", f"listed_{place}"
    mine, theirs = (column(name, kind).tree for name in (f"value_{place}", names[0]))
    on = Expression(exp.EQ(this=mine, expression=theirs), ColumnType.BOOLEAN)
    single = (Expression(column("value", kind).tree, kind),) if rows.unit is None else None
    return JoinPublic(rows, public, names, on, keep=True, single=single)


def column_of(schema: Schema, name: str) -> Column:
    """Return the column of that name, without regard to case.

    Parameters
    ----------
    schema : Schema
    name : str

    Returns
    -------
    Column

    Raises
    ------
    ParameterError
        If there is none.
    """
    found = schema.find(name)
    if found is None:
        names = [known.name for known in schema.columns]
        close = closest_name(name, names)
        remedy = f"did you mean {close!r}?" if close else "name the domain's columns as the table does"
        _check.refuse("column", f"be one of the table's {names}", name, remedy)
    return found
