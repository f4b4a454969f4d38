"""Columns of reports: the same counts from any stream, any type, any number of processes."""

from __future__ import annotations

import itertools
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato import local
from sfumato.errors import ParameterError, SchemaError, SourceError
from sfumato.local import Domain, OptimalLocalHashing, PrivUnit, RandomizedResponse, Rappor, SquareWave
from sfumato.local.aggregation import arrow
from sfumato.local.aggregation.arrow import add_column
from tests.cases import cases
from tests.run_time import run_time

if run_time(__name__):
    import polars as pl
    import pyarrow.dataset as ds


ORACLE = RandomizedResponse(epsilon=1.0, domain=Domain(range(1000)))
ODD: list[bytes | None] = [None, b"", b"x", b"long enough", b"\xff\xff"]
TYPES = [pa.binary(), pa.large_binary()]


def reports(protocol: Any = ORACLE, n: int = 5000, values: Any = None) -> list[bytes]:
    held = np.arange(n) % 1000 if values is None else values
    return list(protocol.randomize_batch(held, 1))


def single(rows: list[bytes | None], protocol: Any = ORACLE) -> bytes:
    """The state after all rows, one by one."""
    made = protocol.aggregator()
    for row in rows:
        made.add(row)
    state: bytes = made.to_bytes()
    return state


ROWS: list[bytes | None] = [*ODD, *reports(), *ODD]


class Dying(RandomizedResponse):  # type: ignore[misc]
    """A protocol whose server ends the process that counts."""

    __slots__ = ()

    def tally(self, records: Any) -> Any:
        os._exit(9)


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_any_binary_type_counts_as_one_by_one(kind: pa.DataType) -> None:
    column = pa.array(ROWS, kind)
    for given in (column, pa.chunked_array([column[:7], column[7:7], column[7:]])):
        made = ORACLE.aggregator()
        assert add_column(made, given) == 5000
        assert made.to_bytes() == single(ROWS)
    sliced = ORACLE.aggregator()
    add_column(sliced, column[3:4000])
    assert sliced.to_bytes() == single(ROWS[3:4000])


def test_values_of_one_length() -> None:
    whole: list[bytes | None] = [None, *reports(), None]
    column = pa.array(whole, pa.binary(ORACLE.device.width))
    for start, stop in ((0, None), (0, 3), (1, 70), (9, 9), (5001, None)):
        made = ORACLE.aggregator()
        add_column(made, column[start:stop])
        assert made.to_bytes() == single(whole[start:stop])
    made = ORACLE.aggregator()
    assert add_column(made, pa.array([b"abc", None], pa.binary(3))) == 0
    assert made.refused["width"] == 2


def test_more_rows_than_a_piece() -> None:
    batch = ORACLE.randomize_batch(np.arange(140_000) % 1000, 1)
    made, whole = ORACLE.aggregator(), ORACLE.aggregator()
    assert add_column(made, pa.array([*batch, None])) == whole.add_batch(batch.records)
    whole.add(b"")
    assert made.to_bytes() == whole.to_bytes()


def test_any_stream_of_columns(tmp_path: Path) -> None:
    table = pa.table({"at": range(len(ROWS)), "report": pa.array(ROWS)})
    batches = table.to_batches(max_chunksize=777)
    pq.write_table(table, tmp_path / "one.parquet")
    sources: list[Any] = [
        table,
        batches,
        iter(batches),
        [*batches[0:1], table.slice(777)],
        pa.RecordBatchReader.from_batches(table.schema, batches),
        ds.dataset(tmp_path),
        pl.from_arrow(table),
    ]
    for source in sources:
        assert local.aggregate_arrow(ORACLE, source).to_bytes() == single(ROWS)
    assert local.aggregate_arrow(ORACLE, batches[0]).to_bytes() == single(ROWS[:777])
    assert local.aggregate_arrow(ORACLE, []).accepted == 0


@pytest.mark.parametrize(
    ("protocol", "values"),
    [
        (OptimalLocalHashing(epsilon=1.0, domain=Domain(range(40))), np.arange(500) % 40),
        (Rappor(bits=32), ["a", "b"] * 250),
        (SquareWave(epsilon=1.0, bounds=(0, 1)), np.linspace(0, 1, 500)),
        (PrivUnit(epsilon=1.0, dimension=3), np.full((500, 3), 0.5)),
    ],
    ids=lambda part: type(part).__name__,
)
def test_any_protocol(protocol: Any, values: Any) -> None:
    rows = reports(protocol, values=values)
    found = local.aggregate_arrow(protocol, pa.table({"r": rows}), "r")
    assert found.to_bytes() == single([*rows], protocol)
    assert found.accepted == 500


def files(folder: Path) -> list[Path]:
    """Two files with row groups of some hundred rows, and one without rows."""
    cuts = (0, 3000, len(ROWS), len(ROWS))
    made = []
    for at, (start, stop) in enumerate(itertools.pairwise(cuts)):
        made.append(folder / f"{at}.parquet")
        table = pa.table({"report": pa.array(ROWS[start:stop], pa.binary()), "other": range(stop - start)})
        pq.write_table(table, made[-1], row_group_size=400)
    return made


def test_files_in_this_process(tmp_path: Path) -> None:
    paths = files(tmp_path)
    assert local.aggregate_parquet(ORACLE, paths, processes=1).to_bytes() == single(ROWS)
    one = local.aggregate_parquet(ORACLE, str(paths[0]), processes=1)
    assert one.to_bytes() == single(ROWS[:3000])
    assert local.aggregate_parquet(ORACLE, [], processes=1).accepted == 0


@pytest.mark.parametrize("processes", [2, 3])
def test_files_by_several_processes(tmp_path: Path, processes: int) -> None:
    paths = files(tmp_path)
    assert local.aggregate_parquet(ORACLE, paths, processes=processes).to_bytes() == single(ROWS)


def test_no_more_processes_than_asked_for_are_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, workers: int, context: object) -> None:
            started.append(workers)
            super().__init__(workers)

    monkeypatch.setattr(arrow, "ProcessPoolExecutor", Pool)
    assert local.aggregate_parquet(ORACLE, files(tmp_path), processes=2).to_bytes() == single(ROWS)
    assert started == [2]


def test_files_by_a_process_that_ends(tmp_path: Path) -> None:
    paths = files(tmp_path)
    with pytest.raises(SourceError, match="processes must last"):
        local.aggregate_parquet(Dying(epsilon=1.0, domain=ORACLE.domain), paths, processes=2)


def test_a_cut_stream_is_refused(tmp_path: Path) -> None:
    table, whole = pa.table({"report": ROWS}), pa.BufferOutputStream()
    with pa.ipc.new_stream(whole, table.schema) as stream:
        stream.write_table(table, max_chunksize=500)
    data = whole.getvalue().to_pybytes()
    assert local.aggregate_arrow(ORACLE, pa.ipc.open_stream(data)).to_bytes() == single(ROWS)
    for size in (len(data) // 2, len(data) - 200):
        with pytest.raises(SourceError, match="source must be a stream that can be read"):
            local.aggregate_arrow(ORACLE, pa.ipc.open_stream(data[:size]))
    pq.write_table(table, tmp_path / "a.parquet")
    held = ds.dataset(tmp_path)
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(SourceError, match="source must be a stream that can be read"):
        local.aggregate_arrow(ORACLE, held)


def test_sources_that_are_none_are_refused(tmp_path: Path) -> None:
    table = pa.table({"report": ROWS, "number": range(len(ROWS))})
    for source in (table, table.to_batches(), ds.dataset(table), pl.from_arrow(table)):
        with pytest.raises(SchemaError, match="column must be one of the source's, got 'reports'"):
            local.aggregate_arrow(ORACLE, source, "reports")
    with pytest.raises(SchemaError, match=r"column must be of a binary type.*int64"):
        local.aggregate_arrow(ORACLE, table, "number")
    for odd in ("reports.parquet", b"x", 7, None):
        with pytest.raises(ParameterError, match="source must be an Arrow stream"):
            local.aggregate_arrow(ORACLE, odd)
    with pytest.raises(ParameterError, match="source must give record batches"):
        local.aggregate_arrow(ORACLE, [b"ab"])
    paths = files(tmp_path)
    with pytest.raises(SchemaError, match="column must be one of the source's"):
        local.aggregate_parquet(ORACLE, paths, "reports")
    with pytest.raises(SchemaError, match="column must be of a binary type"):
        local.aggregate_parquet(ORACLE, paths, "other", processes=1)
    with pytest.raises(ParameterError, match="processes must be"):
        local.aggregate_parquet(ORACLE, paths, processes=0)
    wrong: Any
    for wrong in (7, None, b"reports.parquet", [paths[0], 7]):
        with pytest.raises(ParameterError, match="files must be a path or paths"):
            local.aggregate_parquet(ORACLE, wrong)
    cut = tmp_path / "cut.parquet"
    cut.write_bytes(paths[0].read_bytes()[:-20])
    damaged = bytearray(paths[0].read_bytes())
    damaged[4:400] = bytes(396)
    (tmp_path / "damaged.parquet").write_bytes(bytes(damaged))
    for path in (cut, tmp_path / "none.parquet", tmp_path / "damaged.parquet"):
        with pytest.raises(SourceError, match="files must be Parquet"):
            local.aggregate_parquet(ORACLE, path, processes=1)


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array(ROWS)] * 2, names=["report", "report"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    for source in (twice, twice.to_batches(), ds.dataset(twice)):
        with pytest.raises(SchemaError, match="column must be in the source once, got 'report' 2 times"):
            local.aggregate_arrow(ORACLE, source)
    with pytest.raises(SchemaError, match="column must be in the source once"):
        local.aggregate_parquet(ORACLE, tmp_path / "twice.parquet")


@cases("count", [local.aggregate_arrow, local.aggregate_parquet])
@cases("protocol", ["x", None, RandomizedResponse])
def test_reports_are_counted_by_a_protocol(count: Any, protocol: Any) -> None:
    with pytest.raises(ParameterError, match=r"protocol must be a ReportProtocol, got .*; pass an oracle"):
        count(protocol, [])


def test_reports_of_strings_are_counted_from_columns_too() -> None:
    protocol: Any = local.PrefixExtending(epsilon=4.0, strings=local.Strings(length=4, alphabet="ab"))
    sent = protocol.randomize_batch(["ab", "ba", "aa"], 1)
    assert local.aggregate_arrow(protocol, pa.table({"report": list(sent)})).accepted == 3


def test_a_column_alone_is_no_source() -> None:
    column = pa.chunked_array([[ORACLE.randomize(1, 1)]])
    for source in (column, column.chunk(0)):
        with pytest.raises(ParameterError, match=r"source must be an Arrow stream.*; put the column"):
            local.aggregate_arrow(ORACLE, source)
