"""The builder: what it writes is read as the very query that was meant; bad input gets one clear error."""

from __future__ import annotations

import datetime as dt
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.errors import ParameterError, SchemaError, SfumatoError, SqlSyntaxError
from sfumato.queries.builder.aggregate_call import AggregateCall
from sfumato.queries.builder.columns import ColumnExpression, col
from sfumato.queries.builder.private_query import Table, begin
from sfumato.queries.plan.query import Column, ColumnType, Scan, Schema
from sfumato.queries.plan.sql_text import literal_sql
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases
from tests.queries.canonical_sql import canonical_text

COLUMNS = Schema(
    (
        Column("person", ColumnType.INTEGER),
        Column("age", ColumnType.INTEGER),
        Column("income", ColumnType.FLOAT),
        Column("state", ColumnType.TEXT),
        Column("born", ColumnType.DATE),
        Column("odd name", ColumnType.INTEGER),
        Column("nested", None),
    )
)
CATALOG = Catalog(
    {"data": Scan("data", COLUMNS, "person")},
    {"regions": Schema((Column("state", ColumnType.TEXT), Column("region", ColumnType.TEXT)))},
)
OPTIONS: dict[str, Any] = {"epsilon": 0.5, "delta": 1e-8, "max_groups_contributed": 2}
CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=2)"


def table(name: str | None = None) -> Table:
    tables: Any = SimpleNamespace(catalog=CATALOG)  # nothing is asked
    return begin(tables, name)


careless: Any = table
careless_mean: Any = sf.mean


def meaning(text: str) -> str:
    return canonical_text(read(text, CATALOG))


@cases(
    ("query", "text"),
    [
        (
            table().filter("age >= 18").group_by("state").agg(sf.mean("income", bounds=(0, 2e5))),
            (
                "state, AVG(income, contribution_bounds_per_group => (0, 200000)) AS mean_income "
                "FROM data WHERE age >= 18 GROUP BY state"
            ),
        ),
        (
            table()
            .filter(col("age") >= 18, "income < 5e6 OR income IS NULL")
            .group_by("state")
            .agg(n=sf.count()),
            (
                "state, COUNT(*) AS n FROM data WHERE age >= 18 AND (income < 5e6 OR income IS NULL) "
                "GROUP BY state"
            ),
        ),
        (
            table("DATA")
            .group_by(decade=(col("age") / 10).cast("INT64"))
            .agg(sf.sum("income", bounds=(0, 10), row_bounds=(0, 5)).alias("s"), sf.count_distinct("person"))
            .order_by("s", descending=True)
            .limit(3),
            (
                "CAST(age / 10 AS INT64) AS decade, SUM(income, contribution_bounds_per_group => (0, 10), "
                "contribution_bounds_per_row => (0, 5)) AS s, COUNT(DISTINCT person) AS distinct_person "
                "FROM data GROUP BY 1 ORDER BY s DESC LIMIT 3"
            ),
        ),
        (
            table().agg(sf.count_distinct("state", per_unit=3)),
            ("APPROX_COUNT_DISTINCT(state, max_contributions_per_group => 3) AS distinct_state FROM data"),
        ),
        (
            table().with_columns(old="age > 65", age="age + 1").group_by("old").agg(sf.count("age")),
            (
                "old, COUNT(age) AS count_age FROM (SELECT person, income, state, born, `odd name`, "
                "age > 65 AS old, age + 1 AS age FROM data) GROUP BY old"
            ),
        ),
        (
            table()
            .filter(col("odd name").between(1, 5))
            .filter(~col("state").is_in(["CA", "N'Y"]), col("born").is_null())
            .agg(sf.count(bounds=(0, 4))),
            (
                "COUNT(*, contribution_bounds_per_group => (0, 4)) AS count FROM data WHERE `odd name` "
                "BETWEEN 1 AND 5 AND NOT state IN ('CA', 'N\\'Y') AND born IS NULL"
            ),
        ),
    ],
)
def test_the_builder_asks_what_the_sql_asks(query: Any, text: str) -> None:
    options = OPTIONS if "GROUP BY" in text else {"epsilon": 0.5, "delta": 1e-8}
    clause = CLAUSE if "GROUP BY" in text else CLAUSE.replace(", max_groups_contributed=2", "")
    limits = {"max_rows_per_group": 3} if "per_row" in text else {}
    clause = clause.replace(")", ", max_rows_per_group=3)") if limits else clause
    assert meaning(query.options(**options, **limits).sql) == meaning(f"{clause} {text}")


@given(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63) + 1, 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
        st.dates(),
        st.datetimes(min_value=dt.datetime(1900, 1, 1), max_value=dt.datetime(2200, 1, 1)),
    )
)
def test_a_literal_is_read_as_the_value_it_stands_for(value: Any) -> None:
    """Whatever a text holds, it stays inside its quotes: the query keeps its shape and its one condition."""
    expression = ColumnExpression(f"(COALESCE({literal_sql(value)}, NULL) IS NOT NULL)")
    query = table().filter(expression).agg(sf.count()).options(epsilon=1, delta=0)
    if value is None:
        return
    found = read(query.sql, CATALOG)
    assert found.output == ("count",)
    literals = [node for node in found.relation.predicate.tree.walk() if not node.args.get("expressions")]  # type: ignore[union-attr]
    assert literals
    if isinstance(value, str):
        assert any(node.name == value and getattr(node, "is_string", False) for node in literals)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        assert any(type(value)(node.name) == abs(value) for node in literals if node.key == "literal")


def test_numbers_of_numpy_are_written_like_pythons() -> None:
    assert [literal_sql(v) for v in (np.int64(3), np.float32(0.5), np.bool_(True))] == ["3", "0.5", "TRUE"]


def test_steps_leave_what_they_came_from_as_it_was() -> None:
    rows = table()
    kept = rows.filter("age > 1")
    assert rows.agg(sf.count()).sql != kept.agg(sf.count()).sql
    query = kept.agg(sf.count())
    assert query.options(epsilon=1).sql != query.sql
    assert "epsilon=2" in query.options(epsilon=1).options(epsilon=2).sql


def test_an_answer_is_the_one_that_the_sql_gives() -> None:
    people = pa.table({"person": range(2000), "age": [20, 40] * 1000, "pay": [10.0, 30.0] * 1000})
    with sf.connect(people, privacy_unit="person", epsilon=3, delta=1e-6, rng=7) as session:
        query = session.table().filter(col("age") > 1).group_by("age").agg(sf.mean("pay", bounds=(0, 50)))
        query = query.options(epsilon=2, delta=1e-7, max_groups_contributed=1)
        made = query.release()
        assert made.to_arrow()["age"].to_pylist() == [20, 40]
        assert np.allclose(made.to_arrow()["mean_pay"].to_numpy(), [10, 30], atol=2)
        again = session.sql(
            """SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, delta=1e-7, max_groups_contributed=1)
               age, AVG(pay, contribution_bounds_per_group => (0, 50)) AS mean_pay FROM data WHERE age > 1
               GROUP BY age"""
        )
        assert again.replayed
        assert again.to_arrow() == made.to_arrow()
        assert "mean_pay" in query.explain()


def test_public_groups_go_the_same_way() -> None:
    people = pa.table({"person": range(100), "state": ["CA"] * 100})
    with sf.connect(people, privacy_unit="person", epsilon=3, rng=7) as session:
        rows = session.table("data").group_by("state", public_groups={"state": ["CA", "NY"]})
        made = rows.agg(sf.count()).release(epsilon=1, delta=0, max_groups_contributed=1)
    assert made.to_arrow()["state"].to_pylist() == ["CA", "NY"]


@cases(
    ("ask", "error", "words"),
    [
        (lambda: table("other"), SchemaError, "other"),
        (lambda: table("regions"), SchemaError, "private table"),
        (lambda: table().filter("age >"), SqlSyntaxError, "one SQL expression"),
        (lambda: table().filter("age > 1) OR (1 = 1"), SqlSyntaxError, "one SQL expression"),
        (lambda: table().filter("age > 1 -- all"), SqlSyntaxError, "comments"),
        (lambda: table().filter("age > 1; SELECT 1"), SqlSyntaxError, "one SQL expression"),
        (lambda: table().filter("SELECT 1"), SqlSyntaxError, "one SQL expression"),
        (lambda: table().filter(""), SqlSyntaxError, "one SQL expression"),
        (lambda: careless().filter(3), ParameterError, "SQL in a string"),
        (lambda: table().with_columns(), ParameterError, "at least one column"),
        (lambda: table().group_by(), ParameterError, "at least one column"),
        (lambda: table().agg(), ParameterError, "at least one"),
        (lambda: careless().agg("COUNT(*)"), ParameterError, "sf.count"),
        (lambda: careless().agg(n="COUNT(*)"), ParameterError, "sf.count"),
        (lambda: careless().join("regions", "state", how="outer"), ParameterError, "inner"),
        (lambda: careless_mean("age", bounds=(0, 1, 2)), ParameterError, "pair"),
        (lambda: sf.mean("age", bounds=(0, float("inf"))), ParameterError, "finite"),
        (lambda: col(""), ParameterError, "non-empty"),
        (lambda: col("age").is_in([]), ParameterError, "at least one"),
        (lambda: col("age") == object(), ParameterError, "a number"),
        (lambda: bool(col("age") > 1), TypeError, "truth value"),
    ],
)
def test_bad_input_gets_one_clear_error(ask: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        ask()
    assert isinstance(caught.value, (SfumatoError, TypeError))


def test_rows_are_joined_with_public_and_with_other_private_tables() -> None:
    people = pa.table({"person": range(400), "state": ["CA", "NY"] * 200, "age": [20, 40, 60, 80] * 100})
    visits = pa.table({"person": [i % 400 for i in range(900)], "cost": [1.0] * 900})
    regions = pa.table({"state": ["CA", "NY"], "region": ["west", "east"]})
    with sf.connect(
        {"people": people, "visits": visits},
        privacy_unit="person",
        public={"regions": regions},
        epsilon=60,
        rng=1,
    ) as session:
        ask: dict[str, Any] = {"epsilon": 20, "delta": 0, "max_groups_contributed": 1}
        west = {"region": ["west", "east"]}
        joined = session.table("people").filter("age > 30").join("regions", on="state")
        made = joined.group_by("region", public_groups=west).agg(n=sf.count()).release(**ask)
        assert np.allclose(made.to_arrow()["n"].to_numpy(), [200, 100], atol=3)
        costs = session.table("people").join("visits", on="person", how="left").join("regions", on="state")
        query = costs.group_by("region", public_groups=west).agg(cost=sf.sum("cost", bounds=(0, 5)))
        assert np.allclose(query.release(**ask).to_arrow()["cost"].to_numpy(), [450, 450], atol=10)
        visited = session.table("visits").join("people", on=["person"]).filter(col("age") == 80)
        made = visited.agg(n=sf.count(bounds=(0, 5))).release(epsilon=20, delta=0)
        assert abs(made.to_arrow()["n"][0].as_py() - 225) < 15


@cases("type_", ["", "INT64) OR (TRUE", "INT64 -- ", "DECIMAL(9, 2)", "ÍNT64", None, 3])
def test_a_type_cannot_break_out_of_its_cast(type_: Any) -> None:
    with pytest.raises(ParameterError, match="type_ must be the name of a type"):
        col("age").cast(type_)


def test_nothing_made_by_hand_leaves_its_place_in_the_query() -> None:
    """A counter puts its caps behind the caller's rows: no part may comment them out or close them."""
    people = table()
    for written in ("TRUE) -- ", "TRUE /* */", "TRUE) OR (TRUE", "SELECT 1", "age AS x", ""):
        with pytest.raises(SqlSyntaxError, match="one SQL expression"):
            people.filter(ColumnExpression(written))
        with pytest.raises(SqlSyntaxError, match="one SQL expression"):
            people.agg(AggregateCall(written, "n"))
    query = people.agg(sf.count())
    for name in ("epsilon=1) COUNT(*) FROM data -- ", "epsilon = 1, delta", "épsilon"):
        with pytest.raises(ParameterError, match="options must have names"):
            query.options(**{name: 1})


def test_a_number_is_written_in_digits_whatever_it_calls_itself() -> None:
    class Level(IntEnum):
        LOW = -2

    class Loud(float):
        def __repr__(self) -> str:
            return "1) -- "

    assert (literal_sql(Level.LOW), literal_sql(Loud(0.5))) == ("(-2)", "0.5")
