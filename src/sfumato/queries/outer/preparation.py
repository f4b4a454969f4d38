"""Outer SQL made ready: checked against the columns that the answers will have, before any charge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sfumato.queries.outer.answer_schema import answer_schema
from sfumato.queries.outer.database import check, run, text_of
from sfumato.queries.outer.interval_columns import Ends, carry_intervals
from sfumato.queries.outer.separation import OuterQuery
from sfumato.queries.plan.schema import ARROW_TYPES, Schema
from sfumato.queries.pricing.price import PricedQuery
from sfumato.queries.release.table import TableRelease

__all__ = ["PreparedOuter", "prepare"]


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
        The columns that carry an interval, and what the statement calls its ends.
    public : mapping of str to str
        What it calls public tables, and the session's names of these.
    """

    text: str
    sql: str
    schema: pa.Schema
    answers: Mapping[str, int]
    answer_schemas: tuple[pa.Schema, ...]
    intervals: Mapping[str, Ends]
    public: Mapping[str, str] = field(default_factory=dict)

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
        tables = {}
        for name, index in self.answers.items():
            schema = self.answer_schemas[index]
            released = releases[index].to_arrow(intervals=True, level=level)
            tables[name] = released.select(schema.names).cast(schema)
        tables |= {name: public[known] for name, known in self.public.items()}
        return run(self.sql, tables, self.schema)


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
    plain = [answer_schema(each) for each in priced]
    schemas = tuple(answer_schema(each, intervals=True) for each in priced)
    tables = {name: schemas[index] for name, index in answers.items()}
    tables |= {name: _arrow(public[known]) for name, known in outer.public.items()}
    shown = {name: plain[index].names for name, index in answers.items()}
    shown |= {name: tables[name].names for name in outer.public}
    tree, ends = carry_intervals(outer.tree, shown, {name: schemas[i].names for name, i in answers.items()})
    sql = text_of(tree)
    schema = check(sql, tables)
    return PreparedOuter(outer.text, sql, schema, answers, schemas, ends, outer.public)


def _arrow(schema: Schema) -> pa.Schema:
    return pa.schema([(c.name, ARROW_TYPES[c.type]) for c in schema.columns if c.type is not None])
