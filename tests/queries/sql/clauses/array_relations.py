"""A table with arrays, and queries that take them apart, each with what plain Python makes of it."""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from tests.queries.sql.clauses.test_table_expressions import counted, known, rows_by

__all__ = ["ARRAY_CASES", "Tagged", "some_arrays", "table_of"]

T = TypeVar("T")


class Tagged(NamedTuple):
    id: int | None
    g: str
    tags: list[str | None] | None
    n: list[int | None] | None
    x: list[float | None] | None
    d: list[dt.date | None] | None


def some_arrays(seed: int) -> list[Tagged]:
    draw = random.Random(seed)

    def array(*values: T) -> list[T] | None:
        return draw.choice([None, [], draw.choices(values, k=1), draw.choices(values, k=3)])

    days = (dt.date(2024, 1, 31), dt.date(1, 1, 1), None)
    return [
        Tagged(
            draw.choice([0, 0, 1, 2, None]),
            draw.choice("ab"),
            array("x", "y", "", "é", None),
            array(1, 2, -(2**31), None),
            array(0.5, -0.0, 0.0, math.nan, math.inf, None),
            array(*days),
        )
        for _ in range((30, 12, 0)[seed % 3])
    ]


def table_of(rows: list[Tagged]) -> pa.Table:
    elements = {"tags": pa.string(), "n": pa.int32(), "x": pa.float64(), "d": pa.date32()}
    types = {
        "id": pa.int64(),
        "g": pa.string(),
        **{name: pa.list_(type_) for name, type_ in elements.items()},
    }
    places = enumerate(Tagged._fields)
    return pa.table({name: pa.array([row[at] for row in rows], types[name]) for at, name in places})


def each(array: list[T | None] | None, *, keep: bool = False) -> list[T | None]:
    return list(array or ([None] if keep else []))


def real(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value + 0.0


def pairs(rows: list[Tagged]) -> Iterator[tuple[str | None, int | None]]:
    return ((tag, n) for row in known(rows) for tag in each(row.tags) for n in each(row.n))


def found(k: str, joins: str) -> str:
    return rows_by(f"(SELECT id, {k} AS k FROM data AS t{joins})")


ARRAY_CASES: dict[str, tuple[str, Callable[[list[Tagged]], dict[Any, int]]]] = {
    "texts": (
        found("tag", ", UNNEST(tags) AS tag"),
        lambda rows: counted(tag for row in known(rows) for tag in each(row.tags)),
    ),
    "a row without elements stays": (
        found("tag", " LEFT JOIN UNNEST(t.tags) AS tag"),
        lambda rows: counted(tag for row in known(rows) for tag in each(row.tags, keep=True)),
    ),
    "integers": (
        found("m * 2", " CROSS JOIN UNNEST(n) AS m"),
        lambda rows: counted(None if n is None else n * 2 for row in known(rows) for n in each(row.n)),
    ),
    "floats": (
        found("value", ", UNNEST(x) AS value"),
        lambda rows: counted(real(value) for row in known(rows) for value in each(row.x)),
    ),
    "dates": (
        found("day", " INNER JOIN UNNEST(d) AS day ON TRUE"),
        lambda rows: counted(day for row in known(rows) for day in each(row.d)),
    ),
    "two arrays": (
        found("CONCAT(tag, CAST(m AS STRING))", ", UNNEST(tags) AS tag, UNNEST(t.n) AS m"),
        lambda rows: counted(None if None in (tag, n) else f"{tag}{n}" for tag, n in pairs(rows)),
    ),
    "one array kept, one not": (
        found("IFNULL(tag, '-')", " LEFT JOIN UNNEST(tags) AS tag CROSS JOIN UNNEST(n) AS m"),
        lambda rows: counted(
            "-" if tag is None else tag
            for row in known(rows) for tag in each(row.tags, keep=True) for _ in each(row.n)
        ),
    ),
    "behind a condition and before a join": (
        found("name", ", UNNEST(tags) AS tag JOIN (VALUES ('x', 1), ('x', 2), ('y', 3)) AS m(tag, name) "
                      "USING (tag) WHERE g = 'a'"),
        lambda rows: counted(
            name for row in known(rows) if row.g == "a" for tag in each(row.tags)
            for key, name in (("x", 1), ("x", 2), ("y", 3)) if tag == key
        ),
    ),
    "in a subquery of all columns": (
        rows_by("(SELECT s.id, tag AS k FROM (SELECT * FROM data WHERE g = 'b') AS s, UNNEST(s.tags) tag)"),
        lambda rows: counted(tag for row in known(rows) if row.g == "b" for tag in each(row.tags)),
    ),
    "counted in each unit": (
        rows_by("(SELECT id, COUNT(DISTINCT tag) AS k FROM data, UNNEST(tags) AS tag GROUP BY id)"),
        lambda rows: counted(
            len({tag for row in rows if row.id == unit for tag in each(row.tags)} - {None})
            for unit in {row.id for row in known(rows) if row.tags}
        ),
    ),
}  # fmt: skip
