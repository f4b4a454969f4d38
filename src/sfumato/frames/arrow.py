"""Frames of other libraries as Arrow tables; types follow from the frame's types, never from its values.

A column of a type that may hold anything, such as pandas' ``object``, is refused by name: what it would be in
Arrow, and whether it can be there at all, one odd value of one row could decide.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from sfumato.errors import SourceError

__all__ = ["as_arrow"]

_BEYOND_ARROW: Final = frozenset({"Int128", "UInt128"})
_ELSEWHERE: Final = frozenset({"pyspark", "builtins"})
_THROUGH_NARWHALS: Final = frozenset({"cudf", "dask", "modin"})


def as_arrow(name: str, source: Any) -> pa.Table:
    """Return a frame as an Arrow table, with the same columns in the same order.

    No library is imported for it but narwhals: a frame of a library that was never imported cannot be there.

    Parameters
    ----------
    name : str
        What error messages call the table.
    source : pyarrow Table or RecordBatch, frame of pandas or Polars, or another frame
        Of any library that narwhals knows, or that gives an Arrow stream. A lazy frame is computed.

    Returns
    -------
    pyarrow.Table
        It may share memory with the frame.

    Raises
    ------
    SourceError
        If it is no frame, or has columns that Arrow cannot hold.

    Examples
    --------
    >>> import pandas as pd
    >>> as_arrow("people", pd.DataFrame({"person": [1, 2], "age": [30, 40]})).to_pydict()
    {'person': [1, 2], 'age': [30, 40]}
    """
    try:
        found = _converted(name, source)
    except SourceError:
        raise
    except Exception:  # whatever a library trips over, the frame is at fault
        raise SourceError(
            f"table {name!r} must be a frame that holds one type in each column; convert mixed columns, such "
            "as to str, and a single column to a frame"
        ) from None
    if found is None:
        raise SourceError(
            "a source must be a path, a list of paths, a pyarrow Table or Dataset, a frame of pandas or "
            "Polars, another frame that narwhals knows, a Delta or Iceberg table, or a mapping of names to "
            f"these, got a value of type {type(source).__name__}; "
            "convert it, or pip install 'sfumato[narwhals]'"
        )
    return found


def _converted(name: str, source: Any) -> pa.Table | None:
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return _sound(name, source)
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(source, pandas.DataFrame):
        return _from_pandas(name, source, pandas)
    if polars is not None and isinstance(source, polars.LazyFrame):
        source = source.collect()
    if polars is not None and isinstance(source, polars.DataFrame):
        untyped = {column: type_ for column, type_ in source.schema.items() if type_ == polars.Object}
        remedy = "convert them, texts by pl.col(...).map_elements(str, return_dtype=pl.String)"
        _refuse_untyped(name, untyped, remedy)
        _refuse_beyond_arrow(name, source)
        return source.to_arrow()
    return _other(name, source)


def _other(name: str, source: Any) -> pa.Table | None:
    """Return a frame of another library: one that narwhals knows, or that gives an Arrow stream."""
    library = type(source).__module__.partition(".")[0]
    if library in _ELSEWHERE:
        return None
    native = _native(source)
    if native is not None:
        return _converted(name, native)
    if library not in _THROUGH_NARWHALS and callable(getattr(source, "__arrow_c_stream__", None)):
        return _sound(name, pa.table(source).replace_schema_metadata(None))
    return None


def _native(source: Any) -> Any:
    """Return a frame that narwhals knows as one of pandas, Polars or Arrow; a lazy frame is computed."""
    try:
        import narwhals.stable.v2 as narwhals  # noqa: PLC0415 - an optional library

        known = narwhals.from_native(source, pass_through=True)
    except ImportError:  # also one that does not know this version of the frame's library
        return None
    if isinstance(known, narwhals.LazyFrame):
        known = known.collect()
    if not isinstance(known, narwhals.DataFrame):
        return None
    if known.implementation.is_pandas_like():
        return known.to_pandas()
    return known.to_polars() if known.implementation.is_polars() else known.to_arrow()


def _from_pandas(name: str, frame: Any, pandas: Any) -> pa.Table:
    if not all(isinstance(column, str) for column in frame.columns):
        raise SourceError(f"the columns of table {name!r} must have strings as names; rename them")
    untyped = {column: values.dtype for column, values in frame.items() if not _is_typed(values, pandas)}
    conversions = ", ".join(f"{column!r}: 'string'" for column in untyped)
    _refuse_untyped(name, untyped, f"convert them, texts by frame.astype({{{conversions}}})")
    try:
        made = pa.Table.from_pandas(frame, preserve_index=False)
    except UnicodeEncodeError:  # a str of Python need not be a text: half of a surrogate pair is none
        texts = {column: _texts(values) for column, values in frame.items() if _is_text(values.dtype, pandas)}
        others = frame.drop(columns=list(texts))
        rest = pa.Table.from_pandas(others, preserve_index=False)
        made = pa.table({column: texts[column] if column in texts else rest[column] for column in frame})
    return made.replace_schema_metadata(None)


def _refuse_beyond_arrow(name: str, frame: Any) -> None:
    for column, type_ in frame.schema.items():
        if str(type_) in _BEYOND_ARROW:
            raise SourceError(
                f"the column {column!r} of table {name!r} must have a type that Arrow knows, got {type_}; "
                "cast it, such as to pl.String for its digits, or drop it"
            )


def _refuse_untyped(name: str, columns: Mapping[str, object], remedy: str) -> None:
    if columns:
        got = ", ".join(f"{type_} for {column!r}" for column, type_ in columns.items())
        raise SourceError(
            f"the columns of table {name!r} must have types that say what they hold, got {got}; {remedy}"
        )


def _is_typed(values: Any, pandas: Any) -> bool:
    """Return whether the type of a pandas column says what Arrow will hold; its values are not looked at."""
    type_ = values.dtype
    if isinstance(type_, pandas.CategoricalDtype):
        return _is_typed(type_.categories, pandas)
    if isinstance(type_, np.dtype):
        return not type_.hasobject
    return isinstance(type_, pandas.DatetimeTZDtype) or hasattr(values.array, "__arrow_array__")


def _is_text(type_: Any, pandas: Any) -> bool:
    while isinstance(type_, pandas.CategoricalDtype):
        type_ = type_.categories.dtype
    return isinstance(type_, pandas.StringDtype)


def _texts(values: Any) -> pa.Array:
    """Return a column of strings, NULL where one cannot be written in UTF-8."""
    return pa.array(map(_text, values.tolist()), pa.large_string())


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _sound(name: str, frame: pa.Table) -> pa.Table:
    """Return the frame if its buffers are what its types say: text that is no UTF-8 would fail in a query."""
    try:
        frame.validate(full=True)
    except pa.ArrowException:
        pass
    else:
        return frame
    raise SourceError(f"table {name!r} must hold valid Arrow data, such as text in UTF-8; make it again")
