"""Whatever the text, the front door answers with a plan or with one of its own errors."""

from __future__ import annotations

import functools
import logging
import re

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from sqlglot import ErrorLevel, exp, parse_one

from sfumato.errors import QueryError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.nodes import (
    Distinct,
    InPublic,
    JoinOnUnit,
    JoinPublic,
    PerUnit,
    Project,
    PublicRows,
    PublicScan,
    Relation,
    Scan,
    Union,
    UnitWindows,
)
from sfumato.queries.plan.query import ColumnType, Query, Schema
from sfumato.queries.plan.query_key import query_key
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.clauses.joins import scans
from tests.cases import cases
from tests.queries.canonical_sql import canonical_text
from tests.queries.people import CATALOG

DEFAULTS = {"epsilon": 1.0, "delta": 1e-8, "max_groups_contributed": 2, "max_rows_per_group": 3}

CLAUSE = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS"
SEEDS = [
    (
        f"{CLAUSE}(epsilon=0.5, delta=1e-8, max_groups_contributed=1) state, COUNT(*) AS n, "
        "AVG(age, contribution_bounds_per_group => (0, 99)) FROM data WHERE age > 3 GROUP BY state"
    ),
    (
        "SELECT state, SUM(age, contribution_bounds_per_row => (-1, 1.5)) "
        "FROM (SELECT person_id, UPPER(state) AS state, age FROM data WHERE born < '2020-01-01') AS d "
        "GROUP BY 1 ORDER BY 2 DESC NULLS LAST LIMIT 5"
    ),
    (
        f"{CLAUSE}(group_selection_strategy=PUBLIC_GROUPS) p.state, COUNT(DISTINCT person_id) FROM data "
        "RIGHT OUTER JOIN (SELECT DISTINCT state FROM states) AS p USING (state) GROUP BY p.state"
    ),
    (
        f"WITH c AS (SELECT * FROM data) {CLAUSE}(group_selection_strategy=PUBLIC_GROUPS) k, COUNT(age) "
        "FROM c RIGHT JOIN UNNEST(['a', 'b']) AS k ON c.state = k GROUP BY k"
    ),
    (
        "SELECT COUNT(*) FROM data "
        "WHERE CASE WHEN age IN (1, 2) THEN LENGTH(state) ELSE EXTRACT(YEAR FROM born) END > 7"
    ),
    (
        "SELECT code, COUNT(*) / 2 AS half, ROUND(AVG(age, contribution_bounds_per_group => (0, 9)), 1) AS a "
        "FROM data d JOIN states s ON d.state = s.state AND d.age > s.years GROUP BY code "
        "HAVING COUNT(*) > 3 AND half < 9 ORDER BY COUNT(*) * 2 DESC, a LIMIT 5 OFFSET 2"
    ),
    (
        "SELECT n, COUNT(*) FROM (SELECT person_id, COUNT(*) AS n, MAX(age) - MIN(age) AS s FROM visits "
        "GROUP BY person_id HAVING SUM(age) > 3) v LEFT JOIN data USING (person_id) GROUP BY n"
    ),
    (
        "SELECT COUNT(*) FROM (SELECT person_id, age FROM data UNION ALL SELECT DISTINCT person_id, years "
        "FROM visits CROSS JOIN states) WHERE age NOT IN (SELECT years FROM states WHERE code <> 'x')"
    ),
    (
        "SELECT w, COUNT(*) AS c FROM (SELECT *, MAX(age) OVER (PARTITION BY person_id, sex) AS w FROM data "
        "QUALIFY ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY seen DESC) = 1) GROUP BY w"
    ),
    (
        "SELECT m.s, SUM(age - (SELECT MIN(years) FROM states), contribution_bounds_per_group => (0, 9)) "
        "FROM data d JOIN (VALUES (1, 'a'), (2, NULL)) AS m(k, s) ON d.age = m.k "
        "WHERE Income > (SELECT MAX(size) FROM states WHERE code = 'x') + 1 GROUP BY m.s"
    ),
    (
        f"{CLAUSE}(group_selection_strategy=PUBLIC_GROUPS) k.c, COUNT(*) FROM data RIGHT JOIN (SELECT "
        "DISTINCT a.code AS c FROM states a CROSS JOIN UNNEST([STRUCT(1 AS n, 'x' AS s), (2, 'y')]) AS b "
        "WHERE a.years > b.n) AS k ON state = k.c GROUP BY k.c"
    ),
    (
        "SELECT p, SUM(q, contribution_bounds_per_group => (0, 9)) FROM data AS d, UNNEST(photo) AS p "
        "LEFT JOIN UNNEST(d.photo) AS q JOIN UNNEST([1, 2]) AS r ON q = r WHERE p > 3 GROUP BY p"
    ),
    (
        "FROM data |> WHERE age > 3 |> EXTEND DATE_ADD(born, INTERVAL 7 DAY) AS d |> AGGREGATE WITH "
        "DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) COUNT(*) AS n GROUP BY LAST_DAY(d) AS m |> WHERE n > 3 "
        "|> ORDER BY n |> LIMIT 3"
    ),
    (
        "SELECT WIDTH_BUCKET(Income, 0, 9, 3) AS b, COUNT(*) FROM lines JOIN states USING (state) "
        "WHERE DATE_DIFF(born, '2020-01-01', MONTH) > 3 AND REPLACE(sex, 'a', '') IS DISTINCT FROM 'b' "
        "GROUP BY b"
    ),
    (
        "SELECT FORMAT_DATE('%G-W%V', born) AS w, COUNTIF(age > 3), AVG(married) FILTER (WHERE age < 9), "
        "MAX(born, contribution_bounds_per_row => ('2020-01-01', '2021-01-01')) AS d FROM data "
        "WHERE REGEXP_CONTAINS(state, '^[a-z]+$') AND DATE_TRUNC(born, WEEK) < DATE(age, 1, 2) GROUP BY w"
    ),
]
WORD = re.compile(r"\s+|[A-Za-z_]+|\d+\.?\d*|'[^']*'|.", re.DOTALL)
WORDS = [
    *sorted({word for seed in SEEDS for word in WORD.findall(seed)}),
    *(
        "*",
        "HAVING",
        "OVER",
        "UNION",
        "ALL",
        "DISTINCT",
        "NULL",
        "-",
        "e",
        "=>",
        "`",
        '"',
        "/*",
        "--",
        "@",
        "?",
    ),
    *(
        "[",
        "]",
        "{",
        "}",
        "\\",
        "::",
        "|>",
        "||",
        "0x1F",
        "1e999",
        "INTERVAL",
        "ARRAY",
        "STRUCT",
        "EXISTS",
        "CAST",
    ),
    *(
        "VALUES",
        "LATERAL",
        "PIVOT",
        "TABLESAMPLE",
        "QUALIFY",
        "WINDOW",
        "ROLLUP",
        "b''",
        "visits",
        "RAND()",
        ";",
    ),
]


def check(text: str) -> None:
    try:
        query = read(text, CATALOG, defaults=DEFAULTS)
    except QueryError:
        return
    check_plan(query)


def check_plan(query: Query) -> None:
    assert unit_is_kept(query.relation)
    assert query.options.epsilon > 0
    rows = query.relation.unit is None
    assert not query.keys or rows or query.options.max_groups_contributed is not None
    assert not query.keys or query.public_groups is not None or query.options.delta > 0
    assert len({name.casefold() for name in query.output}) == len(query.output)
    if query.public_groups is None:
        again = read(canonical_text(query), CATALOG)
        assert canonical_text(again) == canonical_text(query)
        assert query_key(again) == query_key(query)


def unit_is_kept(relation: Relation) -> bool:
    """The unit of every node is the unit of the scans below, passed on as it is."""
    if isinstance(relation, Scan):
        return relation.unit == ("person_id" if relation.table in ("data", "visits") else None)
    if isinstance(relation, (Project, PerUnit)) and relation.unit is not None:
        items = relation.columns if isinstance(relation, Project) else relation.keys
        kept = [named for named in items if named.name == relation.unit]
        if len(kept) != 1 or kept[0].expression.sql != f"`{relation.child.unit}`":
            return False
    if isinstance(relation, JoinOnUnit):
        return relation.unit is not None and unit_is_kept(relation.left) and unit_is_kept(relation.right)
    if isinstance(relation, Union):
        places = {
            [column.name for column in part.schema.usable.columns].index(str(part.unit))
            for part in relation.parts
        }
        return len(places) == 1 and all(unit_is_kept(part) for part in relation.parts)
    if isinstance(relation, (PerUnit, UnitWindows, Distinct)) and relation.unit is None:
        return False
    if isinstance(relation, (JoinPublic, InPublic)):
        assert not list(scans(relation.public))
    assert not isinstance(relation, PublicScan | PublicRows)
    return unit_is_kept(relation.child)


ARROW = {
    ColumnType.BOOLEAN: pa.bool_(), ColumnType.INTEGER: pa.int64(), ColumnType.FLOAT: pa.float64(),
    ColumnType.TEXT: pa.string(), ColumnType.DATE: pa.date32(), ColumnType.TIMESTAMP: pa.timestamp("us"),
}  # fmt: skip


def empty(schema: Schema) -> pa.Table:
    """A table of that schema without rows; a column that no query can use is a list."""
    columns = {
        c.name: pa.array([], pa.list_(pa.int64()) if c.type is None else ARROW[c.type])
        for c in schema.columns
    }
    return pa.table(columns)


@functools.cache
def engine() -> DuckDBEngine:
    scans_ = {name: empty(scan.schema) for name, scan in CATALOG.private.items()}
    return DuckDBEngine(
        open_source(scans_ | {name: empty(s) for name, s in CATALOG.public.items()}), threads=1
    )


def runs(text: str) -> bool:
    """Whether a text is refused by one of our errors, or answered, over tables without rows."""
    try:
        query = read(text, CATALOG, defaults=DEFAULTS)
        priced = price(query)
        engine().check(priced.job)
    except QueryError:
        return False
    check_plan(query)
    assert engine().aggregate(priced.job, bytes(32)).num_columns >= 1
    return True


@cases("seed", SEEDS)
def test_the_seeds_are_answered(seed: str) -> None:
    check_plan(read(seed, CATALOG, defaults=DEFAULTS))


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_any_words(words: list[str]) -> None:
    check(" ".join(["SELECT", *words]))


@settings(max_examples=50)
@given(st.sampled_from(SEEDS), st.text(max_size=40), st.integers(0, 400))
def test_text_inside_a_query(seed: str, text: str, place: int) -> None:
    check(seed[:place] + text + seed[place:])


@settings(max_examples=150)
@given(st.data())
def test_mutated_queries(data: st.DataObject) -> None:
    words = WORD.findall(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(words) - 1))
        change = data.draw(st.sampled_from(["drop", "double", "replace", "swap", "insert"]))
        other = data.draw(st.integers(0, len(words) - 1))
        if change == "drop" and len(words) > 1:
            del words[place]
        elif change == "double":
            words.insert(place, words[place])
        elif change == "replace":
            words[place] = data.draw(st.sampled_from(WORDS))
        elif change == "swap":
            words[place], words[other] = words[other], words[place]
        else:
            words.insert(place, " " + data.draw(st.sampled_from(WORDS)) + " ")
    check("".join(words))


def test_nothing_of_a_refused_query_reaches_a_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        command = "WITH a AS (SELECT 1) FETCH FIRST 1 ROWS ONLY"
        for text in ("CALL p()", "SHOW TABLES", "SELECT * FROM data", "LOAD 'x'", command):
            check(text)
    assert caplog.records == []


HOSTILE = [
    "read_csv('/etc/passwd')", "parquet_scan('x')", "glob('*')", "duckdb_tables()", "getenv('HOME')",
    "current_setting('x')", "RAND()", "GENERATE_UUID()", "CURRENT_TIMESTAMP()", "nextval('s')", "sleep(1)",
    "pg_read_file('x')", "query('DROP TABLE t0')", "(SELECT 1; DROP TABLE data)", "EXTERNAL_QUERY('c', 'q')",
    "t0", "main.t0", "information_schema.tables", "pragma_table_info('t0')", "system.main.duckdb_tables",
    "(COPY data TO 'x')", "(ATTACH 'x')", "(PRAGMA database_list)", "(INSTALL httpfs)", "@@x", "$1", "?",
    "LOAD_FILE('x')", "hash(person_id)", "x'00'", "ERROR('boom')", "SESSION_USER()", "array_agg(person_id)",
    "(SELECT MAX(person_id) FROM data)", "EXISTS (SELECT 1 FROM visits)", "UNNEST([1, 2])", "data.*", "*",
    "u", "c0", "rowid", "_rowid_", "ROW_NUMBER() OVER ()", "LAG(age) OVER (ORDER BY age)", "ML.PREDICT(1)",
]  # fmt: skip
FORMS = [
    "SELECT {0}, COUNT(*) FROM data GROUP BY {0}", "SELECT COUNT(*) FROM {0}", "SELECT COUNT({0}) FROM data",
    "SELECT COUNT(*) FROM data WHERE {0} = 1", "SELECT COUNT(*) FROM data JOIN {0} USING (person_id)",
    "SELECT COUNT(*) FROM data JOIN states ON {0}", "SELECT COUNT(*) AS n FROM data ORDER BY {0}",
    "SELECT COUNT(*) AS n FROM data HAVING n > {0}", "SELECT COUNT(*) FROM data LIMIT {0}",
    "SELECT COUNT(*) FROM (SELECT person_id, {0} AS x FROM data)", "WITH c AS {0} SELECT COUNT(*) FROM c",
    "SELECT COUNT(*) FROM (SELECT * FROM data UNION ALL SELECT * FROM {0})", "FROM {0} |> AGGREGATE COUNT(*)",
    "SELECT COUNT(*) FROM data WHERE age IN (SELECT {0} FROM states)",
    "FROM data |> {0} |> AGGREGATE COUNT(*)",
    "SELECT COUNT(*) FROM data WHERE age IN (SELECT years FROM {0})", "SELECT COUNT(*) + {0} FROM data",
    "SELECT SUM(age, contribution_bounds_per_group => (0, {0})) FROM data",
    "SELECT COUNT(*) FROM (SELECT person_id, MAX({0}) AS m FROM data GROUP BY person_id, {0})",
    "SELECT COUNT(*) FROM (SELECT *, MAX(age) OVER (PARTITION BY person_id, {0}) AS m FROM data)",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon={0}, delta=0) COUNT(*) FROM data",
]  # fmt: skip


@cases("form", FORMS)
def test_nothing_hostile_is_answered_wherever_it_stands(form: str) -> None:
    for hostile in HOSTILE:
        answered = runs(form.format(hostile))
        assert not answered or (hostile, form) in ANSWERED, (hostile, form)


ANSWERED = {("*", "SELECT COUNT({0}) FROM data")}
"""What is no attack there: it reads like any other query."""


def trees() -> st.SearchStrategy[exp.Expr]:
    """Expressions that sqlglot can write: of every kind of function that it knows, and of operators."""
    leaves = st.sampled_from(
        [
            "age",
            "Income",
            "state",
            "born",
            "seen",
            "married",
            "person_id",
            "photo",
            "nope",
            "1",
            "2.5",
            "'a'",
            "NULL",
        ]
    ).map(lambda text: parse_one(text, dialect="bigquery"))
    kinds = sorted(exp.ALL_FUNCTIONS, key=lambda kind: kind.__name__)
    others: list[type[exp.Expr]] = [
        *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.EQ, exp.And, exp.Or, exp.Is, exp.Like, exp.DPipe),
        *(exp.Bracket, exp.Dot, exp.Paren, exp.Not, exp.Neg, exp.Between, exp.In, exp.NullSafeEQ),
    ]

    def grown(below: st.SearchStrategy[exp.Expr]) -> st.SearchStrategy[exp.Expr]:
        return st.builds(
            made, st.sampled_from([*kinds, *others, *others]), st.lists(below, min_size=1, max_size=3)
        )

    return st.recursive(leaves, grown, max_leaves=6)


def made(kind: type[exp.Expr], parts: list[exp.Expr]) -> exp.Expr:
    slots = [slot for slot in kind.arg_types if slot != "expressions"]
    node = kind(**{slot: part.copy() for slot, part in zip(slots, parts, strict=False)})
    if "expressions" in kind.arg_types:
        node.set("expressions", [part.copy() for part in parts[len(slots) :]])
    return node


@settings(max_examples=120, suppress_health_check=list(HealthCheck), deadline=None)
@given(trees(), st.sampled_from(FORMS))
def test_trees_that_sqlglot_writes(tree: exp.Expr, form: str) -> None:
    try:
        text = tree.sql(dialect="bigquery", unsupported_level=ErrorLevel.IGNORE)
    except Exception:  # what sqlglot cannot write is no text
        return
    runs(form.format(text))


@settings(max_examples=50, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data())
def test_what_is_accepted_runs(data: st.DataObject) -> None:
    words = WORD.findall(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(0, 2))):
        place, other = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
        words[place] = words[other] if data.draw(st.booleans()) else data.draw(st.sampled_from(WORDS))
    runs("".join(words))
