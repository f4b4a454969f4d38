"""Subqueries in expressions, rows that a query lists, and lists of groups: against plain Python."""

from __future__ import annotations

import pytest

from sfumato.errors import QueryError, SchemaError, UnsupportedSql
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.queries.people import CATALOG
from tests.queries.sql.clauses.public_relations import PUBLIC_CASES, listed
from tests.queries.sql.clauses.test_table_expressions import CLAUSE, Data, Public, exact, rows_by, some_data


@pytest.mark.parametrize("case", PUBLIC_CASES)
def test_public_relations_are_what_python_makes_of_them(case: str) -> None:
    text, expected = PUBLIC_CASES[case]
    for seed in range(5):
        data = some_data(seed)
        assert {key: n[-1] for key, n in exact(data, text).items()} == expected(data), seed


def test_a_subquery_of_several_rows_is_refused_by_public_data_alone() -> None:
    text = rows_by("(SELECT id, g AS k FROM data WHERE i > (SELECT k FROM public))")
    two = [Public("a", "v", 1), Public("a", "v", 1)]
    for seed in range(5):
        data = some_data(seed)
        with pytest.raises(QueryError, match="one row at most, got 2 public rows"):
            exact(Data(data.rows, data.visits, two), text)
        exact(Data(data.rows, data.visits, two[:1]), text)
        exact(Data(data.rows, data.visits, []), text)


def test_a_list_of_groups_may_not_read_several_rows_as_one() -> None:
    inner = "SELECT DISTINCT g FROM public WHERE k = (SELECT k FROM public)"
    text = listed("k.g", f"RIGHT JOIN ({inner}) AS k USING (g)")
    data = some_data(0)
    with pytest.raises(QueryError, match="one row at most, got 8 public rows"):
        exact(data, text)
    assert exact(Data(data.rows, data.visits, [Public("z", "v", 1)]), text) == {("z",): (0,)}


@cases(
    ("text", "kind", "phrase"),
    [
        ("COUNT(*) FROM data WHERE age > (SELECT MAX(age) FROM data)", UnsupportedSql, "not read a private"),
        (
            "COUNT(*) FROM data WHERE age > (SELECT COUNT(*) FROM visits)",
            UnsupportedSql,
            "not read a private",
        ),
        (
            "COUNT(*) FROM data WHERE age > (WITH v AS (SELECT age FROM visits) SELECT MAX(age) FROM v)",
            UnsupportedSql,
            "not read a private",
        ),
        (
            "COUNT(*) FROM data WHERE age > (SELECT MAX(years) FROM states WHERE years < data.age)",
            SchemaError,
            "'data' names no table",
        ),
        ("COUNT(*) FROM data WHERE age > (SELECT years, code FROM states)", SchemaError, "one column, got 2"),
        ("COUNT(*) FROM data WHERE age > (SELECT MAX(code) FROM states)", SchemaError, "INT64 and STRING"),
        (
            "COUNT(*) / (SELECT MAX(years) FROM states) FROM data",
            UnsupportedSql,
            "not stand beside an aggregate",
        ),
        (
            "COUNT(*) FROM data HAVING COUNT(*) > (SELECT MAX(years) FROM states)",
            UnsupportedSql,
            "over rows, as in",
        ),
        ("COUNT(*) FROM data JOIN states ON age > (SELECT 3)", UnsupportedSql, "over rows, as in"),
        (
            "COUNT(*) FROM data WHERE age = ANY (SELECT years FROM states)",
            UnsupportedSql,
            "over rows, as in",
        ),
        (
            "COUNT(*) FROM data WHERE age > (SELECT nothing FROM states)",
            SchemaError,
            "'nothing' does not exist",
        ),
        (
            "COUNT(*) FROM data WHERE age > (SELECT MAX(years) FROM nowhere)",
            SchemaError,
            "'nowhere' is not part",
        ),
    ],
)
def test_refused_subqueries(text: str, kind: type[QueryError], phrase: str) -> None:
    with pytest.raises(kind, match=phrase):
        read(CLAUSE + text, CATALOG)


def test_a_constant_subquery_is_its_constant() -> None:
    one = read(CLAUSE + "COUNT(*) FROM data WHERE age > (SELECT 3) HAVING COUNT(*) > 2", CATALOG)
    other = read(CLAUSE + "COUNT(*) FROM data WHERE age > 3 HAVING COUNT(*) > 2", CATALOG)
    assert one == other


def test_the_same_subquery_is_joined_once_and_star_does_not_show_it() -> None:
    value = "(SELECT MAX(years) FROM states)"
    inner = f"SELECT * FROM data WHERE age > {value} OR age + 1 < {value}"
    query = read(CLAUSE + f"COUNT(*) FROM ({inner})", CATALOG)
    assert "value" not in [column.name for column in query.relation.schema.columns]
    with pytest.raises(SchemaError, match="'value' does not exist"):
        read(CLAUSE + f"COUNT(value) FROM data WHERE age > {value}", CATALOG)
