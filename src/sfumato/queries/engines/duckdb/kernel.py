"""The bounding kernel: bounds rows in C while DuckDB only scans them, and adds up what stays.

The database reads, filters and computes the columns of a job. The kernel numbers their groups, divides the
rows by a keyed hash of the unit into partitions (in memory, or in a file where they do not fit), and takes
these one by one: a table of a partition's units and groups, the ranks of the groups of units in too many and
of the rows where too many are, and exact sums in 64 bits. The groups and rows that stay, and so the answer,
are those of the SQL of :mod:`~sfumato.queries.engines.compilation.bounding` under the same secret.

Notes
-----
Guarantee: that of :mod:`~sfumato.queries.engines.compilation.bounding`: what a unit keeps is a function of
its own rows and of the secret, for groups are ranked by SipHash-2-4 of their keys' values (never of the
numbers that the kernel gives them, which depend on other units), rows by that of their values, and equal
ranks at a cut all go. Every contribution is clamped; sums over units are exact in 128 bits. Counts by bin
are of the rows that stay; of distinct values a unit brings at most so many to a group, chosen by rank, too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from sfumato.queries.engines.compilation.bounding import secret_word
from sfumato.queries.engines.compilation.job import CompiledJob
from sfumato.queries.engines.compilation.measure_columns import MeasureColumns
from sfumato.queries.engines.dialects.base import REACH
from sfumato.queries.engines.duckdb import _bounding
from sfumato.queries.engines.duckdb.ranks import is_text, kernel_column
from sfumato.queries.plan.measure import (
    AtLeast,
    BinCounts,
    DistinctCount,
    One,
    RowCount,
    RowMean,
    RowSum,
    UnitValue,
    ValueCount,
)

__all__ = ["KernelAnswer", "KernelParts", "KernelSettings", "bound_rows"]

_BATCH: Final = 1 << 17  # rows
_NONE: Final = -1
_ROWS_SHARE: Final = 4  # of the memory limit
_COUNTED_SHARE: Final = 8  # of the memory limit, for what is counted row by row
_BITS: Final = 8
_GROUP: Final = "kernel_group"
_UNITS: Final = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}

_MOST_KEYS: Final = 62
_MOST_VALUES: Final = 64
"""Grouping columns and columns of values of a row that the C module holds, its constants of these names."""

_Spec: TypeAlias = tuple[int, ...]
_Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class KernelSettings:
    """What the kernel may use.

    Parameters
    ----------
    memory : int
        The memory limit of the database, in bytes; the kernel's is a part of it.
    threads : int
    spill : str
        The folder for rows that do not fit.
    """

    memory: int
    threads: int
    spill: str

    @classmethod
    def of(cls, connection: duckdb.DuckDBPyConnection, spill: str) -> KernelSettings:
        """Return what a database may use.

        Examples
        --------
        >>> with duckdb.connect(config={"memory_limit": "1GiB", "threads": 2}) as connection:
        ...     KernelSettings.of(connection, "")
        KernelSettings(memory=1073741824, threads=2, spill='')
        """
        read = "SELECT current_setting('memory_limit'), current_setting('threads')"
        ((memory, threads),) = connection.execute(read).fetchall()
        number, unit = str(memory).split()
        return cls(int(float(number) * _UNITS[unit]), int(threads), spill)


class KernelParts:
    """The parts of one choice of rows, groups and limits that count, from which measures are added up.

    Parameters
    ----------
    kernel : object
        Of the C module.
    keys : sequence of (str, pyarrow.DataType)
        The grouping columns.
    """

    __slots__ = ("_kernel", "_keys")

    def __init__(self, kernel: object, keys: Sequence[tuple[str, pa.DataType]]) -> None:
        self._kernel, self._keys = kernel, tuple(keys)

    def totals(self, slots: MeasureColumns) -> pa.Table:
        """Return the sums per group of other measures over the same parts, in no order."""
        _bounding.measure(self._kernel, _specs(slots))
        _bounding.again(self._kernel)
        return self.added_up(slots)

    def added_up(self, slots: MeasureColumns) -> pa.Table:
        """Return the sums per group of the measures that were added up last."""
        found, sums = _bounding.totals(self._kernel, REACH)
        groups = np.frombuffer(found, dtype=np.int64)
        many = len(slots.measures)
        values = np.frombuffer(sums, dtype=np.int64).reshape(many, len(groups))
        columns = {name: self._key(index, type_, groups) for index, (name, type_) in enumerate(self._keys)}
        columns |= {f"m{index}": pa.array(values[index]) for index in range(many)}
        if not self._keys and not len(groups):  # no rows at all: sums of nothing, as without a GROUP BY
            return pa.table({name: pa.array([0], pa.int64()) for name in columns})
        return pa.table(columns)

    def with_row_counts(self, totals: pa.Table, slots: MeasureColumns) -> KernelAnswer:
        """Return the sums per group with what was counted row by row, which is then forgotten."""
        groups = np.frombuffer(_bounding.totals(self._kernel, REACH)[0], dtype=np.int64)
        bins: dict[int, pa.Table] = {}
        for number, index in enumerate((*slots.binned, *slots.distinct)):
            owners, values, counts = (
                np.frombuffer(found, dtype=np.int64) for found in _bounding.counted(self._kernel, number)
            )
            if index in slots.binned:
                leaves = values - slots.measures[index].value.columns[0].lower
                bins[index] = pa.table({"g": self._numbers(owners), "leaf": leaves, "n": counts})
            elif len(groups):
                many = np.bincount(owners, minlength=int(groups.max()) + 1)[groups]
                totals = totals.set_column(
                    totals.column_names.index(f"m{index}"), f"m{index}", pa.array(many)
                )
        if not self._public:
            totals = totals.append_column(
                _GROUP, pa.array(groups if len(groups) else [0] * len(totals), pa.int64())
            )
        return KernelAnswer(totals, bins)

    def _numbers(self, groups: _Numbers) -> pa.Array:
        """Return the numbers of public groups, or the kernel's own."""
        return self._key(0, self._keys[0][1], groups) if self._public else pa.array(groups)

    @property
    def _public(self) -> bool:
        return [name for name, _ in self._keys] == ["g"]

    def _key(self, index: int, type_: pa.DataType, groups: _Numbers) -> pa.Array:
        words, absent, *text = _bounding.key(self._kernel, index)
        numbers = np.frombuffer(words, dtype=np.int64)[groups]
        null = np.frombuffer(absent, dtype=np.bool_)[groups]
        if text:
            ends, data = np.frombuffer(text[0], dtype=np.int64), text[1]
            offsets = pa.py_buffer(np.concatenate([np.zeros(1, dtype=np.int64), ends]))
            texts = pa.LargeStringArray.from_buffers(len(ends), offsets, pa.py_buffer(data))
            return texts.take(pa.array(numbers, mask=null)).cast(type_)
        if pt.is_float64(type_):
            return pa.array(numbers.view(np.float64), mask=null)
        integers = pa.array(numbers, mask=null)
        if type_.bit_width == 64:
            return integers.view(type_)
        return integers.cast(pa.int32()).cast(type_) if pt.is_temporal(type_) else integers.cast(type_)


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """What the kernel made of a job.

    Parameters
    ----------
    totals : pyarrow.Table
        The sums per group, in no order.
    bins : mapping of int to pyarrow.Table
        The counts by bin of each measure that is such: the number ``g`` of the group, ``leaf`` and ``n``.
    parts : KernelParts or None
        What later jobs may read.
    """

    totals: pa.Table
    bins: Mapping[int, pa.Table] = field(default_factory=dict)
    parts: KernelParts | None = None

    def leaves(self, arranged: pa.Table) -> dict[int, pa.Table]:
        """Return the counts by bin with groups numbered as the rows of the answer are, from 1."""
        if _GROUP not in arranged.column_names:
            return dict(self.bins)
        groups = arranged[_GROUP].to_numpy()
        rows = np.zeros(int(groups.max(initial=0)) + 1, dtype=np.int64)
        rows[groups] = np.arange(1, len(groups) + 1)
        return {
            index: table.set_column(0, "g", pa.array(rows[table["g"].to_numpy()]))
            for index, table in self.bins.items()
        }


def bound_rows(
    connection: duckdb.DuckDBPyConnection,
    prepared: CompiledJob,
    secret: bytes,
    settings: KernelSettings,
    *,
    retain: int,
) -> KernelAnswer | None:
    """Bound the rows of a job and add up its measures.

    Parameters
    ----------
    connection : duckdb.DuckDBPyConnection
    prepared : CompiledJob
        Whose public groups are in the database already.
    secret : bytes
    settings : KernelSettings
    retain : int
        How many bytes the parts may take that are retained for later jobs.

    Returns
    -------
    KernelAnswer or None
        With the parts if they are to be retained and not too large. None where the kernel cannot do the job,
        which is then for SQL: rows that are units, units or keys of unusual types, too many columns,
        sums beyond 64 bits, too little memory.
    """
    slots = prepared.slots
    if not prepared.unit or len(slots.items) > _MOST_VALUES or len(prepared.grouping) > _MOST_KEYS:
        return None
    if any(slots.measures[index].upper < 1 for index in slots.distinct):
        return None
    reader = connection.sql(prepared.rows(None)).to_arrow_reader(_BATCH)
    fields = list(reader.schema)
    texts = [is_text(field.type) for field in fields]
    if None in texts:
        reader.close()
        return None
    with _file(settings.spill) as file:
        budget = settings.memory // _ROWS_SHARE
        kernel = _bounding.kernel(
            _kernel_secret(secret), tuple(map(bool, texts)), len(slots.items), _BITS, budget, file
        )
        try:
            rows = _read(kernel, reader)
            _seal(kernel, prepared)
            _count_rows(kernel, slots, secret, settings)
            keep = rows * 8 * len(slots.part_names) <= retain
            _bound(kernel, settings.threads, keep=keep)
        except (OverflowError, MemoryError):
            return None
    _bounding.forget_rows(kernel)
    keys = fields[1 : 1 + len(prepared.grouping)]
    parts = KernelParts(kernel, [(key.name, key.type) for key in keys])
    answer = KernelAnswer(parts.added_up(slots))
    if slots.rowwise:
        answer = parts.with_row_counts(answer.totals, slots)
    return replace(answer, parts=parts) if keep else answer


def _kernel_secret(secret: bytes) -> bytes:
    """Return the words that key the ranks of groups and of rows, as in SQL, and the tables."""
    return b"".join(_key_of(secret, purpose) for purpose in ("groups", "rows", "tables"))


def _key_of(secret: bytes, purpose: str) -> bytes:
    return b"".join(secret_word(secret, f"{purpose} {number}").to_bytes(8, "little") for number in (1, 2))


@contextmanager
def _file(folder: str) -> Iterator[int]:
    """Open a file that has no name and goes with its descriptor."""
    with tempfile.TemporaryFile(dir=folder) as file:
        yield file.fileno()


def _read(kernel: object, reader: pa.RecordBatchReader) -> int:
    rows = 0
    with reader:  # a result that is not read to its end bars the connection
        for batch in reader:
            columns = tuple(kernel_column(column) for column in batch.columns)
            _bounding.add(kernel, batch.num_rows, columns)
            rows += batch.num_rows
    return rows


def _seal(kernel: object, prepared: CompiledJob) -> None:
    slots = prepared.slots
    chooses = prepared.all_rows is not None or (prepared.max_rows is not None and bool(slots.items))
    groups, rows, every = (
        _NONE if limit is None else limit
        for limit in (prepared.max_groups, prepared.max_rows, prepared.all_rows)
    )
    products = tuple(number for pair in slots.products for column in pair for number in column)
    _bounding.seal(kernel, (groups, rows, every, chooses), slots.counts, slots.sums, products)
    _bounding.measure(kernel, _specs(slots))


def _count_rows(kernel: object, slots: MeasureColumns, secret: bytes, settings: KernelSettings) -> None:
    """Ask for what is counted row by row: first counts by bin, then distinct values."""
    counts = [(_row_column(slots, index), 0, bytes(16)) for index in slots.binned]
    counts += [
        (_row_column(slots, index), slots.measures[index].upper, _key_of(secret, f"values {index}"))
        for index in slots.distinct
    ]
    if counts:
        tables = len(counts) * (settings.threads + 1)
        _bounding.count_rows(kernel, tuple(counts), settings.memory // _COUNTED_SHARE // tables)


def _row_column(slots: MeasureColumns, index: int) -> int:
    return slots.names.index(slots.value(index))


def _bound(kernel: object, threads: int, *, keep: bool) -> None:
    if threads == 1:
        _bounding.bound(kernel, 0, 1, keep)
        return
    with ThreadPoolExecutor(threads) as pool:
        for done in [pool.submit(_bounding.bound, kernel, first, threads, keep) for first in range(threads)]:
            done.result()


def _specs(slots: MeasureColumns) -> tuple[_Spec, ...]:
    """Return each measure as the kernel takes it: where its numbers are in a part, what is done to them."""
    at = {name: index for index, name in enumerate(slots.part_names)}
    by_row = {*slots.binned, *slots.distinct}  # counted elsewhere: nothing is added up for these
    return tuple(
        (
            *_value(measure.value, slots, index, at),
            *((0, 0, 0) if index in by_row else (measure.lower, measure.upper, measure.center)),
        )
        for index, measure in enumerate(slots.measures)
    )


def _value(value: UnitValue, slots: MeasureColumns, index: int, at: dict[str, int]) -> _Spec:
    """Return kind, sum, count, whether a minimum is asked for, offset and minimum."""
    match value:
        case AtLeast():
            kind, total, count, _, offset, _ = _value(value.value, slots, index, at)
            return kind, total, count, 1, offset, value.minimum
        case One() | BinCounts() | DistinctCount():
            return 0, 0, 0, 0, 0, 0
        case RowCount():
            return 1, 0, 0, 0, 0, 0
        case ValueCount():
            return 2, 0, at[slots.count_name(index)], 0, 0, 0
        case RowSum():
            offset = value.offset + (value.factors[0].center if len(value.factors) == 1 else 0)
            return 3, at[slots.sum_name(index)], at[slots.count_name(index)], 0, offset, 0
        case RowMean():
            return 4, at[slots.sum_name(index)], at[slots.count_name(index)], 0, 0, 0
        case _:
            raise TypeError(f"{type(value).__name__} is not for the kernel; SQL must compute it")
