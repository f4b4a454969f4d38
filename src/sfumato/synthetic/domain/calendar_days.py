"""Dates and times as days, each row by itself: no value is an error, and none changes another's day."""

from __future__ import annotations

import datetime as dt
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["calendar_days"]

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH: Final = dt.date(1970, 1, 1)
_FIRST: Final = (dt.date.min - _EPOCH).days
_LAST: Final = (dt.date.max - _EPOCH).days


def calendar_days(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return each row's day in UTC, counted from 1970-01-01.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
        Of dates or timestamps; private.

    Returns
    -------
    float64 array of shape (n,)
        NaN for NULL, and for what is outside of the years 1 to 9999.

    Notes
    -----
    Arrow's own ``floor_temporal`` raises where a time zone skips or repeats midnight, with that row's time in
    the message, and its casts to dates wrap around. NULL is filled before the column becomes an array: one
    with NULL would be of floats, which round the times of all other rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> calendar_days(pa.chunked_array([[dt.datetime(1970, 1, 2, 23, 59), None]])).tolist()
    [1.0, nan]
    """
    kind = column.type
    whole = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
    counts = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy()
    if not pa.types.is_date32(kind):
        counts = counts // (86_400 * _PER_SECOND["ms" if pa.types.is_date64(kind) else kind.unit])
    absent = column.is_null().to_numpy() | (counts < _FIRST) | (counts > _LAST)
    return np.where(absent, np.nan, counts)
