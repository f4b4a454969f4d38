"""Types that are declared for CSV files: one rule, one schema, and whatever is in the rows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.errors import LedgerMismatch, ParameterError, SchemaError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.column_types import with_types
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import (
    AggregationJob,
    ColumnType,
    Expression,
    Named,
    Scan,
)
from sfumato.queries.plan.typed_expressions import cast, column
from tests.queries.engines.measures import UNITS

BUDGET: dict[str, Any] = {"privacy_unit": "person", "epsilon": 5.0, "delta": 1e-6}
TYPES = {"age": "INT64", "day": "DATE", "income": "float64", "member": "Bool", "at": "TIMESTAMP"}
VALUES = [
    *("7", "+7", "-0", "007", " 7", "7.0", "7e2", "1e999", ".5", "nan", "inf", "9223372036854775808"),
    *("2026-02-28", "2026-02-29", "0000-01-01", "26-2-2", "2026-01-01 10:00", "2026-01-01T10:00:00+01:00"),
    *("true", "FALSE", "t", "1", "x\x00y", "Ä", "1" * 401),
]


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text("person,age,day,income,member,at,town\n1,30,2026-01-01,1.5,true,2026-01-01,A\n")
    return path


def _groups(engine: DuckDBEngine, key: Expression) -> list[object]:
    scan = Scan("data", engine.schemas["data"], None)
    job = AggregationJob(scan, (Named("k", key),), (UNITS,), None, None, None)
    return [repr(tuple(row.values())) for row in engine.aggregate(job, bytes(16)).to_pylist()]


@pytest.mark.parametrize(
    "type_", [type_ for type_ in ColumnType if type_ not in (ColumnType.TEXT, ColumnType.DECIMAL)]
)
def test_a_value_is_read_as_cast_reads_it(tmp_path: Path, type_: ColumnType) -> None:
    path = tmp_path / "values.csv"
    path.write_text("\n".join(["v", *(f'"{value}"' for value in VALUES)]), encoding="utf-8", newline="")
    texts = pa.table({"v": VALUES})
    declared, _ = with_types(open_source(path), {}, {"V": type_.value})
    with DuckDBEngine(declared) as engine, DuckDBEngine(open_source(texts)) as other:
        assert [known.type for known in engine.schemas["data"].columns] == [type_]
        read = _groups(engine, Expression(column("v", None).tree, type_))
        term = cast(column("v", ColumnType.TEXT), type_)
        assert read == _groups(other, Expression(term.tree, type_))
        assert 2 <= len(read) < len(VALUES)


def test_types_are_of_the_schema_and_nothing_else_is(people: Path) -> None:
    odd = people.with_name("odd.csv")
    odd.write_bytes(
        people.read_bytes().splitlines(keepends=True)[0] + b'x,y,"\n1,2\n3,4,5,6,7,8,9,10,11\n\xff,\x00'
    )
    empty = people.with_name("empty.csv")
    empty.write_bytes(people.read_bytes().splitlines()[0])
    schemas = []
    for path in (people, odd, empty):
        with DuckDBEngine(with_types(open_source(path), {}, TYPES)[0]) as engine:
            schemas.append(engine.schema_text)
    assert len(set(schemas)) == 1
    (columns,) = json.loads(schemas[0])["tables"].values()
    assert [column["type"] for column in columns] == [
        *("text", "integer", "date", "float", "boolean", "timestamp", "text")
    ]


def test_other_types_are_another_dataset(people: Path, tmp_path: Path) -> None:
    given = {**BUDGET, "ledger": tmp_path / "people.ledger"}
    sf.connect(people, types={"age": "INT64"}, **given).close()
    sf.connect(people, types={"AGE": "bigint", "town": "STRING"}, **given).close()
    for types in (None, {"age": "FLOAT64"}, {"age": "INT64", "day": "DATE"}):
        with pytest.raises(LedgerMismatch):
            sf.connect(people, types=types, **given)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"agee": "INT64"}, r"types must name columns of table 'data', got 'agee'; did you mean 'age'\?"),
        ({"x": "INT64"}, "got 'x'; name columns among 'person', 'age'"),
        (
            {"age": "NUMBER(3)"},
            "types must be one of BOOL, INT64, FLOAT64, STRING, DATE, TIMESTAMP for column 'age'",
        ),
        ({"age": "STRING(3)"}, "for column 'age', got 'STRING(3)'; pass types={'age': 'INT64'"),
        ({"age": ""}, "for column 'age', got ''"),
        ({"age": "NUMERIC"}, "for column 'age', got 'NUMERIC'; pass types="),
        ({"age": int}, "for column 'age', got <class 'int'>"),
        ({"age": "INT64", "AGE": "DATE"}, "types must name columns that differ beyond case"),
        ({"people": {"age": "INT64"}}, r"types must name tables among \['data'\], got 'people'"),
        ({"data": {"age": "INT64"}, "age": "INT64"}, "types must name tables among"),
        ("age=INT64", "types must be a mapping of columns to types, got a value of type str"),
    ],
)
def test_wrong_types_are_named(people: Path, types: Any, message: str) -> None:
    for rows in (b"", b'1,2\n"x'):  # with other rows, too
        path = people.with_name("other.csv")
        path.write_bytes(people.read_bytes().splitlines(keepends=True)[0] + rows)
        with pytest.raises(ParameterError, match=message.replace("(3)", r"\(3\)").replace("={", r"=\{")):
            sf.connect(path, types=types, **BUDGET)


def test_several_tables_have_a_mapping_each(people: Path) -> None:
    two = {"people": people, "again": people}
    mixed: Any = {"people": {"age": "INT64"}, "again": "INT64"}
    with pytest.raises(
        ParameterError, match=r"for each table where there are several, got \['age'\]; pass types="
    ):
        sf.connect(two, types={"age": "INT64"}, **BUDGET)
    with pytest.raises(ParameterError, match="types must be columns' types, or a mapping for each table"):
        sf.connect(two, types=mixed, **BUDGET)
    with sf.connect(two, types={"people": {"age": "INT64"}}, public={"list": people}, **BUDGET) as session:
        with pytest.raises(SchemaError) as caught:
            session.sql(_sum("again"))
        assert (
            '{"again": {"age": "INT64"}} on connecting (on the command line --type again.age=INT64)'
            in str(caught.value)
        )
        session.explain(_sum("people"))


def test_what_has_types_takes_none(tmp_path: Path) -> None:
    frame = pa.table({"person": [1], "age": [2]})
    pa.parquet.write_table(frame, tmp_path / "people.parquet")
    for source, kind in ((frame, "a frame"), (tmp_path / "people.parquet", "a file of Parquet")):
        message = (
            f"types must be left out for table 'data', whose columns have types of their own, but they were "
            f"given for {kind}; use"
        )
        with pytest.raises(ParameterError, match=message):
            sf.connect(source, types={"age": "INT64"}, **BUDGET)
    with pytest.raises(ParameterError, match="types must be left out for PostgreSQL"):
        sf.connect("postgresql://host/people", types={"age": "INT64"}, **BUDGET)


def _sum(table: str, *, inner: str = "") -> str:
    rows = f"({inner})" if inner else table
    return (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) "
        f"SUM(age, contribution_bounds_per_group => (0, 100)) AS n FROM {rows}"
    )


DECLARE = 'declare types={"%s": "%s"} on connecting (on the command line --type %s=%s), or '


@pytest.mark.parametrize(
    ("query", "column_", "type_", "remedy"),
    [
        (_sum("data"), "age", "INT64", "use CAST(... AS INT64)"),
        (_sum("data", inner="SELECT person, age FROM data"), "age", "INT64", "use CAST(... AS INT64)"),
        (_sum("data", inner="SELECT person, income AS age FROM data"), "income", "INT64", "use CAST"),
        (_sum("data") + " WHERE income > 5", "income", "INT64", "use CAST to bring them to one type"),
        (_sum("data") + " WHERE day > DATE '2026-01-01'", "day", "DATE", "use CAST to bring them"),
        (_sum("data") + " WHERE EXTRACT(YEAR FROM day) = 2026", "day", "DATE", "use CAST(... AS DATE)"),
        (_sum("data") + " WHERE member", "member", "BOOL", "write a comparison"),
    ],
)
def test_a_refusal_says_how_to_declare(
    people: Path, query: str, column_: str, type_: str, remedy: str
) -> None:
    declared = {"age": "INT64"} if "WHERE" in query else None
    with sf.connect(people, types=declared, **BUDGET) as session:
        with pytest.raises(SchemaError, match=re.escape(DECLARE % (column_, type_, column_, type_) + remedy)):
            session.sql(query)
        assert session.ledger.entries() == ()
        done = session.explain(query.replace("SUM(age,", "SUM(CAST(age AS INT64),").partition(" WHERE")[0])
        assert "SUM" in str(done)


def test_a_column_that_is_text_by_choice_is_told_of_cast_alone(people: Path) -> None:
    with (
        sf.connect(people, types={"age": "STRING"}, **BUDGET) as session,
        pytest.raises(SchemaError, match=r"got STRING; use CAST\(\.\.\. AS INT64\)"),
    ):
        session.sql(_sum("data"))
