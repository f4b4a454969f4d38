"""Query parameters: typed values in the syntax tree, never text."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.errors import OptionError, QueryError
from sfumato.queries.plan.query import Query
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.query_parameters import Parameters
from tests.cases import cases
from tests.queries.people import CATALOG

OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1) "


def bound(text: str, **values: Any) -> Query:
    return read(text, CATALOG, parameters=Parameters.of(values))


SAME = [
    (OPTIONS + "COUNT(*) AS n FROM data WHERE age > @x", {"x": 18}, "@x", "18"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE age > @x", {"x": -18}, "@x", "-18"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE age - @x > 0", {"x": np.int32(-3)}, "@x", "-3"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE Income > @x", {"x": 1.5e300}, "@x", "1.5e300"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE Income > @x", {"x": np.float64(2.0)}, "@x", "2.0"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE married = @x", {"x": np.bool_(True)}, "@x", "TRUE"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE state = @X", {"x": "O'Hara\\"}, "@X", "'O\\'Hara\\\\'"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE state LIKE @x", {"x": "C%"}, "@x", "'C%'"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE born < @x", {"x": dt.date(2020, 1, 31)}, "@x",
     "DATE '2020-01-31'"),
    (
        OPTIONS + "COUNT(*) AS n FROM data WHERE seen < @x",
        {"x": dt.datetime.fromisoformat("2020-01-31T12:00:00+02:00")},
        "@x",
        "TIMESTAMP '2020-01-31 10:00:00'",
    ),
    (
        OPTIONS + "COUNT(*) AS n FROM data WHERE CAST(age AS NUMERIC) = @x",
        {"x": Decimal("-1.50E+3")},
        "@x",
        "NUMERIC '-1500'",
    ),
    (
        OPTIONS + "COUNT(*) AS n FROM data WHERE CAST(age AS NUMERIC) NOT IN UNNEST(@x)",
        {"x": [Decimal("18.0"), Decimal("0.25")]},
        "UNNEST(@x)",
        "(NUMERIC '18', NUMERIC '0.25')",
    ),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE age IN (@x, 3)", {"x": 2}, "@x", "2"),
    (OPTIONS + "COUNT(*) AS n FROM data WHERE age + @x IN (2, 3)", {"x": 2}, "@x", "2"),
    (
        OPTIONS + "COUNT(*) AS n FROM data WHERE age IN UNNEST(@x)",
        {"x": np.array([2, 3])},
        "UNNEST(@x)",
        "(2, 3)",
    ),
    (
        OPTIONS.replace("epsilon=1", "epsilon=1, group_selection_strategy=PUBLIC_GROUPS")
        + "state, COUNT(*) AS n FROM data RIGHT JOIN UNNEST(@x) AS k ON state = k GROUP BY state",
        {"x": ("CA", "NY")},
        "@x",
        "['CA', 'NY']",
    ),
    (OPTIONS + "state, COUNT(*) AS n FROM data GROUP BY state LIMIT @x", {"x": 5}, "@x", "5"),
    (OPTIONS + "SUM(age, contribution_bounds_per_group => (@x, 9)) AS s FROM data", {"x": -2}, "@x", "-2"),
    (OPTIONS + "COUNT(*, epsilon => @x) AS n, COUNT(age) AS m FROM data", {"x": 0.25}, "@x", "0.25"),
    (OPTIONS.replace("epsilon=1", "epsilon = @x") + "COUNT(*) AS n FROM data", {"x": 0.5}, "@x", "0.5"),
    (
        OPTIONS.replace("epsilon=1", "epsilon=1, group_selection_strategy=@x")
        + "state, COUNT(*) AS n FROM data GROUP BY state",
        {"x": "LAPLACE_THRESHOLD"},
        "@x",
        "LAPLACE_THRESHOLD",
    ),
    (f"FROM data |> WHERE age > @x |> AGGREGATE {OPTIONS[6:]} COUNT(*) AS n",
     {"x": 18}, "@x", "18"),
]  # fmt: skip


@cases(("text", "values", "parameter", "literal"), SAME)
def test_a_parameter_is_the_literal_of_its_value(
    text: str, values: dict[str, Any], parameter: str, literal: str
) -> None:
    written = text.replace(parameter, literal)
    assert query_key(bound(text, **values)) == query_key(read(written, CATALOG))


def test_other_values_are_other_queries() -> None:
    keys = {query_key(bound(SAME[0][0], x=value)) for value in (1, 2, 3, -1)}
    assert len(keys) == 4


REFUSED = [
    ("@a", {"a": None}, "@a must be a bool, int, float, Decimal, str, date, .* or a list .*, got None"),
    ("@a", {"a": Fraction(1)}, r"or a list of one of these, got Fraction\(1, 1\); convert it"),
    ("@a", {"a": Decimal("NaN")}, r"be finite, with at most 38 digits .* got Decimal\('NaN'\)"),
    ("@a", {"a": Decimal("1e38")}, r"be finite, with at most 38 digits .* got Decimal\('1E\+38'\)"),
    ("@a", {"a": [Decimal(1), 1]}, "got INT64 and NUMERIC"),
    ("@a", {"a": {"b": 1}}, "or a list of one of these, got {'b': 1}"),
    ("@a", {"a": 2**63}, "@a must fit in 64 bits, got 9223372036854775808"),
    ("@a", {"a": float("nan")}, "@a must be finite, got nan"),
    ("@a", {"a": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-1)))},
     "@a must be a moment of the years 1 to 9999 in UTC, got datetime"),
    ("@a", {"a": "\0"}, "@a must hold characters only"),
    ("@a", {"a": []}, "@a must be a list of values of one type, got none"),
    ("@a", {"a": [1, "b"]}, "got INT64 and STRING"),
    ("@a", {"a": [1] * 20_001}, "must list at most 20000 values, got 20001; put them into a public table"),
    ("@a", {"a": [1, 2]}, r"@a must stand in UNNEST\(...\) where it is a list, and nowhere else, got a list"),
    ("UNNEST(@a)", {"a": 1}, "and nowhere else, got a single value"),
    ("@a", {}, "@a must have a value, got none; pass params="),
    ("@a", {"b": 1, "a": 1}, "params must be named in the query, got 'b'"),
    ("@amount", {"amuont": 1}, "@amount must have a value, got none; did you mean @amuont?"),
    ("1", {"a": 1}, "params must be named in the query, got 'a'; leave it out"),
    ("'@a'", {"a": 1}, "params must be named in the query, got 'a'; leave it out"),
    ("@a", {"a": 1, "A": 2}, "params must have names that differ beyond case, got 'A' twice"),
    ("@a", {"@a": 1}, "params must have names such as 'age', got '@a'; leave the @ to the query"),
]  # fmt: skip


@cases(("place", "values", "phrase"), REFUSED)
def test_values_and_names_that_do_not_fit_are_refused(
    place: str, values: dict[str, Any], phrase: str
) -> None:
    with pytest.raises(OptionError, match=phrase):
        bound(OPTIONS + f"COUNT(*) AS n FROM data WHERE age IN ({place})", **values)


def test_parameters_are_a_mapping() -> None:
    with pytest.raises(OptionError, match="params must be a mapping, got a value of type list"):
        Parameters.of([("a", 1)])  # type: ignore[arg-type]


def test_no_place_for_a_name_or_a_keyword() -> None:
    for text in (
        "COUNT(*) AS @a FROM data",
        "COUNT(*) AS n FROM @a",
        "COUNT(*) AS n FROM data WHERE @a.b = 1",
    ):
        with pytest.raises(QueryError):
            bound(OPTIONS + text, a="data")
    with pytest.raises(OptionError, match="@a must be one value in OPTIONS, got a list"):
        bound(OPTIONS.replace("epsilon=1", "epsilon=@a") + "COUNT(*) AS n FROM data", a=[1])


@given(st.text(max_size=40))
def test_no_string_changes_what_a_query_is(value: str) -> None:
    try:
        query = bound(OPTIONS + "COUNT(*) AS n FROM data WHERE state = @a", a=value)
    except OptionError:
        assert "\0" in value or any("\ud800" <= c <= "\udfff" for c in value)
        return
    plain = bound(OPTIONS + "COUNT(*) AS n FROM data WHERE state = @a", a="CA")
    assert (query.output, query.options, query.aggregates) == (plain.output, plain.options, plain.aggregates)
    assert query_key(query).count('"text"') == query_key(plain).count('"text"') + value.count('"text"')


def test_the_description_begins_with_the_values() -> None:
    described = Parameters.of({"day": dt.date(2020, 1, 1), "s": "a: @b = 1"}).describe("SELECT\n @day, @s")
    assert described == "@day = CAST('2020-01-01' AS DATE), @s = 'a: @b = 1': SELECT @day, @s"
    assert Parameters.of(None).describe("SELECT  1") == "SELECT 1"


def test_values_of_pandas_are_taken() -> None:
    pandas = pytest.importorskip("pandas")
    text = OPTIONS + "COUNT(*) AS n FROM data WHERE seen < {}"
    moment = pandas.Timestamp("2020-01-31T12:00:00.123456789+02:00")
    found = bound(text.format("@x"), x=moment)
    written = text.format("TIMESTAMP '2020-01-31 10:00:00.123456'")
    assert query_key(found) == query_key(read(written, CATALOG))
    listed = bound(OPTIONS + "COUNT(*) AS n FROM data WHERE age IN UNNEST(@x)", x=pandas.Series([2, 3]))
    assert query_key(listed) == query_key(
        read(OPTIONS + "COUNT(*) AS n FROM data WHERE age IN (2, 3)", CATALOG)
    )
    with pytest.raises(OptionError, match="@x must be a moment"):
        bound(text.format("@x"), x=pandas.NaT)
