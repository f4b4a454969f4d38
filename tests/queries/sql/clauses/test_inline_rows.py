"""Rows that a query lists, and lists of groups made of public relations: what they are, what is refused."""

from __future__ import annotations

import pytest

from sfumato.errors import OptionError, QueryError, SchemaError, UnsupportedSql
from sfumato.queries.plan.query import PublicRelation, PublicTable, PublicValues
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.queries.people import CATALOG
from tests.queries.sql.clauses.test_table_expressions import CLAUSE

FROM = CLAUSE + "COUNT(*) FROM data "
LISTS = CLAUSE.replace(")", ", group_selection_strategy=PUBLIC_GROUPS)")


@cases(
    ("join", "kind", "phrase"),
    [
        ("JOIN (VALUES (1), (2)) AS m ON age = m.k", UnsupportedSql, "a name for each column"),
        ("JOIN (VALUES (1)) ON age = 1", UnsupportedSql, "a name for each column"),
        ("JOIN (VALUES (1, 2), (3)) AS m(k, n) ON age = k", SchemaError, "2 values in each row"),
        ("JOIN (VALUES (1, 2)) AS m(k) ON age = k", SchemaError, "1 values in each row"),
        ("JOIN (VALUES (1, 2)) AS m(k, K) ON age = k", SchemaError, "each column once"),
        ("JOIN (VALUES (1), ('a')) AS m(k) ON age = k", SchemaError, "INT64 and STRING"),
        ("JOIN (VALUES (NULL), (NULL)) AS m(k) ON age = k", SchemaError, "CAST(NULL AS STRING)"),
        ("JOIN (VALUES (age)) AS m(k) ON age = k", UnsupportedSql, "got the column 'age'"),
        ("JOIN (VALUES ((SELECT 3))) AS m(k) ON age = k", UnsupportedSql, "a subquery in an expression"),
        ("JOIN (VALUES (RAND())) AS m(k) ON age = k", UnsupportedSql, "RAND is not determined by the row"),
        ("JOIN (SELECT 1 AS k WHERE TRUE) AS m ON age = k", UnsupportedSql, "must not carry WHERE"),
        ("JOIN (SELECT MAX(1) AS k) AS m ON age = k", UnsupportedSql, "the aggregate MAX cannot stand here"),
        (
            "JOIN UNNEST([STRUCT(1, 2)]) AS m ON age = k",
            UnsupportedSql,
            "the first STRUCT must name its values",
        ),
        ("JOIN UNNEST([STRUCT(1 AS k), STRUCT(2 AS n)]) AS m ON age = k", SchemaError, "the same names"),
        ("JOIN UNNEST([STRUCT(1 AS k), 2]) AS m ON age = k", UnsupportedSql, "must hold nothing else"),
        (
            "JOIN UNNEST([STRUCT(STRUCT(1 AS n) AS k)]) AS m ON age = n",
            UnsupportedSql,
            "structs and JSON are not",
        ),
        ("JOIN UNNEST([1, 2]) ON age = 1", UnsupportedSql, "UNNEST must have a name"),
        ("JOIN UNNEST([1, 2]) AS k WITH OFFSET AS o ON age = k", UnsupportedSql, "WITH OFFSET"),
        ("JOIN UNNEST(ARRAY<INT64>[1]) AS k ON age = k", UnsupportedSql, "must not have a type"),
        (
            "JOIN UNNEST(GENERATE_ARRAY(1, 5000)) AS k ON age = k",
            UnsupportedSql,
            "at most 4000 values, got 5000",
        ),
    ],
)
def test_refused_rows(join: str, kind: type[QueryError], phrase: str) -> None:
    with pytest.raises(kind) as caught:
        read(FROM + join, CATALOG)
    assert phrase in str(caught.value)


@cases(
    ("item", "groups"),
    [
        ("(VALUES ('b'), ('a')) AS k(s)", PublicValues((("a",), ("b",)))),
        ("UNNEST([STRUCT('b' AS s), STRUCT(NULL)]) AS k", PublicValues(((None,), ("b",)))),
        ("(SELECT 'b' AS s UNION ALL SELECT 'a') AS k", PublicValues((("a",), ("b",)))),
        ("(SELECT 'a' AS s UNION DISTINCT SELECT 'a') AS k", PublicValues((("a",),))),
        ("(SELECT 'a' AS s) AS k", PublicValues((("a",),))),
        ("(SELECT DISTINCT s FROM (VALUES ('a'), ('a')) AS v(s)) AS k", PublicValues((("a",),))),
        ("(SELECT DISTINCT state AS s FROM states) AS k", PublicTable("states", ("State",))),
        ("(SELECT DISTINCT state AS s FROM states WHERE years > 3) AS k", None),
        ("(SELECT DISTINCT UPPER(state) AS s FROM states) AS k", None),
        ("(SELECT DISTINCT a.state AS s FROM states a JOIN states b USING (code)) AS k", None),
        ("(WITH c AS (SELECT state AS s FROM states) SELECT DISTINCT s FROM c) AS k", None),
    ],
)
def test_lists_of_groups(item: str, groups: object) -> None:
    query = read(LISTS + f"k.s, COUNT(*) FROM data RIGHT JOIN {item} ON state = k.s GROUP BY k.s", CATALOG)
    if groups is None:
        assert isinstance(query.public_groups, PublicRelation)
        assert query.public_groups.columns == ("s",)
    else:
        assert query.public_groups == groups


@cases(
    ("item", "kind", "phrase"),
    [
        ("(VALUES ('a'), ('a')) AS k(s)", OptionError, "each group once"),
        ("(VALUES (1)) AS k(s)", SchemaError, "must have the type of its key, STRING"),
        ("(SELECT state AS s FROM states) AS k", UnsupportedSql, "must not keep public rows"),
        ("(SELECT DISTINCT state AS s FROM visits) AS k", UnsupportedSql, "must keep the privacy unit"),
        (
            "(SELECT 'a' AS s UNION ALL SELECT state FROM states) AS k",
            UnsupportedSql,
            "must not keep public rows",
        ),
    ],
)
def test_refused_lists_of_groups(item: str, kind: type[QueryError], phrase: str) -> None:
    with pytest.raises(kind, match=phrase):
        read(LISTS + f"k.s, COUNT(*) FROM data RIGHT JOIN {item} ON state = k.s GROUP BY k.s", CATALOG)


def test_what_is_listed_is_in_the_key_of_the_query() -> None:
    texts = [
        FROM + "JOIN (VALUES (1, 'a')) AS m(k, s) ON age = m.k",
        FROM + "JOIN (VALUES (1, 'b')) AS m(k, s) ON age = m.k",
        FROM + "JOIN (VALUES (1.0, 'b')) AS m(k, s) ON age = m.k",
        LISTS + "s, COUNT(*) FROM data RIGHT JOIN (SELECT DISTINCT state AS s FROM states WHERE years > 3) "
        "ON state = s GROUP BY s",
        LISTS + "s, COUNT(*) FROM data RIGHT JOIN (SELECT DISTINCT state AS s FROM states WHERE years > 4) "
        "ON state = s GROUP BY s",
    ]
    assert len({query_key(read(text, CATALOG)) for text in texts}) == len(texts)
    same = FROM + "join unnest([struct(1 as k, 'a' as s)]) as m on data.age = k"
    assert query_key(read(same, CATALOG)) == query_key(read(texts[0], CATALOG))
