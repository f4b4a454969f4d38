"""Every type of Spark is carried exactly, or no query can use it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sfumato.errors import SchemaError
from sfumato.queries.engines.spark.engine import SparkEngine
from sfumato.queries.engines.spark.source import SparkSource
from sfumato.queries.plan.measure import Measure, One
from sfumato.queries.plan.query import AggregationJob, Scan
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.queries.every_type import violations
from tests.spark import Driver

pytestmark = pytest.mark.spark

_CARRIED = {
    "BIGINT": ["-9223372036854775808", "9007199254740992", "9007199254740993", "9223372036854775807"],
    "FLOAT": ["-3.4028235e38", "1.4e-45", "0.1", "Infinity", "-Infinity"],
    "DOUBLE": ["-1.7976931348623157e308", "4.9e-324", "0.1", "Infinity", "-Infinity"],
    "DECIMAL(18,3)": ["9007199254740.993", "9007199254740.992", "-0.001"],
    "DECIMAL(38,0)": ["9" * 38, "9" * 37 + "8", "18446744073709551616", "9223372036854775808"],
    "DECIMAL(38,38)": ["0." + "9" * 38, "0." + "0" * 37 + "1", "-0." + "9" * 38],
    "STRING": ["", " ", "a", "A", "\u00e4", "a\u0308", "01", "1"],
    "DATE": ["0001-01-01", "1970-01-01", "9999-12-31"],
    "TIMESTAMP_NTZ": ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "9999-12-31 23:59:59.999999"],
    "TIMESTAMP": ["0001-01-02 00:00:00Z", "1969-12-31 23:59:59.999999Z", "9999-12-30 00:00:00Z"],
}
_UNITS_ALONE = {
    "BINARY": ["a", "aa", ""],
    "INTERVAL DAY TO SECOND": ["1 00:00:00", "1 01:00:00"],
    "ARRAY<INT>": ["[1]", "[1, 2]", "[]"],
    "STRUCT<a: INT>": ['{"a": 1}', '{"a": 2}'],
}
_NO_UNITS = {
    "MAP<STRING, INT>": """map('a', 1)""",
    "ARRAY<MAP<INT, INT>>": "array(map(1, 2))",
    "STRUCT<a: MAP<INT, INT>>": "named_struct('a', map(1, 2))",
    "VARIANT": """parse_json('{"a": 1}')""",
    "ARRAY<VARIANT>": "array(parse_json('1'))",
    "STRUCT<a: INT, v: VARIANT>": "named_struct('a', 1, 'v', parse_json('1'))",
    "INTERVAL": "make_interval(0, 1)",
}
"""Types that Spark cannot compare, each with a value."""


@pytest.fixture
def typed(spark: Driver) -> Any:
    """A table with a column of each type; its rows are a person each, and all values are there twice."""
    texts = {**_values(0, _CARRIED), **_values(len(_CARRIED), _UNITS_ALONE)}
    rows = pa.table({name: pa.array(values, pa.string()) for name, values in texts.items()})
    items = [_read(name, type_) for name, type_ in zip(texts, [*_CARRIED, *_UNITS_ALONE], strict=True)]
    session = spark.session()
    person = pa.array(range(rows.num_rows), pa.int64())
    return session.createDataFrame(rows.append_column("person", person)).selectExpr("person", *items)


def _read(name: str, type_: str) -> str:
    nested = "<" in type_
    return f"from_json({name}, '{type_}') AS {name}" if nested else f"CAST({name} AS {type_}) AS {name}"


def _values(first: int, columns: dict[str, list[str]]) -> dict[str, list[Any]]:
    longest = max(map(len, [*_CARRIED.values(), *_UNITS_ALONE.values()])) + 1
    return {
        f"c{number}": [value for value in (*values, *[None] * (longest - len(values))) for _ in range(2)]
        for number, values in enumerate(columns.values(), first)
    }


def test_every_type_is_carried_exactly(typed: Any) -> None:
    with SparkEngine(SparkSource(typed.sparkSession, {"data": typed})) as engine:
        types = [column.type for column in engine.schemas["data"].columns[1:]]
        assert [type_ is not None for type_ in types] == [
            type_ in _CARRIED for type_ in (*_CARRIED, *_UNITS_ALONE)
        ]
        assert violations(engine, _values(0, _CARRIED)) == []
        assert violations(engine, _values(len(_CARRIED), _UNITS_ALONE)) == []


def test_what_has_no_order_is_refused_by_name(spark: Driver) -> None:
    session = spark.session()
    items = [f"{value} AS c{at}" for at, value in enumerate(_NO_UNITS.values())]
    rows = session.range(4).selectExpr(
        "id AS person", *items, "named_struct('map', 1, 'variant', id) AS named"
    )
    with SparkEngine(SparkSource(session, {"data": rows})) as engine:
        schema = engine.schemas["data"]
        for at in range(len(_NO_UNITS)):
            job = AggregationJob(Scan("data", schema, f"c{at}"), (), (Measure(One()),), None, None, None)
            with pytest.raises(SchemaError, match=f"privacy_unit must .* got 'c{at}'"):
                engine.check(job)
            text = (
                "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=1) "
            )
            text += f"c{at}, COUNT(*) FROM data GROUP BY c{at}"
            with pytest.raises(SchemaError, match=f"column 'c{at}' has a type that a query cannot use"):
                read(text, Catalog({"data": Scan("data", schema, "person")}))
        # fields that are only called so are of the types that they are of
        job = AggregationJob(Scan("data", schema, "named"), (), (Measure(One()),), None, None, None)
        engine.check(job)
        assert engine.aggregate(job, bytes(32))["m0"].to_pylist() == [4]
        assert engine.fingerprint(bytes(32))
