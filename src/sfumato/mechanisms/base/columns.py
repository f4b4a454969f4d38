"""Columns of pandas, Polars and Arrow as numpy arrays, by their types and never by their values.

No library is imported here: a column of a library that was never imported cannot be there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Column", "as_array", "columns_of", "read_column", "records_at"]


class Column(NamedTuple):
    """Records of one type, and which of them are null.

    Parameters
    ----------
    values : array of shape (n,)
        Booleans, whole numbers or floats where the column has such a type, with 0 or NaN for a null; else
        objects, with None for a null.
    nulls : array of bool of shape (n,), or None
        None where no record can be null, but for the NaN of a float.
    """

    values: NDArray[Any]
    nulls: NDArray[np.bool_] | None = None


def read_column(data: Any) -> Column | None:
    """Return a column of another library or a masked array, or None for anything else.

    Notes
    -----
    What type the array has follows from the column's type. So a null among whole numbers turns none of the
    others into a float, as it does in ``to_numpy`` of most libraries.
    """
    if isinstance(data, np.ma.MaskedArray):
        return _filled(data.filled(_nothing(data.dtype.kind)), np.ma.getmaskarray(data))
    pandas, polars, pyarrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(data, pandas.Series | pandas.Index):
        return _from_pandas(data)
    if polars is not None and isinstance(data, polars.Series):
        return _from_polars(data, polars)
    if pyarrow is not None and isinstance(data, pyarrow.Array | pyarrow.ChunkedArray):
        return _from_arrow(data, pyarrow)
    narwhals = _narwhals()
    if narwhals is not None and isinstance(data, narwhals.Series):
        return read_column(data.to_native())
    return None


def as_array(value: Any) -> NDArray[Any]:
    """Return what numpy makes of a value, or a column's values with 0 or NaN for nulls."""
    found = None if isinstance(value, int | float | list | tuple) else read_column(value)
    return np.asarray(value) if found is None else found.values


def columns_of(data: Any) -> Sequence[Any] | None:
    """Return the columns of a frame of pandas, Polars or Arrow, or None for anything else."""
    pandas, polars, pyarrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return [data.iloc[:, at] for at in range(data.shape[1])]
    if polars is not None and isinstance(data, polars.DataFrame):
        columns: Sequence[Any] = data.get_columns()
        return columns
    if pyarrow is not None and isinstance(data, pyarrow.Table | pyarrow.RecordBatch):
        return list(data.columns)
    narwhals = _narwhals()
    if narwhals is not None and isinstance(data, narwhals.DataFrame):
        return columns_of(data.to_native())
    return None


def records_at(data: Any, at: NDArray[np.int64]) -> Any:
    """Return some records of an array, a list, a column or a frame, as the same kind of container."""
    if isinstance(data, list | tuple):
        return [data[index] for index in at.tolist()]
    pandas, pyarrow = sys.modules.get("pandas"), sys.modules.get("pyarrow")
    labelled = pandas is not None and isinstance(data, pandas.Series | pandas.DataFrame)
    if labelled:
        return data.take(at)
    if pyarrow is not None and isinstance(data, pyarrow.Array | pyarrow.ChunkedArray | pyarrow.Table):
        return data.take(pyarrow.array(at))
    return data[at]


def _narwhals() -> Any:
    """Return the module whose classes all versions of narwhals' series and frames derive from."""
    return sys.modules.get("narwhals")


def _nothing(kind: str) -> Any:
    """Return what stands for a null in an array of a kind."""
    return {"f": np.nan, "i": 0, "u": 0, "b": False}.get(kind)


def _filled(values: NDArray[Any], nulls: Any) -> Column:
    """Return a column whose nulls are filled already, or objects whose nulls are not."""
    known = np.asarray(nulls, dtype=np.bool_)
    if values.dtype.kind not in "biuf":
        values = values.astype(object)
        values[known] = None
    return Column(values, known)


def _from_pandas(data: Any) -> Column:
    dtype = data.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return Column(data.to_numpy())
    kind = getattr(dtype, "kind", "O")
    if kind in "biuf":  # masked, sparse, or of Arrow
        as_numpy = np.dtype(getattr(dtype, "numpy_dtype", None) or getattr(dtype, "subtype", np.float64))
        if as_numpy.kind in "biuf":
            known = np.asarray(data.isna(), dtype=np.bool_)
            return _filled(data.to_numpy(dtype=as_numpy, na_value=_nothing(as_numpy.kind)), known)
    return _filled(data.to_numpy(dtype=object, copy=True), data.isna())


def _from_polars(data: Any, polars: Any) -> Column:
    dtype, nulls = data.dtype, data.is_null().to_numpy()
    if dtype == polars.Null or dtype.is_decimal() or str(dtype) in {"Int128", "UInt128"}:
        data = data.cast(polars.Float64)
    elif not (dtype.is_numeric() or dtype == polars.Boolean):
        return _filled(np.fromiter(data.to_list(), dtype=object, count=len(data)), nulls)
    kind = "b" if data.dtype == polars.Boolean else "i" if data.dtype.is_integer() else "f"
    return _filled(data.fill_null(_nothing(kind)).to_numpy(), nulls)


def _from_arrow(data: Any, pyarrow: Any) -> Column:
    types = pyarrow.types
    if isinstance(data, pyarrow.ChunkedArray):
        data = pyarrow.concat_arrays(data.chunks) if data.num_chunks else pyarrow.array([], data.type)
    if isinstance(data, pyarrow.ExtensionArray):
        data = data.storage
    if types.is_dictionary(data.type):
        data = data.dictionary_decode()
    nulls = data.is_null().to_numpy(zero_copy_only=False)
    if types.is_null(data.type) or types.is_decimal(data.type):
        data = data.cast(pyarrow.float64())
    if types.is_integer(data.type) or types.is_boolean(data.type):
        nothing = _nothing("i" if types.is_integer(data.type) else "b")
        return _filled(data.fill_null(nothing).to_numpy(zero_copy_only=False), nulls)
    if types.is_floating(data.type):
        return _filled(data.to_numpy(zero_copy_only=False), nulls)
    return _filled(np.fromiter(data.to_pylist(), dtype=object, count=len(data)), nulls)
