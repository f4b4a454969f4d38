"""Queries with relations over public data alone, each with what plain Python makes of the same rows."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from tests.queries.sql.clauses.test_table_expressions import CLAUSE, MANY, Data, counted, known, rows_by

__all__ = ["PUBLIC_CASES", "listed"]

LETTERS = ("a", "b", "z")


def listed(keys: str, join: str) -> str:
    """Return a query of its own whose groups a join lists."""
    clause = CLAUSE.replace(")", ", group_selection_strategy=PUBLIC_GROUPS)")
    return f"{clause} {keys}, COUNT(*, {MANY}) AS many FROM data {join} GROUP BY {keys}"


def with_zeros(keys: Any, found: dict[Any, int]) -> dict[Any, int]:
    return {key: found.get(key, 0) for key in keys}


def greatest(data: Data, word: str = "vw") -> int | None:
    return max((p.k for p in data.public if p.w in word), default=None)


def exceeds(value: int | None, bound: int | None) -> bool | None:
    return None if value is None or bound is None else value > bound


PUBLIC_CASES: dict[str, tuple[str, Callable[[Data], dict[Any, int]]]] = {
    "a subquery in a condition": (
        rows_by("(SELECT id, g AS k FROM data WHERE i > (SELECT MAX(k) FROM public))"),
        lambda d: counted(r.g for r in known(d.rows) if exceeds(r.i, greatest(d))),
    ),
    "a subquery beside another condition": (
        rows_by("(SELECT id, g AS k FROM data WHERE i = 1 OR (SELECT COUNT(*) FROM public) > 3)"),
        lambda d: counted(r.g for r in known(d.rows) if r.i == 1 or len(d.public) > 3),
    ),
    "a subquery in a column": (
        rows_by("(SELECT id, IF(i > (SELECT MIN(3) FROM public), 'more', (SELECT 'less')) AS k FROM data)"),
        lambda d: counted(
            "more" if r.i is not None and r.i > 3 and d.public else "less" for r in known(d.rows)
        ),
    ),
    "a subquery without a row": (
        rows_by("(SELECT id, (SELECT k FROM public WHERE k > 99) IS NULL AS k FROM data)"),
        lambda d: counted(True for _ in known(d.rows)),
    ),
    "a subquery in the outermost SELECT": (
        (f"IFNULL(i, 0) > (SELECT MAX(k) FROM public WHERE w = 'v') AS k, COUNT(*, {MANY}) AS n FROM data "
        "WHERE (SELECT COUNT(*) FROM public) >= 0 GROUP BY k"),
        lambda d: counted(exceeds(r.i or 0, greatest(d, "v")) for r in known(d.rows)),
    ),
    "a subquery in an aggregate": (
        ("g AS k, SUM(IF(i = 1, (SELECT COUNT(*) FROM public), 0), "
        "contribution_bounds_per_group => (0, 4096)) AS n FROM data GROUP BY g"),
        lambda d: {
            (g,): len(d.public) * sum(r.i == 1 for r in known(d.rows) if r.g == g)
            for g in {r.g for r in known(d.rows)}
        },
    ),
    "a subquery in a subquery": (
        rows_by(
            "(SELECT id, w AS k FROM data JOIN (SELECT w, k FROM public "
            "WHERE k = (SELECT MAX(k) FROM public)) ON i > k)"
        ),
        lambda d: counted(
            p.w for r in known(d.rows) for p in d.public
            if p.k == greatest(d) and r.i is not None and r.i > p.k
        ),
    ),
    "values": (
        rows_by("(SELECT id, m.n AS k FROM data JOIN (VALUES ('a', 1), ('a', 2.5), (NULL, 3)) AS m(g, n) "
                "USING (g))"),
        lambda d: counted(n for r in known(d.rows) for g, n in (("a", 1.0), ("a", 2.5)) if r.g == g),
    ),
    "structs": (
        rows_by("(SELECT id, m.n AS k FROM data d LEFT JOIN UNNEST([STRUCT('a' AS g, 'x' AS n), ('b', NULL), "
                "STRUCT('c', 'z')]) AS m ON d.g = m.g)"),
        lambda d: counted({"a": "x", "c": "z"}.get(str(r.g)) for r in known(d.rows)),
    ),
    "selects without FROM": (
        rows_by("(SELECT id, day AS k FROM data CROSS JOIN (SELECT DATE '2024-01-31' AS day, TRUE AS b "
                "UNION ALL SELECT DATE_ADD(DATE '2024-01-31', INTERVAL 1 MONTH), FALSE) WHERE b OR i > 0)"),
        lambda d: counted(
            day for r in known(d.rows) for day in _days(r.i is not None and r.i > 0)
        ),
    ),
    "in values, and in a range": (
        rows_by("(SELECT id, i AS k FROM data WHERE i IN (SELECT n FROM UNNEST(GENERATE_ARRAY(-7, 1)) AS n) "
                "AND i NOT IN (SELECT n + 1 FROM (VALUES (0), (5)) AS v(n)))"),
        lambda d: counted(r.i for r in known(d.rows) if r.i in (-7, 0)),
    ),
    "groups of values": (
        listed("k.g", "RIGHT JOIN (VALUES ('a'), ('b'), ('z')) AS k(g) ON data.g = k.g"),
        lambda d: with_zeros([(g,) for g in LETTERS], counted(r.g for r in known(d.rows))),
    ),
    "groups of structs": (
        listed("k.a, k.b", "RIGHT JOIN UNNEST([STRUCT('a' AS a, 1 AS b), ('z', 2)]) AS k "
                           "ON g = k.a AND i = k.b"),
        lambda d: with_zeros([("a", 1), ("z", 2)], _pairs(d)),
    ),
    "groups of two public tables": (
        listed("k.g, k.k", "RIGHT JOIN (SELECT DISTINCT p.g, q.k FROM public p CROSS JOIN public q) AS k "
                           "ON data.g = k.g AND data.i = k.k"),
        lambda d: with_zeros({(p.g, q.k) for p in d.public for q in d.public}, _pairs(d)),
    ),
    "groups of some rows of two public tables": (
        listed("k.g, k.n", "RIGHT JOIN (SELECT DISTINCT p.g, q.k + 1 AS n FROM public p JOIN public q "
                           "ON p.w = q.w WHERE p.g IS NOT NULL AND q.k > 0) AS k "
                           "ON data.g = k.g AND data.i = k.n"),
        lambda d: with_zeros(
            {(p.g, q.k + 1) for p in d.public for q in d.public if p.w == q.w and p.g and q.k > 0},
            _pairs(d),
        ),
    ),
    "groups of a union": (
        listed("k.g", "RIGHT JOIN (SELECT g FROM public UNION DISTINCT SELECT 'z') AS k USING (g)"),
        lambda d: with_zeros({(p.g,) for p in d.public} | {("z",)}, counted(r.g for r in known(d.rows))),
    ),
}  # fmt: skip


def _pairs(data: Data) -> dict[Any, int]:
    return {key[0]: n for key, n in counted((r.g, r.i) for r in known(data.rows)).items()}


def _days(both: bool) -> list[dt.date]:
    return [dt.date(2024, 1, 31), *([dt.date(2024, 2, 29)] if both else [])]
