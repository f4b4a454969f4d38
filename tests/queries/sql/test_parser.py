"""What the front door relies on in sqlglot, pinned: a new version that differs fails here first."""

from __future__ import annotations

import pytest
from sqlglot import exp

from sfumato.errors import SqlSyntaxError, UnsupportedSql
from sfumato.queries.sql.options import given_options
from sfumato.queries.sql.parser import AGGREGATE_NAMES, LargerStatement, Statement, parse, parse_statement
from tests.cases import cases


def test_the_clause_is_cut_out() -> None:
    statement = parse(
        "SELECT /* a */ WITH\n  differential_privacy Options (epsilon = 1, delta = .5e-3,\n a = x.`y z`, "
        "b = 'text', c = NULL, d = -2) age FROM data;"
    )
    assert statement.options is not None
    assert statement.select.sql(dialect="bigquery", comments=False) == "SELECT age FROM data"
    words = [token.text for token in statement.options]
    assert words[:3] == ["epsilon", "=", "1"]
    assert len(words) == 27


def test_a_plain_select_has_no_options() -> None:
    assert parse("SELECT age FROM data").options is None
    assert parse("((SELECT age FROM data))").options is None
    assert parse("SELECT WITH DIFFERENTIAL_PRIVACY age FROM data").options == ()
    assert parse("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS() age FROM data").options == ()


def test_words_in_strings_and_names_are_no_clause() -> None:
    statement = parse("SELECT 'SELECT WITH DIFFERENTIAL_PRIVACY; x' AS `SELECT WITH` FROM data -- ; DROP")
    assert statement.options is None


def test_the_clause_after_common_tables() -> None:
    statement = parse(
        "WITH a AS (SELECT 1 AS x) SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) x FROM a"
    )
    assert statement.options is not None
    assert statement.select.args["with_"].expressions[0].alias == "a"


LARGER = [
    "SELECT x FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) x FROM data)",
    "SELECT WITH DIFFERENTIAL_PRIVACY 1 UNION ALL SELECT WITH DIFFERENTIAL_PRIVACY 2",
    "SELECT WITH DIFFERENTIAL_PRIVACY 1 UNION ALL SELECT 2 ORDER BY 1",
    "WITH a AS (SELECT WITH DIFFERENTIAL_PRIVACY 1) SELECT * FROM a",
    "SELECT 1 IN (SELECT WITH DIFFERENTIAL_PRIVACY 1), EXISTS(SELECT WITH DIFFERENTIAL_PRIVACY 2)",
    "((SELECT WITH DIFFERENTIAL_PRIVACY 1) LIMIT 3)",
]


@pytest.mark.parametrize("text", LARGER)
def test_private_selects_inside_larger_sql(text: str) -> None:
    found = parse_statement(text)
    assert isinstance(found, LargerStatement)
    assert len(found.private) == text.count("WITH DIFF")
    assert all(each.select.root() is found.tree for each in found.private)
    with pytest.raises(UnsupportedSql, match="one private SELECT must stand alone here"):
        parse(text)


def test_marks_are_those_of_the_parser() -> None:
    spoofed = (
        "SELECT /* private:0 */ x FROM (SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1) y FROM data)"
    )
    found = parse_statement(spoofed)
    assert isinstance(found, LargerStatement)
    assert [each.select.sql() for each in found.private] == ["SELECT y FROM data"]
    assert isinstance(parse_statement("((SELECT WITH DIFFERENTIAL_PRIVACY 1))"), Statement)


def test_the_clause_cannot_be_nested_in_itself() -> None:
    clause = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1)"
    for text in (f"{clause} x FROM ({clause} x FROM data)", f"WITH a AS ({clause} 1) {clause} x FROM a"):
        with pytest.raises(UnsupportedSql, match="cannot be nested"):
            parse_statement(text)


@cases("name", sorted(AGGREGATE_NAMES))
def test_aggregates_take_named_arguments(name: str) -> None:
    call = parse(
        f"SELECT {name.lower()}(x, some_bounds => (-1, 2.5), other => 'a') FROM data"
    ).select.expressions[0]
    assert isinstance(call, exp.Anonymous)
    assert call.name.upper() == name
    argument, bounds, other = call.expressions
    assert isinstance(argument, exp.Column)
    assert isinstance(bounds, exp.Kwarg)
    assert bounds.this.name == "some_bounds"
    assert isinstance(bounds.expression, exp.Tuple)
    assert [type(bound) for bound in bounds.expression.expressions] == [exp.Neg, exp.Literal]
    assert isinstance(other, exp.Kwarg)


def test_star_and_distinct_arguments() -> None:
    star, distinct = parse("SELECT COUNT(*), COUNT(DISTINCT x) FROM data").select.expressions
    assert isinstance(star.expressions[0], exp.Star)
    assert isinstance(distinct.expressions[0], exp.Distinct)


def test_null_order_is_told() -> None:
    select = parse("SELECT 1 FROM data ORDER BY a, b DESC, c NULLS LAST, d DESC NULLS FIRST").select
    flags = [
        (bool(o.args.get("desc")), bool(o.args.get("nulls_first"))) for o in select.args["order"].expressions
    ]
    assert flags == [(False, True), (True, False), (False, False), (True, True)]


def test_a_mistake_is_located() -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse("SELECT a,\n       b c d\nFROM data")
    assert "line 2, column 12" in str(caught.value)
    assert "'d'" in str(caught.value)


def test_values_of_options() -> None:
    statement = parse(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=+1.5, delta=.5e-3, max_groups_contributed=-2, "
        "max_rows_per_group=NULL, privacy_unit_column=t.`my id`, group_selection_strategy='x') 1 FROM data"
    )
    assert statement.options is not None
    assert given_options(statement.options) == {
        "epsilon": 1.5,
        "delta": 0.0005,
        "max_groups_contributed": -2,
        "max_rows_per_group": None,
        "privacy_unit_column": "my id",
        "group_selection_strategy": "x",
    }
