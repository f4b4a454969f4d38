"""A job as SQL of one dialect, before and after its bounding: what every engine runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato._check import integer, refuse
from sfumato.queries.engines.compilation.bounding import Bounding
from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.group_table import (
    listed_groups,
    numbered_groups,
    relation_groups,
    table_groups,
)
from sfumato.queries.engines.compilation.measure_columns import MeasureColumns
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.compilation.value_columns import ValueColumn
from sfumato.queries.engines.dialects.base import Dialect, StoredTable
from sfumato.queries.plan.measure import BinCounts, Measure
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    PublicRelation,
    PublicTable,
    PublicValues,
)
from sfumato.queries.plan.schema import ARROW_TYPES

__all__ = ["GROUPS", "CompiledJob", "as_one_statement", "compile_job", "with_bin_counts"]

GROUPS = "groups_"
"""The table of the public groups: the keys, numbered ``g``."""

_Integers: TypeAlias = NDArray[np.int64]

_LEAF = pa.struct([("leaf", pa.int64()), ("n", pa.int64())])


@dataclass(frozen=True, slots=True)
class CompiledJob:
    """A job as SQL.

    ``base`` has the unit, the keys in canonical form and the values that ``values`` put on the grid.
    ``listed`` holds public groups given as values; ``table`` is the SELECT of those in a public table. Jobs
    of one ``identity`` have the same rows, groups and limits, whatever they measure.
    """

    dialect: Dialect
    base: str
    values: tuple[str, ...]
    types: tuple[ColumnType, ...]
    slots: MeasureColumns
    unit: bool
    max_groups: int | None
    max_rows: int | None
    all_rows: int | None
    listed: pa.Table | None
    table: str | None
    identity: str

    @property
    def public(self) -> bool:
        """Whether the groups are public."""
        return self.listed is not None or self.table is not None

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns of ``base`` and of the answer."""
        return tuple(f"k{i}" for i in range(len(self.types)))

    @property
    def grouping(self) -> tuple[str, ...]:
        """The columns to group by: a public group is known by its number."""
        return ("g",) if self.public else self.keys

    def rows(self, parts: str | None) -> str:
        """Return the SELECT of the rows, of some parts only if a table of these is named.

        NULL keys match NULL keys. Values are put on the grid last, so only for rows that matched.
        """
        source = f"({self.base}) AS r"
        same = self.dialect.same
        if self.public:
            keys = " AND ".join(same(f"r.{key}", f"p.{key}") for key in self.keys)
            source = f"(SELECT r.*, p.g FROM {source} JOIN {GROUPS} AS p ON {keys}) AS r"
        if parts is not None:
            on = " AND ".join(("r.u = o.u", *(same(f"r.{key}", f"o.{key}") for key in self.grouping)))
            source += f" {self.dialect.semi_join} {parts} AS o ON {on}"
        items = [*(["r.u"] if self.unit else []), *(f"r.{key}" for key in self.grouping), *self.values]
        return f"SELECT {_list(items)} FROM {source}"

    def bounding(self, secret: bytes) -> Bounding:
        """Return the steps that bound the rows."""
        limits = self.max_groups, self.max_rows
        return Bounding(self.rows, self.grouping, self.slots, *limits, secret, self.all_rows)

    def answer(self, bounding: Bounding, *, any_crowded: bool, parts_table: str | None = None) -> str:
        """Return the SELECT of the answer, in its order, from what the steps made."""
        return self.arranged(
            bounding.totals(unit=self.unit, any_crowded=any_crowded, parts_table=parts_table)
        )

    def arranged(self, totals: str) -> str:
        """Return the SELECT of the answer, in its order, from that of the sums of groups in any."""
        measures = [f"m{i}" for i in range(len(self.slots.measures))]
        if self.public:
            items = [*(f"p.{key}" for key in self.keys), *(f"coalesce({m}, 0) AS {m}" for m in measures)]
            return (
                f"SELECT {', '.join(items)} FROM {GROUPS} AS p LEFT JOIN ({totals}) AS t ON p.g = t.g "
                "ORDER BY p.g"
            )
        order = ", ".join(f"{key} NULLS LAST" for key in self.keys)
        return f"SELECT * FROM ({totals}) AS t" + (f" ORDER BY {order}" if order else "")

    def leaves(self, bounding: Bounding, *, any_crowded: bool) -> dict[int, str]:
        """Return the SELECT of the counts by bin of each measure that is such: groups, ``leaf`` and ``n``."""
        return {
            index: bounding.leaves(index, unit=self.unit, any_crowded=any_crowded)
            for index in self.slots.binned
        }

    @property
    def schema(self) -> pa.Schema:
        """The columns of the answer."""
        keys = [(key, ARROW_TYPES[type_]) for key, type_ in zip(self.keys, self.types, strict=True)]
        return pa.schema([*keys, *((f"m{i}", pa.int64()) for i in range(len(self.slots.measures)))])


def compile_job(
    job: AggregationJob,
    tables: Mapping[str, StoredTable],
    dialect: Dialect,
    known: Sequence[ValueColumn] = (),
) -> CompiledJob:
    """Write a job in a dialect, with columns of values that are ``known`` already before its own.

    Raises
    ------
    ParameterError
        If a limit or bound is out of range, or a limit on groups is missing where a unit can be in several.
    QueryError
        If the engine cannot express the job, or public keys are not of their keys' types.
    """
    layer = relation_layer(job.relation, tables, dialect)
    max_groups, max_rows, all_rows = _limits(job, unit=layer.unit)
    types = tuple(key.expression.type for key in job.keys)
    for measure in job.measures:
        _check_leaves(measure, (max_rows or all_rows) if layer.unit else 1)
    slots = MeasureColumns(job.measures, max_rows or all_rows, dialect, known)
    values: list[Expression] = []
    for slot in slots.items:
        if slot.expression not in values:
            values.append(slot.expression)
    unit = ["u"] if layer.unit else []
    keys = [f"{render(key.expression, layer.columns, dialect)} AS e{i}" for i, key in enumerate(job.keys)]
    below = [*unit, *keys]
    below += [f"{render(value, layer.columns, dialect)} AS x{i}" for i, value in enumerate(values)]
    above = [*unit, *(f"{dialect.canonical(f'e{i}', type_)} AS k{i}" for i, type_ in enumerate(types))]
    above += [f"x{i}" for i in range(len(values))]
    fence = dialect.fence
    inner = f"SELECT {_list(below)} FROM ({layer.sql}{fence}) AS r{fence}"
    base = f"SELECT {_list(above)} FROM ({inner}) AS r{fence}"
    gridded = tuple(
        f"{slot.sql(f'r.x{values.index(slot.expression)}', dialect)} AS v{i}"
        for i, slot in enumerate(slots.items)
    )
    listed, table = None, None
    if isinstance(job.public_groups, PublicValues):
        listed = listed_groups(job.public_groups, types)
    elif isinstance(job.public_groups, PublicTable):
        table = table_groups(job.public_groups, tables, types, dialect)
    elif isinstance(job.public_groups, PublicRelation):
        table = relation_groups(job.public_groups, tables, types, dialect)
    limits = max_groups, max_rows, all_rows
    groups = table if listed is None else listed.to_pydict()
    identity = repr((layer.sql, layer.unit, keys, types, limits, groups))
    return CompiledJob(dialect, base, gridded, types, slots, layer.unit, *limits, listed, table, identity)


def _check_leaves(measure: Measure, max_rows: int | None) -> None:
    """Refuse counts by bin whose declared sensitivity is less than the rows that a unit may have."""
    if isinstance(measure.value, BinCounts) and (max_rows is None or measure.upper < max_rows):
        refuse("upper", "be at least the rows that a unit may have in a group", measure.upper, "raise it")


def _list(items: Sequence[str]) -> str:
    return ", ".join(items) if items else "1 AS nothing"


def _limits(job: AggregationJob, *, unit: bool) -> tuple[int | None, int | None, int | None]:
    """Return the limits that apply to groups, rows of a group and all rows: a row that is a unit is one."""
    if job.public_groups is not None and not job.keys:
        refuse("public_groups", "come with keys", job.public_groups, "add a GROUP BY")
    if not unit:
        return None, None, None
    max_rows = None if job.max_rows is None else integer("max_rows_per_group", job.max_rows, minimum=1)
    if job.max_rows_contributed is not None:
        all_rows = integer("max_rows_contributed", job.max_rows_contributed, minimum=1)
        if max_rows is not None or job.max_groups is not None:
            refuse("max_rows_contributed", "stand alone", all_rows, "keep it, or the other limits")
        return (None, None, all_rows) if job.keys else (None, all_rows, None)
    if not job.keys:
        return None, max_rows, None
    return integer("max_groups_contributed", job.max_groups, minimum=1), max_rows, None


def as_one_statement(
    prepared: CompiledJob, secret: bytes, bounding: Bounding | None = None
) -> tuple[str, ...]:
    """Return the statements that compute a job, each from the tables alone.

    Parameters
    ----------
    prepared : CompiledJob
    secret : bytes
        Keys the choice of rows and groups, and stands in the texts.
    bounding : Bounding, optional
        The steps, if they are others than the job's own.

    Returns
    -------
    tuple of str
        First that of the sums: ``k0, ...`` and ``m0, ...``, sorted by key. Then one for each measure of
        counts by bin, in their order: the groups, ``leaf`` and ``n``.
    """
    bounding = bounding or prepared.bounding(secret)
    steps = [(step.name, step.select) for step in bounding.steps()] if prepared.unit else []
    if prepared.public:
        steps.insert(0, (GROUPS, _groups(prepared)))
    head = ",\n".join(f"{name} AS (\n{select}\n)" for name, select in steps)
    crowded = prepared.unit and bounding.trims_rows
    answers = [
        prepared.answer(bounding, any_crowded=crowded),
        *prepared.leaves(bounding, any_crowded=crowded).values(),
    ]
    return tuple(f"WITH {head}\n{answer}" if head else answer for answer in answers)


def _groups(prepared: CompiledJob) -> str:
    source = f"({prepared.table})"
    if prepared.listed is not None:
        rows = [
            ", ".join(
                f"{_literal(prepared, row[key], type_)} AS {key}"
                for key, type_ in zip(prepared.keys, prepared.types, strict=True)
            )
            for row in prepared.listed.to_pylist()
        ]
        empty = ", ".join(
            f"{_literal(prepared, None, type_)} AS {key}"
            for key, type_ in zip(prepared.keys, prepared.types, strict=True)
        )
        union = " UNION ALL ".join(f"SELECT {row}" for row in rows) or f"SELECT {empty} LIMIT 0"
        source = f"({union})"
    return numbered_groups(source, prepared.types, prepared.dialect)


def _literal(prepared: CompiledJob, value: object, type_: ColumnType) -> str:
    dialect = prepared.dialect
    match value:
        case None:
            return dialect.converted("NULL", type_)
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return dialect.integer(value)
        case float():
            return dialect.real(value)
        case str():
            return dialect.text(value)
        case _:
            return dialect.moment(str(value), type_)


def with_bin_counts(answer: pa.Table, leaves: Mapping[int, pa.Table]) -> pa.Table:
    """Put counts by bin instead of their measures.

    Parameters
    ----------
    answer : pyarrow.Table
        One row per group: the keys ``k0, ...``, then ``m0, ...``.
    leaves : mapping of int to pyarrow.Table
        For measures, by number: rows of ``leaf`` and ``n``, with the keys, or with the number ``g`` of a
        public group (from 1, in the order of the answer). In any order.

    Returns
    -------
    pyarrow.Table
        The answer, with a list of structs ``leaf`` and ``n`` for each of those measures, sorted by bin.
    """
    for index, table in leaves.items():
        leaf, many = (np.asarray(table[name].to_numpy(), dtype=np.int64) for name in ("leaf", "n"))
        group, leaf, many = _sorted(_group_indices(answer, table), leaf, many)
        ends = np.searchsorted(group, np.arange(answer.num_rows + 1))
        struct = pa.StructArray.from_arrays([pa.array(leaf), pa.array(many)], fields=list(_LEAF))
        column = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), struct)
        answer = answer.set_column(answer.column_names.index(f"m{index}"), f"m{index}", column)
    return answer


def _sorted(group: _Integers, leaf: _Integers, many: _Integers) -> tuple[_Integers, _Integers, _Integers]:
    """Return counts in the order of group and leaf.

    Where the three fit in 63 bits they are sorted as one number: this takes a fifth of the time of an order.
    """
    if not len(leaf) or min(int(group.min()), int(many.min())) < 0:
        order = np.lexsort((leaf, group))
        return group[order], leaf[order], many[order]
    first = int(leaf.min())
    leaf_bits = (int(leaf.max()) - first).bit_length()
    many_bits = int(many.max()).bit_length()
    if int(group.max()).bit_length() + leaf_bits + many_bits > 63:
        order = np.lexsort((leaf, group))
        return group[order], leaf[order], many[order]
    packed = (group << (leaf_bits + many_bits)) | ((leaf - first) << many_bits) | many
    packed.sort()
    leaves = (packed >> many_bits) & ((1 << leaf_bits) - 1)
    return packed >> (leaf_bits + many_bits), leaves + first, packed & ((1 << many_bits) - 1)


def _group_indices(answer: pa.Table, leaves: pa.Table) -> _Integers:
    """Return the row of the answer that each row of ``leaves`` belongs to; NULL keys are equal."""
    if "g" in leaves.column_names:
        return np.asarray(leaves["g"].to_numpy(), dtype=np.int64) - 1
    codes = np.zeros(answer.num_rows + leaves.num_rows, dtype=np.int64)
    for name in (name for name in answer.column_names if name.startswith("k")):
        both = pa.concat_arrays(
            [column.cast(answer[name].type).combine_chunks() for column in (answer[name], leaves[name])]
        )
        each = both.dictionary_encode(null_encoding="encode").indices.to_numpy()
        _, codes = np.unique(codes * (int(each.max(initial=0)) + 1) + each, return_inverse=True)
    mine, theirs = codes[: answer.num_rows], codes[answer.num_rows :]
    order = np.argsort(mine, kind="stable")
    return np.asarray(order[np.searchsorted(mine[order], theirs)], dtype=np.int64)
