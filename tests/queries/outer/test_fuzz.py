"""Whatever stands around private SELECTs: one of our own errors, or SQL over answers and public tables."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from sqlglot import exp, parse_one

from sfumato.errors import QueryError
from sfumato.queries.engines.engine import Engine
from sfumato.queries.outer.database import run
from sfumato.queries.plan.query import Query
from sfumato.queries.sql.analysis import read_statement
from sfumato.queries.sql.parser import LargerStatement, Statement, parse_statement
from sfumato.queries.sql.query_parameters import Parameters
from sfumato.queries.sql.rewriting import written_out
from sfumato.session.larger_query import LargerQuery, read_larger
from tests.queries.people import CATALOG
from tests.queries.sql.test_fuzz import HOSTILE, engine

OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_groups_contributed=1)"
GROUPS = f"({OPTIONS} state, COUNT(*) AS n FROM data GROUP BY state)"
TOTAL = f"({OPTIONS} COUNT(*) AS total FROM visits)"
SEEDS = [
    f"""WITH c AS {GROUPS} SELECT state, n, SUM(n) OVER (ORDER BY state) AS s, n / SUM(n) OVER () AS share
    FROM c WHERE n > 3 ORDER BY n DESC NULLS LAST LIMIT 5 OFFSET 1""",
    f"SELECT c.*, p.code AS k, n * size AS weighted FROM {GROUPS} AS c LEFT JOIN states AS p USING (state)",
    f"SELECT state, n FROM {GROUPS} UNION ALL SELECT 'all', total FROM {TOTAL} ORDER BY 2",
    f"""WITH low AS (SELECT * FROM data WHERE age < 9), c AS ({OPTIONS} COUNT(*) AS n FROM low)
    SELECT CAST(n AS FLOAT64) / 2 AS half, CASE WHEN n > 3 THEN 'a' ELSE NULL END AS w FROM c""",
    f"""SELECT * EXCEPT (n), ROUND(n, 1) AS r FROM {GROUPS} WHERE state IN (SELECT code FROM states)
    QUALIFY ROW_NUMBER() OVER (PARTITION BY state ORDER BY n) = 1""",
    f"""SELECT n > 3 AS big, COUNT(DISTINCT state) AS k, AVG(n) AS a FROM {GROUPS}
    GROUP BY big HAVING AVG(n) > 1""",
    f"SELECT k, (SELECT total FROM {TOTAL}) AS t FROM UNNEST(['a', 'b']) AS k JOIN {GROUPS} ON k = state",
    f"""SELECT c.state, top, n FROM {GROUPS} AS c LEFT JOIN
    ({OPTIONS} state, APPROX_TOP_COUNT(sex, 2) AS top FROM data GROUP BY state) USING (state) WHERE n > 2""",
    f"SELECT EXISTS(SELECT 1 FROM {GROUPS} WHERE n > @x) AS e, state IN UNNEST(@l) AS i FROM {GROUPS}",
]
WORD = re.compile(r"\s+|[A-Za-z_]+|\d+\.?\d*|'[^']*'|.", re.DOTALL)
WORDS = [
    *sorted({word for seed in SEEDS for word in WORD.findall(seed)}),
    *("*", "OVER", "INTERSECT", "EXCEPT", "DISTINCT", "NULL", "-", "=>", "`", '"', "--", "@", ";"),
    *("[", "]", "\\", "|>", "0x1F", "1e999", "INTERVAL", "ARRAY", "PIVOT", "RECURSIVE"),
    *("data", "visits", "lines", "person_id", "answer_1", "public_1", "n_lower", "rowid", "RAND()"),
    *("COPY", "ATTACH", "PRAGMA", "INTO", "FETCH", "WINDOW", "ROLLUP", "NATURAL", "read_csv"),
]  # fmt: skip
PARAMS = {"x": 3, "l": ["a"]}
FORMS = [
    "SELECT {0} FROM " + GROUPS, "SELECT * FROM {0}, " + GROUPS, "SELECT n FROM " + GROUPS + " WHERE {0} = 1",
    "SELECT n FROM " + GROUPS + " ORDER BY {0}",
    "WITH c AS {0} SELECT * FROM c, " + GROUPS, "SELECT n FROM " + GROUPS + " LIMIT {0}",
    "SELECT n IN (SELECT {0} FROM states) AS i FROM " + GROUPS,
    GROUPS[1:-1] + " UNION ALL SELECT {0}, 1", "SELECT (SELECT {0} FROM states LIMIT 1) AS i FROM " + GROUPS,
    "SELECT n FROM " + GROUPS + " GROUP BY n, {0}",
]  # fmt: skip


def read(statement: Statement) -> Query:
    return read_statement(statement, CATALOG)


def accepted(text: str) -> LargerQuery | None:
    """What a text is read to; None where it is refused by an error of ours, or is one private SELECT."""
    checked: Engine = engine()
    try:
        named = Parameters.of({k: v for k, v in PARAMS.items() if f"@{k}" in text})
        statement = written_out(parse_statement(text, named))
        if not isinstance(statement, LargerStatement):
            return None
        return read_larger(statement, CATALOG, read, checked)
    except QueryError:
        return None


def check(text: str) -> bool:
    """Whether a text is answered; then it reads nothing but answers and public tables, and runs."""
    larger = accepted(text)
    if larger is None:
        return False
    outer = larger.outer
    inside = parse_one(outer.sql, dialect="duckdb")
    common = {cte.alias for cte in inside.find_all(exp.CTE)}
    tables = {table.name for table in inside.find_all(exp.Table)} - common
    assert tables <= set(outer.answers) | set(outer.public)
    assert set(outer.public.values()) <= set(CATALOG.public)
    assert all(isinstance(table.this, exp.Identifier) for table in inside.find_all(exp.Table))
    schemas = {name: outer.answer_schemas[index] for name, index in outer.answers.items()}
    rows = {name: schema.empty_table() for name, schema in schemas.items()}
    rows |= {name: engine().public_rows(known) for name, known in outer.public.items()}
    made = run(outer.sql, rows, outer.schema)
    assert set(outer.columns) <= set(made.column_names)
    from_cells = {} if outer.cells is None else outer.cells.noise
    ends = [end for name, pair in outer.intervals.items() if name not in from_cells for end in pair]
    assert set(ends) <= set(made.column_names)
    if outer.cells is not None:
        for name, index in outer.answers.items():
            for cell in outer.cells.names[index].values():
                rows[name] = rows[name].append_column(cell, pa.array([], pa.list_(pa.int64())))
        again = run(outer.cells.sql, rows, outer.cells.schema)
        assert set(outer.columns) <= set(again.column_names)
        assert {cells for noise in from_cells.values() for cells in noise.cells} <= set(again.column_names)
    return True


def test_the_seeds_are_answered() -> None:
    assert all(check(seed) for seed in SEEDS)


def mutated(data: st.DataObject) -> str:
    words = WORD.findall(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 4))):
        place, other = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
        change = data.draw(st.sampled_from(["drop", "double", "replace", "swap", "insert"]))
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
    return "".join(words)


@settings(max_examples=50, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data())
def test_mutated_statements(data: st.DataObject) -> None:
    check(mutated(data))


@pytest.mark.exhaustive
@settings(max_examples=400, suppress_health_check=list(HealthCheck), deadline=None)
@given(st.data())
def test_many_mutated_statements(data: st.DataObject) -> None:
    check(mutated(data))


@settings(max_examples=30)
@given(st.sampled_from(SEEDS), st.text(max_size=40), st.integers(0, 400))
def test_text_inside_a_statement(seed: str, text: str, place: int) -> None:
    check(seed[:place] + text + seed[place:])


ANSWERED = {
    *(("ROW_NUMBER() OVER ()", form) for form in FORMS if "GROUP BY n" not in form),
    ("*", FORMS[0]),
}
"""What is no attack there: it reads released rows only."""


@pytest.mark.parametrize("third", [0, 1, 2])
def test_nothing_hostile_is_answered_wherever_it_stands(third: int) -> None:
    """Of all pairs a third, in which each form and each hostile part stands."""
    for row, form in enumerate(FORMS):
        for hostile in HOSTILE[(third + row) % 3 :: 3]:
            assert not check(form.format(hostile)) or (hostile, form) in ANSWERED, (hostile, form)
