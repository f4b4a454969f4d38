"""Public groups: joined lists, lists of literals, and the argument of the session."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pytest

from sfumato.errors import OptionError, UnsupportedSql
from sfumato.queries.plan.query import (
    Column,
    ColumnType,
    GroupSelection,
    PublicTable,
    PublicValues,
    Query,
    Scan,
    Schema,
)
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases
from tests.queries.canonical_sql import canonical_text
from tests.queries.people import CATALOG, PEOPLE
from tests.run_time import run_time

if run_time(__name__):
    import pandas as pd


DP = (
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0, max_groups_contributed=2, "
    "group_selection_strategy=PUBLIC_GROUPS) "
)


def ask(select: str) -> Query:
    return read(DP + select, CATALOG)


def listed(keys: str, **groups: object) -> Query:
    return read(
        f"SELECT {keys}, COUNT(*) AS n FROM data GROUP BY {keys}",
        CATALOG,
        defaults={"epsilon": 1.0, "max_groups_contributed": 1},
        public_groups=groups,  # type: ignore[arg-type]
    )


LIST = "(SELECT DISTINCT state AS s FROM states)"
JOINS = [
    "p.s AS state, COUNT(*) FROM data d RIGHT JOIN {list} AS p ON d.state = p.s GROUP BY p.s",
    "d.state, COUNT(*) FROM data d RIGHT JOIN {list} AS p ON (p.s = (d.state)) GROUP BY d.state",
    "s AS state, COUNT(*) FROM data RIGHT JOIN {list} ON s = state GROUP BY s",
    "state, COUNT(*) FROM (SELECT DISTINCT state FROM states) p LEFT JOIN data USING (state) GROUP BY state",
    "state, COUNT(*) FROM data RIGHT OUTER JOIN (SELECT DISTINCT State FROM states) USING (state) GROUP BY 1",
]


@cases("select", [join.format(list=LIST) for join in JOINS])
def test_a_joined_list_of_groups(select: str) -> None:
    query = ask(select)
    assert query.public_groups == PublicTable("states", ("State",))
    assert query.relation == CATALOG.private["data"]
    assert [(key.name, key.expression.sql) for key in query.keys] == [("state", "`state`")]
    assert query.options.group_selection is GroupSelection.PUBLIC_GROUPS
    assert canonical_text(read(canonical_text(query), CATALOG)) == canonical_text(query)


def test_columns_follow_the_order_of_the_keys() -> None:
    join = (
        "FROM data AS d RIGHT JOIN (SELECT DISTINCT state, years FROM states) AS p "
        "ON d.state = p.state AND d.age + 1 = p.years"
    )
    assert ask(f"p.state, p.years, COUNT(*) {join} GROUP BY p.state, p.years").public_groups == PublicTable(
        "states", ("State", "years")
    )
    turned = ask(f"COUNT(*) {join} GROUP BY p.years, p.state")
    assert turned.public_groups == PublicTable("states", ("years", "State"))
    assert [key.expression.sql for key in turned.keys] == ["`age` + 1", "`state`"]


@pytest.mark.parametrize(
    "join",
    [
        "RIGHT JOIN UNNEST(['b', 'a']) AS k ON state = k",
        "RIGHT JOIN (SELECT DISTINCT k FROM UNNEST(['a', 'b', 'a']) AS k) AS p ON data.state = p.k",
    ],
)
def test_a_list_of_literals(join: str) -> None:
    query = ask(f"k, COUNT(*) FROM data {join} GROUP BY k")
    assert query.public_groups == PublicValues((("a",), ("b",)))
    assert query.output == ("k", "count")


def test_where_filters_private_rows_only() -> None:
    query = ask(
        "p.state, COUNT(*) FROM data d RIGHT JOIN (SELECT DISTINCT state FROM states) p USING (state) "
        "WHERE age > 3 GROUP BY p.state"
    )
    assert query.public_groups == PublicTable("states", ("State",))
    with pytest.raises(ValueError, match="'p' names no table"):
        ask(
            "p.state, COUNT(*) FROM data d RIGHT JOIN (SELECT DISTINCT state FROM states) p USING (state) "
            "WHERE p.state > 'a' GROUP BY p.state"
        )


def test_the_argument_makes_a_cross_product() -> None:
    query = listed("state, age", age=[2, 1], State=["x", None])
    assert query.public_groups == PublicValues(((None, 1), (None, 2), ("x", 1), ("x", 2)))
    assert query.options.group_selection is GroupSelection.PUBLIC_GROUPS
    assert query.options.delta == 0.0
    assert query == listed("state, age", state=[None, "x"], age=(1, 2))


def test_the_argument_may_list_rows() -> None:
    query = read(
        "SELECT state AS s, age, COUNT(*) FROM data GROUP BY s, age",
        CATALOG,
        defaults={"epsilon": 1.0, "max_groups_contributed": 1},
        public_groups={("age", "s"): [(3, "x"), [4, "y"]]},  # type: ignore[dict-item]
    )
    assert query.public_groups == PublicValues((("x", 3), ("y", 4)))


@cases(
    ("key", "given", "stored"),
    [
        ("age", np.int64(3), 3),
        ("Income", 3, 3.0),
        ("Income", np.float32(0.5), 0.5),
        ("Income", -0.0, 0.0),
        ("married", np.True_, True),
        ("state", np.str_("x"), "x"),
        ("born", dt.date(2020, 1, 2), dt.date(2020, 1, 2)),
        ("born", np.datetime64("2020-01-02"), dt.date(2020, 1, 2)),
        ("seen", dt.datetime(2020, 1, 2, 3), dt.datetime(2020, 1, 2, 3)),
        (
            "seen",
            dt.datetime(2020, 1, 2, 3, tzinfo=dt.timezone(dt.timedelta(hours=2))),
            dt.datetime(2020, 1, 2, 1),
        ),
    ],
)
def test_values_are_stored_in_the_type_of_the_key(key: str, given: object, stored: object) -> None:
    groups = listed(key, **{key: [given]}).public_groups
    assert isinstance(groups, PublicValues)
    ((value,),) = groups.rows
    assert value == stored
    assert type(value) is type(stored)


@cases(
    ("keys", "groups", "phrase"),
    lambda: [
        ("state", {"sate": ["x"]}, "must list the GROUP BY item 'state'"),
        ("state", {"state": ["x"], "age": [1]}, "must name the GROUP BY items only, got 'age'"),
        ("state, age", {"state": ["x"]}, "must list the GROUP BY item 'age'"),
        ("state", {"state": []}, "at least one group"),
        ("state", {"state": "xyz"}, "a list for each key, got a value of type str"),
        ("state", {"state": 3}, "a list for each key, got a value of type int"),
        ("state", [("state", ["x"])], "must map keys to values, got a value of type list"),
        ("age", {"age": [np.array([1, 2])]}, "must hold INT64 values"),
        ("seen", {"seen": [pd.NaT]}, "must hold TIMESTAMP values, got NaT"),
        ("state", {"state": ["x", "x"]}, "list each group once"),
        ("state", {"state": [3]}, "must hold STRING values, got 3"),
        ("state", {"state": ["a\0b"]}, "must hold STRING values"),
        ("age", {"age": [True]}, "must hold INT64 values, got True"),
        ("age", {"age": [1.0]}, "must hold INT64 values, got 1.0"),
        ("age", {"age": [2**63]}, "must hold INT64 values"),
        ("Income", {"Income": [float("nan")]}, "must hold FLOAT64 values, got nan"),
        ("Income", {"Income": [10**400]}, "must hold FLOAT64 values"),
        ("born", {"born": [dt.datetime(2020, 1, 1)]}, "must hold DATE values"),
        ("seen", {"seen": ["2020-01-01"]}, "must hold TIMESTAMP values"),
        ("state, age", {"state": range(2000), "age": range(2000)}, "at most 1000000 groups"),
        ("state, age", {("state", "age"): [("x",)]}, "rows of 2 values"),
    ],
)
def test_refused_arguments(keys: str, groups: dict[str, list[object]], phrase: str) -> None:
    with pytest.raises(OptionError) as caught:
        read(
            f"SELECT {keys}, COUNT(*) AS n FROM data GROUP BY {keys}",
            CATALOG,
            defaults={"epsilon": 1.0, "max_groups_contributed": 1},
            public_groups=groups,
        )
    assert phrase in str(caught.value)


def test_one_list_at_a_time() -> None:
    join = "FROM data RIGHT JOIN (SELECT DISTINCT state FROM states) USING (state) GROUP BY state"
    with pytest.raises(OptionError, match="keep one of them"):
        read(f"{DP} state, COUNT(*) {join}", CATALOG, public_groups={"state": ["x"]})
    with pytest.raises(OptionError, match="must come with GROUP BY"):
        read(f"{DP} COUNT(*) FROM data", CATALOG, public_groups={"state": ["x"]})
    with pytest.raises(OptionError, match="must be PUBLIC_GROUPS where the groups are listed, got LAPLACE"):
        read(
            DP.replace("PUBLIC_GROUPS", "LAPLACE_THRESHOLD") + "state, COUNT(*) FROM data GROUP BY state",
            CATALOG,
            public_groups={"state": ["x"]},
        )


def test_a_list_of_another_type_is_refused() -> None:
    floats = Catalog(CATALOG.private, {"sizes": Schema((Column("size", ColumnType.FLOAT),))})
    join = "RIGHT JOIN (SELECT DISTINCT size AS {0} FROM sizes) USING ({0}) GROUP BY {0}"
    select = DP + "{0}, COUNT(*) FROM data " + join
    assert read(select.format("Income"), floats).public_groups == PublicTable("sizes", ("size",))
    with pytest.raises(ValueError, match="must have the type of its key, INT64"):
        read(select.format("age"), floats)


def test_a_private_table_is_no_public_list() -> None:
    private = Catalog({**CATALOG.private, "other": Scan("other", PEOPLE, "person_id")}, {})
    hidden = "(SELECT DISTINCT state FROM other)"
    with pytest.raises(UnsupportedSql, match="keep the privacy unit"):
        read(f"{DP} state, COUNT(*) FROM data RIGHT JOIN {hidden} USING (state) GROUP BY state", private)
