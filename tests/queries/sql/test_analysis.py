"""What the front door makes of queries that it answers."""

from __future__ import annotations

import re

import pytest

from sfumato.errors import OptionError
from sfumato.queries.outer.preparation import prepare
from sfumato.queries.outer.separation import separate
from sfumato.queries.plan.query import (
    AggregateKind,
    Column,
    ColumnType,
    Filter,
    GroupSelection,
    OrderItem,
    Project,
    Query,
    Scan,
    Schema,
)
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read, read_statement
from sfumato.queries.sql.catalog import Catalog
from sfumato.queries.sql.parser import LargerStatement, Statement, named_parameters, parse_statement
from sfumato.queries.sql.query_parameters import Parameters
from sfumato.queries.sql.rewriting import written_out
from tests.cases import cases
from tests.queries.canonical_sql import canonical_text
from tests.queries.people import CATALOG, PEOPLE

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=1e-8, max_groups_contributed=2) "


def ask(select: str, **session: object) -> Query:
    return read(DP + select, CATALOG, **session)  # type: ignore[arg-type]


def test_the_query_of_the_front_page() -> None:
    query = ask(
        "state, COUNT(*) AS n, AVG(income, contribution_bounds_per_group => (0, 200000)) AS income "
        "FROM data GROUP BY state"
    )
    assert query.relation == Scan("data", PEOPLE, "person_id")
    assert [(key.name, key.expression.sql, key.expression.type) for key in query.keys] == [
        ("state", "`state`", ColumnType.TEXT)
    ]
    count, mean = query.aggregates
    assert (count.kind, count.name, count.group_bounds) == (AggregateKind.COUNT_ROWS, "n", None)
    assert mean.kind is AggregateKind.AVG
    assert mean.expression is not None
    assert (mean.expression.sql, mean.group_bounds) == ("`Income`", (0.0, 200000.0))
    assert query.output == ("state", "n", "income")
    assert (query.options.epsilon, query.options.delta) == (0.5, 1e-8)
    assert query.options.max_groups_contributed == 2
    assert query.public_groups is None


@cases(
    ("call", "kind", "group_bounds", "row_bounds"),
    [
        ("COUNT(*)", AggregateKind.COUNT_ROWS, None, None),
        ("count(*, contribution_bounds_per_group => (0, 5))", AggregateKind.COUNT_ROWS, (0.0, 5.0), None),
        ("COUNT(age)", AggregateKind.COUNT_VALUES, None, None),
        ("COUNT(DISTINCT person_id)", AggregateKind.COUNT_UNITS, None, None),
        ("COUNT(DISTINCT data.PERSON_ID)", AggregateKind.COUNT_UNITS, None, None),
        ("SUM(age, contribution_bounds_per_group => (-3, +4.5))", AggregateKind.SUM, (-3.0, 4.5), None),
        ("SUM(age, CONTRIBUTION_BOUNDS_PER_GROUP=>(-1e3,.5))", AggregateKind.SUM, (-1000.0, 0.5), None),
        ("AVG(age * 2, contribution_bounds_per_group => (5, 5))", AggregateKind.AVG, (5.0, 5.0), None),
    ],
)
def test_aggregates_and_bounds(
    call: str, kind: AggregateKind, group_bounds: tuple[float, float] | None, row_bounds: None
) -> None:
    (aggregate,) = ask(f"{call} FROM data").aggregates
    assert (aggregate.kind, aggregate.group_bounds, aggregate.row_bounds) == (kind, group_bounds, row_bounds)


def test_row_bounds_need_a_known_number_of_rows() -> None:
    call = "SUM(age, contribution_bounds_per_row => (0, 9))"
    with_rows = ask(f"{call} FROM data", defaults={"max_rows_per_group": 3})
    assert with_rows.aggregates[0].row_bounds == (0.0, 9.0)
    assert with_rows.options.max_rows_per_group == 3
    assert ask(f"{call} FROM lines").aggregates[0].row_bounds == (0.0, 9.0)
    both = ask(
        "SUM(age, contribution_bounds_per_row => (0, 9), contribution_bounds_per_group => (0, 20)) FROM data"
    )
    assert (both.aggregates[0].row_bounds, both.aggregates[0].group_bounds) == ((0.0, 9.0), (0.0, 20.0))


def test_names_of_the_answer() -> None:
    query = ask(
        "state, COUNT(*), COUNT(*), UPPER(sex), COUNT(Income), COUNT(DISTINCT person_id), "
        "SUM(age + 1, contribution_bounds_per_group => (0, 1)), COUNT(age) AS count_2 FROM data GROUP BY 1, 4"
    )
    assert query.output == (
        "state",
        "count",
        "count_3",
        "key_2",
        "count_Income",
        "count_units",
        "sum",
        "count_2",
    )
    assert len(set(query.output)) == len(query.output)


def test_a_key_need_not_be_shown() -> None:
    query = ask("COUNT(*) AS STATE FROM data GROUP BY state")
    assert query.output == ("STATE",)
    assert [key.name for key in query.keys] == ["state_2"]


def test_keys_alone_are_a_private_list_of_groups() -> None:
    query = ask("state FROM data GROUP BY state")
    assert query.aggregates == ()
    assert query.output == ("state",)


@cases(
    "select",
    [
        "UPPER(state) AS s, COUNT(*) AS n FROM data GROUP BY s",
        "upper(state) AS s, COUNT(*) AS n FROM data GROUP BY S",
        "UPPER(data.state) s, COUNT(*) n FROM data GROUP BY 1",
        "UPPER(d.State) s, COUNT(*) n FROM `data` AS d GROUP BY upper ( D.state )",
        "(UPPER((state))) AS s, /* rows */ COUNT(*) AS n FROM (data) GROUP BY ALL",
        "UPPER(state) AS s, COUNT(*) AS n FROM DATA GROUP BY s, 1, UPPER(state) -- the same key three times",
    ],
)
def test_spelling_leaves_no_trace(select: str) -> None:
    plain = ask("UPPER(state) AS s, COUNT(*) AS n FROM data GROUP BY UPPER(state)")
    assert ask(select) == plain
    assert canonical_text(ask(select)) == canonical_text(plain)
    assert query_key(ask(select)) == query_key(plain)


@cases(
    "select",
    [
        "state AS s, COUNT(*) AS n FROM data GROUP BY s",
        "UPPER(state) AS s, COUNT(*) AS m FROM data GROUP BY s",
        "UPPER(state) AS s, COUNT(age) AS n FROM data GROUP BY s",
        "UPPER(state) AS s, COUNT(*) AS n FROM data WHERE age > 1 GROUP BY s",
        "UPPER(state) AS s, COUNT(*) AS n FROM lines GROUP BY s",
        "UPPER(state) AS s, COUNT(*) AS n FROM data GROUP BY s LIMIT 1",
        "UPPER(state) AS s, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM data GROUP BY s",
    ],
)
def test_another_query_has_another_text(select: str) -> None:
    plain = ask("UPPER(state) AS s, COUNT(*) AS n FROM data GROUP BY s")
    assert canonical_text(ask(select)) != canonical_text(plain)
    assert query_key(ask(select)) != query_key(plain)


def test_queries_that_cast_to_other_types_are_other_queries() -> None:
    types = ("BOOL", "DATE", "FLOAT64", "INT64", "NUMERIC", "TIMESTAMP", "UINT64")
    keys = {query_key(ask(f"COUNT(CAST(state AS {type_})) AS n FROM data")) for type_ in types}
    assert len(keys) == len(types)


def test_an_alias_goes_before_a_column_in_group_by() -> None:
    query = ask("UPPER(state) AS state, COUNT(*) FROM data GROUP BY state")
    assert query.keys[0].expression.sql == "UPPER(`state`)"


def test_where_filters_below_everything() -> None:
    query = ask("COUNT(*) FROM data AS d WHERE d.age BETWEEN 18 AND 65 AND income IS NOT NULL")
    assert isinstance(query.relation, Filter)
    assert query.relation.predicate.sql == "(`age` BETWEEN 18 AND 65) AND (NOT (`Income` IS NULL))"
    assert query.options.max_groups_contributed is None


def test_subqueries_keep_the_unit_through_renaming() -> None:
    query = ask(
        "band, COUNT(DISTINCT who) FROM ("
        "  SELECT p AS who, IF(age > 40, 'old', 'young') AS band FROM ("
        "    SELECT person_id AS p, age, state AS person_id FROM data WHERE sex = 'F') AS inner_one"
        "  WHERE inner_one.person_id <> 'x') GROUP BY band"
    )
    outer = query.relation
    assert isinstance(outer, Project)
    assert outer.unit == "who"
    assert isinstance(outer.child, Filter)
    assert isinstance(outer.child.child, Project)
    assert outer.child.child.unit == "p"
    assert [column.type for column in outer.schema.columns] == [ColumnType.INTEGER, ColumnType.TEXT]


def test_rows_as_units_need_no_unit_in_a_subquery() -> None:
    query = ask("state, COUNT(*) FROM (SELECT state FROM lines) GROUP BY state")
    assert query.relation.unit is None
    assert query.options.max_groups_contributed is None
    assert query.options.max_rows_per_group is None


def test_stars_in_subqueries() -> None:
    assert ask("COUNT(*) FROM (SELECT * FROM data)").relation == CATALOG.private["data"]
    wider = ask("COUNT(*) FROM (SELECT d.*, age + 1 AS older FROM data AS d)").relation
    usable = [column.name for column in PEOPLE.columns if column.type is not None]
    assert [column.name for column in wider.schema.columns] == [*usable, "older"]


def test_common_tables_are_subqueries() -> None:
    text = (
        "WITH data AS (SELECT person_id, age FROM data WHERE age > 3), "
        "old AS (SELECT * FROM data WHERE age > 60) " + DP + "COUNT(*) FROM old AS o WHERE o.age < 90"
    )
    written_out = ask(
        "COUNT(*) FROM (SELECT * FROM (SELECT person_id, age FROM data WHERE age > 3) WHERE age > 60) "
        "WHERE age < 90"
    )
    assert read(text, CATALOG) == written_out


def test_order_and_limit_are_post_processing() -> None:
    query = ask(
        "state, UPPER(sex) AS u, COUNT(*) AS n FROM data GROUP BY state, u "
        "ORDER BY N DESC, 1, UPPER(sex) NULLS LAST, data.state DESC NULLS FIRST LIMIT 7"
    )
    assert query.order_by == (
        OrderItem("n", descending=True, nulls_first=False),
        OrderItem("state", descending=False, nulls_first=True),
        OrderItem("u", descending=False, nulls_first=False),
        OrderItem("state", descending=True, nulls_first=True),
    )
    assert query.limit == 7


def test_defaults_fill_what_options_leave_out() -> None:
    defaults = {"epsilon": 0.1, "delta": 1e-9, "max_groups_contributed": 3, "max_rows_per_group": None}
    query = read("SELECT state, COUNT(*) FROM data GROUP BY state", CATALOG, defaults=defaults)
    assert (query.options.epsilon, query.options.delta, query.options.max_groups_contributed) == (
        0.1,
        1e-9,
        3,
    )
    partly = read(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2) state, COUNT(*) FROM data GROUP BY state",
        CATALOG,
        defaults=defaults,
    )
    assert (partly.options.epsilon, partly.options.delta) == (2.0, 1e-9)
    bare = read("SELECT WITH DIFFERENTIAL_PRIVACY COUNT(*) FROM data", CATALOG, defaults=defaults)
    assert bare.options.epsilon == 0.1


def test_a_plain_select_has_delta_zero_without_a_default() -> None:
    assert read("SELECT COUNT(*) FROM data", CATALOG, defaults={"epsilon": 1}).options.delta == 0.0
    with pytest.raises(OptionError, match="delta must be positive where the groups are unknown"):
        read(
            "SELECT state, COUNT(*) FROM data GROUP BY state",
            CATALOG,
            defaults={"epsilon": 1, "max_groups_contributed": 1},
        )


def test_strategy_and_unit_column() -> None:
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(delta=1e-8, EPSILON=1, max_groups_contributed=4, "
        "privacy_unit_column=data.Person_ID, group_selection_strategy=gaussian_threshold) "
        "state, COUNT(*) FROM data GROUP BY state"
    )
    assert read(text, CATALOG).options.group_selection is GroupSelection.GAUSSIAN_THRESHOLD
    default = read(
        text.replace(", group_selection_strategy=gaussian_threshold", ""),
        CATALOG,
        defaults={"group_selection_strategy": "LAPLACE_THRESHOLD"},
    )
    assert default.options.group_selection is GroupSelection.LAPLACE_THRESHOLD


@cases(
    "select",
    [
        "state, COUNT(*) FROM data GROUP BY state ORDER BY state LIMIT 3",
        "LOWER(state) AS `a b`, AVG(-age, contribution_bounds_per_group => (0, 1e9)) FROM data GROUP BY 1",
        "COUNT(DISTINCT p) FROM (SELECT person_id AS p FROM data WHERE NOT (age = 1 OR age = 2))",
        "COUNT(*) FROM lines WHERE CAST(Income AS INT64) IN (1, -2) OR state LIKE '%x_' OR 1.5e0 < income",
        "CASE age WHEN 1 THEN 'a' ELSE state END AS k, COUNT(*) FROM data GROUP BY k",
        "state FROM data GROUP BY state, (age + 1) * 2, MOD(age, 5)",
    ],
)
def test_canonical_text_reads_as_itself(select: str) -> None:
    query = ask(select)
    again = read(canonical_text(query), CATALOG)
    assert canonical_text(again) == canonical_text(query)
    assert query_key(again) == query_key(query)


def test_the_queries_of_the_documentation_are_answered(pytestconfig: pytest.Config) -> None:
    page = (pytestconfig.rootpath / "docs" / "sql.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```sql\n(.*?)^ *```", page, flags=re.DOTALL | re.MULTILINE)
    public = {"states": Schema((Column("state", ColumnType.TEXT), Column("region", ColumnType.TEXT)))}
    assert len(blocks) >= 2
    catalog = Catalog(CATALOG.private, public)
    values = Parameters.of({"epsilon": 0.5, "least": 18, "states": ["CA", "NY"]})
    kinds = set()
    for block in blocks:
        statement = written_out(parse_statement(block, values.only(named_parameters(block))))
        kinds.add(type(statement))
        if isinstance(statement, Statement):
            assert read_statement(statement, catalog).aggregates
            continue
        outer = separate(statement, catalog)
        priced = [price(read_statement(each, catalog)) for each in outer.private]
        assert prepare(outer, priced, range(len(priced)), catalog.public).columns
    assert kinds == {Statement, LargerStatement}


def test_having_in_a_subquery_may_name_its_columns() -> None:
    grouped = "SELECT person_id, COUNT(*) + 1 AS n FROM data GROUP BY person_id HAVING {} * 2 > 3"
    texts = [
        canonical_text(
            read(f"SELECT COUNT(*) FROM ({grouped.format(name)})", CATALOG, defaults={"epsilon": 1.0})
        )
        for name in ("n", "(COUNT(*) + 1)")
    ]
    assert texts[0] == texts[1]
