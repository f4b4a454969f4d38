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
ranks at a cut all go. Every contribution is clamped; sums over units are exact in 128 bits.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
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
from sfumato.queries.plan.measure import AtLeast, One, RowCount, RowMean, RowSum, UnitValue, ValueCount

__all__ = ["KernelParts", "KernelSettings", "bound_rows"]

_BATCH: Final = 1 << 17  # rows
_NONE: Final = -1
_ROWS_SHARE: Final = 4  # of the memory limit
_BITS: Final = 8
_UNITS: Final = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}

_Spec: TypeAlias = tuple[int, ...]


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

    def _key(
        self, index: int, type_: pa.DataType, groups: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> pa.Array:
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


def bound_rows(
    connection: duckdb.DuckDBPyConnection,
    prepared: CompiledJob,
    secret: bytes,
    settings: KernelSettings,
    *,
    retain: int,
) -> tuple[pa.Table, KernelParts | None] | None:
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
    tuple or None
        The sums per group, and the parts if they are to be retained and not too large. None where the kernel
        cannot do the job, which is then for SQL: measures of single rows, units or keys of unusual types,
        sums beyond 64 bits, too little memory.
    """
    slots = prepared.slots
    if not prepared.unit or slots.rowwise:
        return None
    reader = connection.sql(prepared.rows(None)).to_arrow_reader(_BATCH)
    fields = list(reader.schema)[: 1 + len(prepared.grouping)]
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
            keep = rows * 8 * len(slots.part_names) <= retain
            _bound(kernel, settings.threads, keep=keep)
        except (OverflowError, MemoryError):
            return None
    _bounding.forget_rows(kernel)
    parts = KernelParts(kernel, [(field.name, field.type) for field in fields[1:]])
    return parts.added_up(slots), parts if keep else None


def _kernel_secret(secret: bytes) -> bytes:
    """Return the words that key the ranks of groups and of rows, as in SQL, and the tables."""
    purposes = [f"{purpose} {number}" for purpose in ("groups", "rows", "tables") for number in (1, 2)]
    return b"".join(secret_word(secret, purpose).to_bytes(8, "little") for purpose in purposes)


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
    return tuple(
        (*_value(measure.value, slots, index, at), measure.lower, measure.upper, measure.center)
        for index, measure in enumerate(slots.measures)
    )


def _value(value: UnitValue, slots: MeasureColumns, index: int, at: dict[str, int]) -> _Spec:
    """Return kind, sum, count, whether a minimum is asked for, offset and minimum."""
    match value:
        case AtLeast():
            kind, total, count, _, offset, _ = _value(value.value, slots, index, at)
            return kind, total, count, 1, offset, value.minimum
        case One():
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
