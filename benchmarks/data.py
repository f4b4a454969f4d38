"""The table of the query benchmark: 5 million rows, 480 thousand skewed units, 1000 skewed keys."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["visits"]

_ROWS, _UNITS, _KEYS = 5_000_000, 500_000, 1_000
_SEED = 20_261_121


def _zipf(rng: np.random.Generator, count: int, exponent: float, size: int) -> npt.NDArray[np.int64]:
    weights = np.cumsum(np.arange(1, count + 1, dtype=np.float64) ** -exponent)
    drawn: npt.NDArray[np.int64] = np.searchsorted(weights, rng.random(size) * weights[-1]).astype(np.int64)
    return drawn


def visits(rows: int = _ROWS, *, integer_keys: bool = False) -> Path:
    """Return the Parquet file of the table, written on first use to a cache outside of the tree.

    Columns: ``person`` (int64, Zipf 0.8 over 500,000, of whom about 480,000 occur), ``place`` (string, Zipf
    1 over 1000; the same places by number with ``integer_keys``) and ``spent`` (float, skewed, mean 40).
    """
    base = Path(os.environ.get("SFUMATO_BENCHMARK_DATA", Path(tempfile.gettempdir()) / "sfumato-benchmarks"))
    path = base / f"visits-{rows}{'-integers' if integer_keys else ''}-{_SEED}.parquet"
    if path.exists():
        return path
    base.mkdir(parents=True, exist_ok=True)
    # On Linux a new process counts what its parent once held as its own peak: so this one must stay small.
    writer = multiprocessing.get_context("spawn").Process(target=_write, args=(path, rows, integer_keys))
    writer.start()
    writer.join()
    if writer.exitcode:
        raise RuntimeError("the table could not be written; the message is above")
    return path


def _write(path: Path, rows: int, integer_keys: bool) -> None:
    rng = np.random.default_rng(_SEED)
    who = rng.permutation(_UNITS)
    names = pa.array([f"place_{i:04d}" for i in range(_KEYS)])
    partial = path.with_suffix(f".{os.getpid()}")
    writer = None
    for start in range(0, rows, _ROWS):
        count = min(_ROWS, rows - start)
        person = who[_zipf(rng, _UNITS, 0.8, count)]
        place = pa.array(_zipf(rng, _KEYS, 1.0, count))
        if not integer_keys:
            place = pa.DictionaryArray.from_arrays(place, names).cast(pa.string())
        table = pa.table({"person": person, "place": place, "spent": rng.gamma(2.0, 20.0, count)})
        writer = writer or pq.ParquetWriter(partial, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    partial.replace(path)
