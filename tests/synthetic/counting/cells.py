"""Columns of every type with values at the edges of cells, for all engines alike."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa

from sfumato.synthetic import Categorical, Ordered

__all__ = ["DATES", "DECIMALS", "FLOATS", "INTEGERS", "MOMENTS", "TEXTS", "cells", "rows_of"]

DAYS = [dt.date(2020, 1, 1), dt.date(2020, 2, 1), dt.date(2021, 1, 1)]
MANY = [f"t{i}" for i in range(100)]

TEXTS = ["x", "X", "x ", "", "é", "e\u0301", "o'b", "t7", "(other)", "\\", None]
INTEGERS = [0, 1, -1, 2, 3, 17, 2**53, 2**53 + 1, 2**53 + 3, 2**62, 2**63 - 1, -(2**63), None]
FLOATS = [
    0.0,
    -0.0,
    0.1,
    0.25,
    0.3,
    1.0,
    2.999999,
    3.0,
    -1e300,
    1e300,
    math.inf,
    -math.inf,
    math.nan,
    5e-324,
    None,
]
DATES = [dt.date(2019, 12, 31), *DAYS, dt.date(2020, 1, 31), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]
MOMENTS = [
    dt.datetime(2020, 1, 31, 23, 59, 59, 999999),
    dt.datetime(2020, 2, 1),
    dt.datetime(1969, 12, 31, 5),
    dt.datetime(2021, 1, 1),
    dt.datetime(1, 1, 1),
    None,
]
DECIMALS = [Decimal(x) for x in ("0.1", "0.3", "1.0", "2.9", "3", "-5", "123456789.000000001", "0.123")] + [
    None
]


def cells() -> list[tuple[str, Any, pa.Array]]:
    """Names, cells, and a column of values at their edges."""
    return [
        ("texts", Categorical(["x", "", "é", "o'b", "\\"]), pa.array(TEXTS)),
        ("texts and others", Categorical(["x", "x "], missing=True, other=True), pa.array(TEXTS)),
        ("many texts", Categorical(MANY, missing=True), pa.array(TEXTS)),
        ("many texts and others", Categorical(MANY, other=True), pa.array(TEXTS)),
        ("whole numbers", Categorical([2**53 + 1, -(2**63), 3], other=True), pa.array(INTEGERS)),
        ("a run", Categorical([0, 1, 2], missing=True), pa.array(INTEGERS)),
        ("a long run", Categorical(range(-1, 99), other=True), pa.array(INTEGERS)),
        ("many numbers", Categorical([*range(0, 200, 2), 2**70]), pa.array(INTEGERS)),
        ("beyond 64 bits", Categorical([2**70], other=True), pa.array(INTEGERS)),
        ("truth", Categorical([True, False], missing=True), pa.array([True, False, None])),
        ("one truth", Categorical([True]), pa.array([True, False, None])),
        ("ages", Ordered.integers(1, 17, missing=True), pa.array(INTEGERS)),
        ("one age", Ordered.integers(3, 3), pa.array(INTEGERS)),
        ("ages as floats", Ordered.integers(-1, 3), pa.array(FLOATS)),
        ("bins", Ordered(0, 1, bins=10, missing=True), pa.array(FLOATS)),
        ("one bin", Ordered(0, 1, bins=1), pa.array(FLOATS)),
        ("uneven bins", Ordered(edges=[-1e300, 0, 5e-324, 0.3, 3]), pa.array(FLOATS)),
        ("bins of whole numbers", Ordered(edges=[0, 2.5, 2**53 + 2, 2**53 + 4, 2**63]), pa.array(INTEGERS)),
        ("small numbers", Ordered(0, 3, bins=3), pa.array([0, 1, 3, -7, None], pa.int8())),
        ("single floats", Ordered(edges=[0, 0.1, 1]), pa.array([0.1, 0.0, 1.0, None], pa.float32())),
        ("decimals", Ordered(edges=[0, 0.1, 0.3, 3]), pa.array(DECIMALS, pa.decimal128(30, 9))),
        ("ages as decimals", Ordered.integers(0, 3), pa.array(DECIMALS, pa.decimal128(30, 9))),
        ("dates", Ordered(edges=DAYS, missing=True), pa.array(DATES)),
        ("moments", Ordered(edges=DAYS), pa.array(MOMENTS, pa.timestamp("us"))),
    ]


def rows_of(column: pa.Array) -> pa.Table:
    """A table of a column, each value as often as its place says, so that none stands for another."""
    places = [place for place in range(len(column)) for _ in range(place + 1)]
    return pa.table({"value": column.take(pa.array(places, pa.int64()))})
