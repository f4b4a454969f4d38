"""The longest text that an expression can make: a bound that no row exceeds, or none."""

from __future__ import annotations

import sqlglot

from sfumato.queries.engines.compilation.text_bounds import most_bytes
from sfumato.queries.sql.catalog import Rows
from sfumato.queries.sql.expressions.scalar import read_expression
from tests.cases import cases
from tests.queries.people import CATALOG


@cases(
    ("text", "bound"),
    [
        ("'äb'", 3),
        ("RIGHT(state, 3)", 12),
        ("CAST(EXTRACT(YEAR FROM born) AS STRING)", 20),
        ("CAST(CAST(state AS INT64) AS STRING)", 20),
        ("CASE WHEN married THEN 'ab' WHEN age > 3 THEN RIGHT(state, 1) END", 4),
        ("CASE WHEN married THEN state ELSE 'a' END", None),
        ("CAST(Income AS STRING)", None),
        ("CAST(CAST(state AS FLOAT64) AS STRING)", None),
        ("state", None),
        ("UPPER('a')", None),
    ],
)
def test_bounds(text: str, bound: int | None) -> None:
    tree = sqlglot.parse_one(f"SELECT {text}", read="bigquery").expressions[0]
    made = read_expression(tree, Rows.of(CATALOG.private["data"], "data"), "it")
    assert most_bytes(made.tree) == bound
