"""Expressions in words: what is written with CASE and days is said, the rest stays SQL."""

from __future__ import annotations

from sfumato.queries.plan.expression_words import in_words
from sfumato.queries.pricing.price import price
from sfumato.queries.release.explanation import explain
from sfumato.queries.sql.analysis import read
from tests.cases import cases
from tests.queries.people import CATALOG

DP = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-8, max_rows_per_group=2) "


@cases(
    ("call", "words"),
    [
        ("COUNT(age)", "`age`"),
        ("COUNTIF(age > 3)", "rows where `age` > 3"),
        ("COUNT(age) FILTER (WHERE sex IS NOT NULL)", "`age` where `sex` has a value"),
        ("COUNTIF(age > 3) FILTER (WHERE married)", "rows where `age` > 3 where `married`"),
        ("COUNT(IF(age > 3, 1, 0))", "CASE WHEN `age` > 3 THEN 1 ELSE 0 END"),
        ("COUNT(DATE_DIFF(born, DATE '1970-01-01', DAY))", "the days of `born` since 1970-01-01"),
        ("COUNT(DATE_DIFF(born, born, DAY))", "DATE_DIFF(`born`, `born`, DAY)"),
    ],
)
def test_words(call: str, words: str) -> None:
    (aggregate,) = read(f"{DP} {call} AS n FROM data", CATALOG).aggregates
    assert aggregate.expression is not None
    assert in_words(aggregate.expression) == words


def test_the_explanation_of_a_correlation_has_no_sql_of_its_own() -> None:
    bounds = "contribution_bounds_per_row => ((0, 1), (0, 2))"
    text = explain(
        price(read(f"{DP} CORR(age, income, {bounds}) AS c FROM data", CATALOG)), privacy_unit="id"
    )
    assert "CASE" not in text
    assert "the products of `age` where `Income` has a value and `Income` where `age` has a value" in text
    assert "the sum of the squares of `age` where `Income` has a value, less the middle of its bounds" in text
