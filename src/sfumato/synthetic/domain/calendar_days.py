"""Dates and times as days, each row by itself: no value is an error, and none changes another's day."""

from __future__ import annotations

import datetime as dt
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sfumato import _check

__all__ = ["calendar_days", "day_number"]

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_MARGIN: Final = 2  # more than any time zone's offset


def day_number(date: dt.date) -> int:
    """Return how many days after 1970-01-01 a date is.

    Parameters
    ----------
    date : datetime.date
    """
    return (date - dt.date(1970, 1, 1)).days


def calendar_days(name: str, column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return the day of each date or time, from 1970-01-01, in the column's own time zone; NaN for NULL.

    A time before year 1 or after year 9999 is some day beyond, as no edge is there.

    Parameters
    ----------
    name : str
        The column's, for messages.
    column : pyarrow.ChunkedArray
        Dates or timestamps; private.

    Returns
    -------
    float64 array of shape (n,)

    Raises
    ------
    ParameterError
        If the column is of another type or of an unknown time zone, whatever is in it.

    Notes
    -----
    Arrow's own ``floor_temporal`` raises where a time zone skips midnight, with that row's time in the
    message, and its casts to dates wrap around. NULL is filled before the column becomes an array: one with
    NULL would be of floats, which round the times of all other rows.
    """
    kind = column.type
    if not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        _check.refuse_state(
            f"column {name!r}", "be of dates, as its edges are", f"it is of {kind}", "cast it"
        )
    absent = column.is_null().to_numpy()
    whole = column.cast(pa.int32()) if pa.types.is_date32(kind) else column
    counts = pc.fill_null(whole.cast(pa.int64()), 0).to_numpy()
    if pa.types.is_date32(kind):
        return np.where(absent, np.nan, counts)
    unit = "ms" if pa.types.is_date64(kind) else kind.unit
    per_day = 86_400 * _PER_SECOND[unit]
    limits = np.iinfo(np.int64)
    lowest = max(int(limits.min) // per_day + _MARGIN, day_number(dt.date.min) - _MARGIN)
    highest = min(int(limits.max) // per_day - _MARGIN, day_number(dt.date.max) + _MARGIN)
    counts = np.clip(counts, lowest * per_day, highest * per_day)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        one_more = pa.array(np.append(counts, 0))  # so that an unknown zone is refused without rows too
        try:
            counts = pc.local_timestamp(one_more.cast(kind)).cast(pa.int64()).to_numpy()[:-1]
        except pa.ArrowInvalid:
            _check.refuse_state(
                f"column {name!r}", "be of a known time zone", f"it is of {kind}", "cast it to UTC"
            )
    return np.where(absent, np.nan, counts // per_day)
