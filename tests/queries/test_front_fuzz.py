"""Whatever the text, the front door answers with a plan or with one of its own errors."""

from __future__ import annotations

import logging
import re

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from sfumato.errors import QueryError
from sfumato.queries.front import read
from sfumato.queries.plan import Filter, Project, Query, Relation, Scan
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
    assert not query.keys or query.options.max_groups_contributed is not None
    assert not query.keys or query.public_groups is not None or query.options.delta > 0
    assert len({name.casefold() for name in query.output}) == len(query.output)
    if query.public_groups is None:
        assert read(query.text, CATALOG).text == query.text


def unit_is_kept(relation: Relation) -> bool:
    """The unit of every node is the unit of the scan, passed on as it is."""
    if isinstance(relation, Scan):
        return relation.unit == "person_id"
    if isinstance(relation, Filter):
        return unit_is_kept(relation.child)
    assert isinstance(relation, Project)
    kept = [named for named in relation.columns if named.name == relation.unit]
    return (
        len(kept) == 1
        and kept[0].expression.sql == f"`{relation.child.unit}`"
        and unit_is_kept(relation.child)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_seeds_are_answered(seed: str) -> None:
    check_plan(read(seed, CATALOG, defaults=DEFAULTS))


@given(st.text(max_size=80))
def test_any_text(text: str) -> None:
    check(text)


@given(st.lists(st.sampled_from(WORDS), max_size=30))
def test_any_words(words: list[str]) -> None:
    check(" ".join(["SELECT", *words]))


@given(st.sampled_from(SEEDS), st.text(max_size=40), st.integers(0, 400))
def test_text_inside_a_query(seed: str, text: str, place: int) -> None:
    check(seed[:place] + text + seed[place:])


@settings(max_examples=400)
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
        for text in ("CALL p()", "SHOW TABLES", "SELECT * FROM data", "LOAD 'x'"):
            check(text)
    assert caplog.records == []
