"""No row decides on another one, and no value is an error: for every type that a column may have."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import ParameterError
from sfumato.synthetic import Categorical, Ordered, TableDomain
from tests.cases import cases

DAYS = [dt.date(1969, 12, 31), dt.date(2018, 11, 4), dt.date(2018, 11, 5), dt.date(9999, 12, 31)]
DAY = 86_400_000
"""Milliseconds."""

LONG = st.integers(-(2**63), 2**63 - 1)
NEAR = st.integers(1541200000, 1541500000)  # seconds around a midnight that Brazil skipped
INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
TIMES = [
    pa.timestamp(unit, zone)
    for unit in ("s", "ms", "us", "ns")
    for zone in (None, "UTC", "America/Sao_Paulo", "America/Havana", "Asia/Kathmandu", "+14:00")
]


def raw(values: list[int | None], kind: pa.DataType) -> pa.Array:
    """An array of a type of 64 bits with any bits, as no conversion from Python makes it."""
    plain = pa.array(values, pa.int64())
    return pa.Array.from_buffers(kind, len(values), plain.buffers())


def time_values(kind: pa.DataType) -> Any:
    if pa.types.is_date64(kind):  # Arrow has whole days in it, and a frame with others is refused as a whole
        longest = (2**63 - 1) // DAY
        return st.integers(-longest, longest).map(lambda days: days * DAY) | st.just(17839 * DAY)
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(kind, "unit", "ms")]
    near = st.tuples(NEAR, st.integers(0, factor - 1)).map(lambda pair: pair[0] * factor + pair[1])
    return near | LONG


def columns() -> list[tuple[Any, Any, Callable[[list[Any]], pa.Array]]]:
    """For each type an attribute, values, and how an array is made of them."""
    texts = st.sampled_from(["f", "m", "x", "", "\x00", "\U0001f600"])
    sex, flag = Categorical(["f", "m"], other=True), Categorical([True], missing=True)
    number, date = Ordered(-100, 1000, bins=9), Ordered(edges=DAYS, missing=True)
    code = Categorical([2**63 - 1, 0, -(2**63), 2**64 - 1, 2**70, 5], missing=True, other=True)
    found: list[tuple[Any, Any, Callable[[list[Any]], pa.Array]]] = []

    def add(attribute: Any, values: Any, kind: pa.DataType, make: Any = pa.array) -> None:
        found.append((attribute, values, lambda entries: make(entries, kind)))

    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        add(sex, texts, kind)
    add(sex, texts, pa.dictionary(pa.int8(), pa.string()))
    add(flag, st.booleans(), pa.bool_())
    for name in INTEGERS:
        kind = pa.type_for_alias(name)
        low, high = np.iinfo(name).min, np.iinfo(name).max
        for attribute in (code, number):
            add(attribute, st.sampled_from([low, high, 0, 5, 90]) | st.integers(low, high), kind)
    for width in (16, 32, 64):
        values = st.floats(width=width)
        exact = getattr(np, f"float{width}")
        add(number, values, pa.type_for_alias(f"float{width}"), _floats(exact))
    decimals = st.decimals(-(10**20), 10**20, places=2, allow_nan=False)
    add(number, decimals, pa.decimal128(30, 2))
    add(number, decimals | st.just(Decimal(10) ** 60), pa.decimal256(70, 2))
    add(
        date,
        st.integers(-(2**31), 2**31 - 1),
        pa.date32(),
        lambda v, kind: pa.array(v, pa.int32()).view(kind),
    )
    for kind in (pa.date64(), *TIMES):
        add(date, time_values(kind), kind, raw)
    return found


def _floats(exact: Any) -> Any:
    return lambda values, kind: pa.array([None if v is None else exact(v) for v in values], kind)


COLUMNS = columns()


@given(st.data())
def test_a_row_has_the_cell_that_it_has_alone(data: st.DataObject) -> None:
    """Whatever is beside it, wherever the chunks end: and so a table without a row has the others' cells."""
    attribute, values, make = data.draw(st.sampled_from(COLUMNS))
    entries = data.draw(st.lists(values | st.none(), min_size=1, max_size=6))
    cut = data.draw(st.integers(0, len(entries)))
    table = pa.chunked_array([make(entries[:cut]), make(entries[cut:])])
    found = attribute.encode("x", table).tolist()
    alone = [attribute.encode("x", pa.chunked_array([make([entry])])).tolist() for entry in entries]
    assert [[code] for code in found] == alone
    assert all(-1 <= code < attribute.size for code in found)
    domain = TableDomain(x=attribute)
    assert domain.encode(pa.table({"x": table}))[:, 0].tolist() == [code for code in found if code >= 0]


@cases("kind", TIMES)
def test_times_are_in_their_day_of_utc(kind: pa.DataType) -> None:
    """Also at midnights that a time zone skips or has twice."""
    factor = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
    edges = [dt.date(2018, 11, day) for day in range(1, 11)]
    daily = Ordered(edges=edges)
    seconds = [1541299500 + 900 * step for step in range(24)]  # around midnight of 4 November 2018
    column = pa.chunked_array([raw([second * factor for second in seconds], kind)])
    dates = [dt.datetime.fromtimestamp(second, dt.UTC).date() for second in seconds]
    assert daily.encode("x", column).tolist() == [edges.index(date) for date in dates]
    ends = pa.chunked_array([raw([-(2**63), -(2**63) + 1, 2**63 - 2, 2**63 - 1], kind)])
    # Of nanoseconds, 64 bits reach from 1677 to 2262; of other units beyond year 9999, which is NULL.
    assert daily.encode("x", ends).tolist() == ([0, 0, 8, 8] if kind.unit == "ns" else [-1] * 4)


def test_the_last_instant_of_a_day_is_in_it_beside_a_null() -> None:
    """An array with NULL is of floats, which would round it to the next day."""
    last = (17839 * 86_400) * 10**9 - 1
    kind = pa.timestamp("ns")
    daily = Ordered(edges=[dt.date(2018, 11, 3), dt.date(2018, 11, 4), dt.date(2018, 11, 5)], missing=True)
    for beside, cells in (([], []), ([None], [2])):
        assert daily.encode("x", pa.chunked_array([raw([last, *beside], kind)])).tolist() == [0, *cells]


@cases(
    ("kind", "message"),
    [
        (pa.time32("s"), "be of dates, as its edges are, but it is of time32"),
        (pa.duration("s"), "be of dates, as its edges are, but it is of duration"),
        (pa.month_day_nano_interval(), "be of dates, as its edges are, but it is of month_day_nano_interval"),
    ],
)
def test_no_date_is_refused_by_its_type(kind: pa.DataType, message: str) -> None:
    for rows in ([], [None]):
        with pytest.raises(ParameterError, match=f"column 'x' must {message}"):
            Ordered(edges=DAYS).encode("x", pa.chunked_array([pa.array(rows, kind)]))
