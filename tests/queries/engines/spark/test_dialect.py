"""Sums that Spark puts together from parts of the bits, against Python's.

DuckDB computes the same texts here, with Spark's functions defined as it has them.
"""

from __future__ import annotations

import random

import duckdb
import pyarrow as pa
import pytest

from sfumato.queries.engines.spark.dialect import SPARK
from tests.spark import Driver

_END = 2**62
_MACROS = {
    "shiftright(v, bits)": "v >> bits",
    "shiftleft(v, bits)": "v * (CAST(1 AS BIGINT) << bits)",
    "narrow_sum(v)": "CAST(sum(v) AS BIGINT)",
}


def _groups(reach: int) -> list[list[int]]:
    """Values whose sums end on both sides of 2**62, of each kind for a reach."""
    draw, many = random.Random(reach), _END // reach
    drawn = [
        [draw.choice((reach, -reach, reach - 1, 5, -7)) for _ in range(draw.randint(1, 40))]
        for _ in range(40)
    ]
    if many > 100:  # as many rows as are needed come from few rows of another column
        return drawn
    ends = [[reach] * many, [reach] * (many - 1) + [reach - 1], [reach] * many + [1], [-reach] * many + [-1]]
    ends += [[-reach] * many, [-reach] * many + [1], [-reach] * (many + 3) + [reach] * (many + 3)]
    return [*drawn, *ends]


def _table(reach: int) -> tuple[pa.Table, list[int | None]]:
    groups = _groups(reach)
    rows: list[tuple[int, int | None]] = [(at, value) for at, values in enumerate(groups) for value in values]
    expected: list[int | None] = [min(max(sum(values), -_END), _END) for values in groups]
    rows += [(len(groups), None), (len(groups), 3), (len(groups) + 1, None)]
    columns = {"g": [at for at, _ in rows], "v": pa.array([value for _, value in rows], pa.int64())}
    return pa.table(columns), [*expected, 3, None]


def _in_64_bits(sql: str) -> str:
    """What Spark's sums of 64-bit integers are in DuckDB, whose own are wider."""
    return sql.replace("sum(", "narrow_sum(")


_REACHES = (2**62, 2**60 - 1, 2**57, 2**48, 1000)


def test_sums_are_exact_and_end_at_their_limits() -> None:
    with duckdb.connect() as connection:
        for head, body in _MACROS.items():
            connection.execute(f"CREATE MACRO {head} AS {body}")
        for reach in _REACHES:
            data, expected = _table(reach)
            connection.register("data", data)
            total = _in_64_bits(SPARK.limited_total("v", reach))
            select = f"SELECT {total} FROM data GROUP BY g ORDER BY g"
            assert [found for (found,) in connection.execute(select).fetchall()] == expected, reach


def test_parts_of_sums_beyond_any_table_end_at_their_limits() -> None:
    """2**14 rows of 2**48 add up to 2**62: sums of so many rows are sums of products here."""
    high, low = 2**24, 2**24 - 1  # the halves of 2**48, and the largest lower half
    for rows in (2**14 - 1, 2**14, 2**14 + 1, 2**20, 2**38 - 1):
        for upper, lower in ((high, 0), (-high, 0), (high - 1, low), (-high, low)):
            total = rows * (upper * 2**24 + lower)
            text = SPARK.limited_total("v", 2**48)
            text = text.replace("sum(shiftright(v, 24))", str(rows * upper)).replace(
                f"sum(v & {low})", str(rows * lower)
            )
            with duckdb.connect() as connection:
                for head, body in _MACROS.items():
                    connection.execute(f"CREATE MACRO {head} AS {body}")
                ((found,),) = connection.execute(f"SELECT {text}").fetchall()
            assert found == min(max(total, -_END), _END), (rows, upper, lower)


@pytest.mark.spark
def test_spark_has_the_same_sums(spark: Driver) -> None:
    session = spark.session()
    for reach in (2**62, 2**48):
        data, expected = _table(reach)
        session.createDataFrame(data, schema="g BIGINT, v BIGINT").createOrReplaceTempView("sums_of_parts")
        select = f"SELECT g, {SPARK.limited_total('v', reach)} AS s FROM sums_of_parts GROUP BY g ORDER BY g"
        assert session.sql(select).toArrow()["s"].to_pylist() == expected
