"""The ends of an expression hold its value wherever the column lies in its interval."""

from __future__ import annotations

import functools
import itertools

import duckdb
import hypothesis.strategies as st
from hypothesis import given, settings
from sqlglot import exp, parse_one

from sfumato.queries.outer.monotone_expressions import Trees, moved

LEAVES = ("n", "2", "-3", "0.5e0", "0", "k")
FORMS = ("({0} + {1})", "({0} - {1})", "({0} * {1})", "-({0})", "ROUND({0})", "FLOOR({0})", "CEIL({0})",
         "({0} / NULLIF(4, 0))", "({0} / NULLIF(k, 0))",
         "TRY_CAST({0} AS BIGINT)", "TRY_CAST({0} AS DOUBLE)")  # fmt: skip


def trees() -> st.SearchStrategy[str]:
    def grown(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.builds(lambda form, a, b: form.format(a, b), st.sampled_from(FORMS), below, below)

    return st.recursive(st.sampled_from(LEAVES), grown, max_leaves=5)


def of_n(node: exp.Column) -> Trees | None:
    return (exp.column("low"), exp.column("high")) if node.name == "n" else None


def ends(text: str) -> Trees | None:
    return moved(parse_one(text, dialect="duckdb"), of_n)


@functools.cache
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": "1"})
    return connection.execute("SET error_on_division_by_zero = false")


@settings(max_examples=40, deadline=None)
@given(st.lists(trees(), min_size=8, max_size=8))
def test_every_value_is_between_the_ends(texts: list[str]) -> None:
    found = [(text, ends(text)) for text in texts]
    known = [(text, pair) for text, pair in found if pair is not None]
    if not known:
        return
    items = ", ".join(
        f"coalesce({low.sql('duckdb')} <= {text} AND {text} <= {high.sql('duckdb')}, {text} IS NULL)"
        for text, (low, high) in known
    )
    points = [(low, n, high, k) for low, n, high in [(-2, n, 3) for n in range(-2, 4)] for k in (-2, 0, 3)]
    rows = ", ".join(map(str, points))
    made = database().execute(f"SELECT {items} FROM (VALUES {rows}) AS t(low, n, high, k)").fetchall()
    for row, point in itertools.product(made, [None]):
        wrong = [text for held, (text, _) in zip(row, known, strict=True) if not held]
        assert not wrong, (wrong, point)


def test_nothing_follows_where_a_divisor_or_a_function_moves_freely() -> None:
    for text in ("1 / NULLIF(n, 0)", "ABS(n)", "n % 3", "CASE WHEN n > 1 THEN n END", "COALESCE(n, 1)"):
        assert ends(text) is None
