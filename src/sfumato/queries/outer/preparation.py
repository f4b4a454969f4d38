"""Outer SQL made ready: checked against the columns that the answers will have, before any charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from sfumato.errors import EngineError
from sfumato.queries.outer.answer_schema import answer_schema
from sfumato.queries.outer.cell_intervals import cell_ends
from sfumato.queries.outer.database import check, run, text_of
from sfumato.queries.outer.dry_run import dry_run
from sfumato.queries.outer.interval_columns import carry_intervals
from sfumato.queries.outer.noise_forms import ColumnNoise
from sfumato.queries.outer.noisy_cells import cell_columns, numbered_cells
from sfumato.queries.outer.separation import OuterQuery
from sfumato.queries.outer.source_columns import Ends
from sfumato.queries.plan.schema import ARROW_TYPES, Schema
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.table import TableRelease
from sfumato.queries.sql.catalog import free_name

__all__ = ["CellStatement", "PreparedOuter", "prepare"]

_ROWS: Final = 2048
_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class CellStatement:
    """The same outer SQL, with lists of cells beside the columns that are made from several.

    Parameters
    ----------
    sql : str
        The statement of the locked database.
    schema : pyarrow.Schema
        The columns that it makes.
    names : tuple of dict
        For each answer, what columns of cells are called, by those that they are beside.
    noise : mapping of str to ColumnNoise
        The columns whose intervals follow from cells, and what is in them.
    """

    sql: str
    schema: pa.Schema
    names: tuple[dict[str, str], ...]
    noise: Mapping[str, ColumnNoise]


@dataclass(frozen=True, slots=True)
class PreparedOuter:
    """Outer SQL that suits its tables.

    Parameters
    ----------
    text : str
        As it was read, in BigQuery's spelling, for people.
    sql : str
        The statement of the locked database.
    schema : pyarrow.Schema
        The columns that it makes, those of intervals too.
    answers : mapping of str to int
        What it calls the answers, and their positions among the releases.
    answer_schemas : tuple of pyarrow.Schema
        The columns of each answer, with its intervals.
    intervals : mapping of str to Ends
        The columns that carry an interval, and what its ends are called.
    public : mapping of str to str
        What it calls public tables, and the session's names of these.
    cells : CellStatement or None
        Where columns are made from several released numbers whose noise is known.
    unread : tuple of str
        The names in WITH of private SELECTs that nothing reads, which are not answered.
    """

    text: str
    sql: str
    schema: pa.Schema
    answers: Mapping[str, int]
    answer_schemas: tuple[pa.Schema, ...]
    intervals: Mapping[str, Ends]
    public: Mapping[str, str] = field(default_factory=dict)
    cells: CellStatement | None = None
    unread: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the answer, without those of intervals."""
        ends = {end for pair in self.intervals.values() for end in pair}
        return tuple(name for name in self.schema.names if name not in ends)

    def table(
        self, releases: Sequence[TableRelease], public: Mapping[str, pa.Table], level: float
    ) -> pa.Table:
        """Compute the answer from the released tables.

        Parameters
        ----------
        releases : sequence of TableRelease
        public : mapping of str to pyarrow.Table
            Rows of the public tables, by the session's names.
        level : float
            Coverage of the intervals.

        Returns
        -------
        pyarrow.Table
        """
        shown: list[pa.Table] = []
        for release, schema in zip(releases, self.answer_schemas, strict=True):
            released = release.to_arrow(intervals=True, level=level)
            shown.append(released.select(schema.names).cast(schema))
        tables = {name: shown[index] for name, index in self.answers.items()}
        open_ = {name: public[known] for name, known in self.public.items()}
        if self.cells is None:
            return run(self.sql, tables | open_, self.schema)
        found = None
        if sum(each.num_rows for each in shown) <= _ROWS:
            with suppress(EngineError):  # too many cells; the answer needs none
                found = self._with_cells(self.cells, releases, shown, open_, level)
        if found is None:
            found = run(self.sql, tables | open_, self.schema)
            for name in self.cells.noise:
                nothing = pa.nulls(found.num_rows, found.schema.field(name).type)
                for end in self.intervals[name]:
                    found = found.append_column(end, nothing)
        return found

    def _with_cells(
        self,
        cells: CellStatement,
        releases: Sequence[TableRelease],
        shown: Sequence[pa.Table],
        public: Mapping[str, pa.Table],
        level: float,
    ) -> pa.Table:
        """Compute the answer with lists of cells, and from these the ends of intervals."""
        numbered, measures = numbered_cells(releases, shown, cells.names)
        tables = {name: numbered[index] for name, index in self.answers.items()}
        made = run(cells.sql, tables | dict(public), cells.schema, seconds=_SECONDS)
        found = made.select(self.schema.names)
        for name, noise in cells.noise.items():
            for end, values in zip(
                self.intervals[name], cell_ends(noise, name, made, measures, level), strict=True
            ):
                found = found.append_column(end, values)
        return found


def prepare(
    outer: OuterQuery, priced: Sequence[PricedQuery], positions: Sequence[int], public: Mapping[str, Schema]
) -> PreparedOuter:
    """Check outer SQL over tables without rows.

    Parameters
    ----------
    outer : OuterQuery
    priced : sequence of PricedQuery
        The private SELECTs, each one once.
    positions : sequence of int
        For each private SELECT of the text, which of these it is.
    public : mapping of str to Schema
        The public tables of the session.

    Returns
    -------
    PreparedOuter

    Raises
    ------
    SchemaError
        If it does not suit the answers' columns; the message says why.
    """
    answers = dict(zip(outer.answers, positions, strict=True))
    schemas = tuple(answer_schema(each) for each in priced)
    tables = {name: schemas[index] for name, index in answers.items()}
    tables |= {name: _arrow(public[known]) for name, known in outer.public.items()}
    shown = {name: priced[index].query.output for name, index in answers.items()}
    shown |= {name: tables[name].names for name in outer.public}
    known = {name: schemas[i].names for name, i in answers.items()}
    keys = {name: [key.name for key in priced[i].query.keys] for name, i in answers.items()}
    tree, ends, _ = carry_intervals(outer.tree, shown, known, keys=keys)
    sql = text_of(tree)
    schema = dry_run(tree, tables)
    names = tuple(cell_columns(each) for each in priced)
    cells = {name: names[index] for name, index in answers.items()}
    tree, _, noise = carry_intervals(outer.tree, shown, known, cells, keys)
    statement = None
    if noise:
        tables |= {name: _with_cells(schemas[index], names[index]) for name, index in answers.items()}
        with_cells = text_of(tree)
        statement = CellStatement(with_cells, check(with_cells, tables), names, noise)
        taken = {name.casefold() for name in schema.names}
        ends |= {name: (free_name(f"{name}_low", taken), free_name(f"{name}_high", taken)) for name in noise}
    made = (outer.text, sql, schema, answers, schemas, ends, outer.public, statement, outer.unread)
    return PreparedOuter(*made)


def _with_cells(schema: pa.Schema, names: Mapping[str, str]) -> pa.Schema:
    for name in names.values():
        schema = schema.append(pa.field(name, pa.list_(pa.int64())))
    return schema


def _arrow(schema: Schema) -> pa.Schema:
    return pa.schema([(c.name, ARROW_TYPES[c.type]) for c in schema.columns if c.type is not None])
