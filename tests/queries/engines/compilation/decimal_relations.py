"""A table of digits, and queries that cast them to NUMERIC and UINT64, each with what Python makes of it."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any, NamedTuple

import pyarrow as pa

from tests.queries.sql.clauses.test_table_expressions import counted, known, rows_by

__all__ = ["DECIMAL_CASES", "Digits", "some_digits", "table_of_digits"]


class Digits(NamedTuple):
    id: int | None
    g: str
    s: str | None
    i: int | None
    n: Decimal | None


_TEXTS = ["1.5", "01.50", "+1.5", "-0", "0.0", "18446744073709551615", "18446744073709551616", "9" * 38,
          "-7.0000", "-7", " 1", "1e5", "NaN", "", "2.5", "9223372036854775808", "-.5", None]  # fmt: skip
_WHOLE = [0, 1, -1, -7, 2**63 - 1, -(2**63), None]
_STORED = ["1.5", "0", "-7", "2.5", "-0.4", "-0.5", "18446744073709551615.4999", "18446744073709551615.5",
           "9223372036854775808", None]  # fmt: skip


def some_digits(seed: int) -> list[Digits]:
    draw = random.Random(seed)
    return [
        Digits(
            draw.choice([0, 0, 1, 2, 3, None]),
            draw.choice("ab"),
            draw.choice(_TEXTS),
            draw.choice(_WHOLE),
            None if (stored := draw.choice(_STORED)) is None else Decimal(stored),
        )
        for _ in range((60, 25, 0)[seed % 3])
    ]


def table_of_digits(rows: list[Digits]) -> pa.Table:
    types = [pa.int64(), pa.string(), pa.string(), pa.int64(), pa.decimal128(30, 4)]
    named = enumerate(zip(Digits._fields, types, strict=True))
    return pa.table({name: pa.array([row[at] for row in rows], type_) for at, (name, type_) in named})


def read(text: str | None) -> Decimal | None:
    form = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
    return None if text is None or re.fullmatch(form, text) is None else Decimal(text)


def shown(value: Decimal | int | None) -> str | None:
    if value is None:
        return None
    digits = f"{Decimal(value).copy_abs():f}"
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return "-" * (value < 0) + digits


def whole(value: Decimal | int | None) -> int | None:
    if value is None:
        return None
    with localcontext(prec=100):
        nearest = int(Decimal(value).to_integral_value(ROUND_HALF_UP))
    return nearest if 0 <= nearest < 2**64 else None


def pairs(rows: Iterable[Digits], value: Callable[[Digits], Any]) -> set[tuple[int | None, str | None]]:
    """The values of each unit, each once."""
    return {(row.id, shown(value(row))) for row in known(rows)}


def by_text(item: str, more: str = "") -> str:
    """Ask for the rows by the text of a NUMERIC."""
    return rows_by(f"(SELECT id, CAST({item} AS STRING) AS k FROM data{more})")


def by_unit(rows: Iterable[Digits], value: Callable[[Digits], Any]) -> dict[int, list[Any]]:
    found = defaultdict(list)
    for row in known(rows):
        found[row.id].append(value(row))
    return found


def by_value(query: str) -> str:
    return rows_by(f"(SELECT id, CAST(v AS STRING) AS k FROM ({query}))")


_S, _I = "CAST(s AS NUMERIC)", "CAST(i AS UINT64)"
_LIMIT = "max_contributions_per_group => 1000"

DECIMAL_CASES: dict[str, tuple[str, Callable[[list[Digits]], dict[Any, int]]]] = {
    "texts": (by_text(_S), lambda rows: counted(shown(read(row.s)) for row in known(rows))),
    "integers": (by_text("CAST(i AS BIGNUMERIC)"), lambda rows: counted(shown(row.i) for row in known(rows))),
    "without a sign": (by_text(_I), lambda rows: counted(shown(whole(row.i)) for row in known(rows))),
    "the nearest without a sign": (
        by_text("CAST(n AS UINT64)"), lambda rows: counted(shown(whole(row.n)) for row in known(rows))
    ),
    "texts without a sign": (
        by_text("CAST(s AS UINT64)"),
        lambda rows: counted(
            row.s if (row.s or "").isdecimal() and int(row.s) < 2**64 else None for row in known(rows)
        ),
    ),
    "by way of other types": (
        by_text(f"CAST(CAST({_S} AS INT64) AS NUMERIC)"),
        lambda rows: counted(
            None if (v := read(row.s)) is None or not -(2**63) <= (w := _nearest(v)) < 2**63 else str(w)
            for row in known(rows)
        ),
    ),
    "equal to a stored one": (
        rows_by(f"(SELECT id, s AS k FROM data WHERE {_S} = n)"),
        lambda rows: counted(row.s for row in known(rows) if None not in (read(row.s), row.n)
                             and read(row.s) == row.n),
    ),
    "as distinct as a literal": (
        by_text("n", f" WHERE {_S} IS NOT DISTINCT FROM NUMERIC '1.500' OR n <> CAST(i AS NUMERIC)"),
        lambda rows: counted(
            shown(row.n) for row in known(rows)
            if read(row.s) == Decimal("1.5") or (None not in (row.n, row.i) and row.n != row.i)
        ),
    ),
    "the first there is": (
        by_text(f"COALESCE({_S}, n, {_I})"),
        lambda rows: counted(
            shown(next((v for v in (read(row.s), row.n, whole(row.i)) if v is not None), None))
            for row in known(rows)
        ),
    ),
    "chosen": (
        by_text(f"CASE WHEN g = 'a' THEN {_S} WHEN i > 0 THEN {_I} ELSE NULLIF(n, NUMERIC '2.50') END"),
        lambda rows: counted(
            shown(read(row.s) if row.g == "a" else whole(row.i) if (row.i or 0) > 0
                  else None if row.n == Decimal("2.5") else row.n)
            for row in known(rows)
        ),
    ),
    "distinct": (
        by_value(f"SELECT DISTINCT id, {_S} AS v FROM data"),
        lambda rows: counted(v for _, v in pairs(rows, lambda row: read(row.s))),
    ),
    "united": (
        by_value(f"SELECT id, {_S} AS v FROM data UNION DISTINCT SELECT id, n FROM data "
                 f"UNION DISTINCT SELECT id, {_I} FROM data"),
        lambda rows: counted(
            v for _, v in pairs(rows, lambda row: read(row.s)) | pairs(rows, lambda row: row.n)
            | pairs(rows, lambda row: whole(row.i))
        ),
    ),
    "without others": (
        by_value(f"SELECT id, n AS v FROM data EXCEPT DISTINCT SELECT id, {_S} FROM data"),
        lambda rows: counted(
            v for _, v in pairs(rows, lambda row: row.n) - pairs(rows, lambda row: read(row.s))
        ),
    ),
    "grouped in each unit": (
        by_value(f"SELECT id, {_S} AS v, COUNT(*) AS m FROM data GROUP BY id, v"),
        lambda rows: counted(v for _, v in pairs(rows, lambda row: read(row.s))),
    ),
    "counted in each unit": (
        rows_by(f"(SELECT id, COUNT(DISTINCT COALESCE({_S}, n)) AS k FROM data GROUP BY id)"),
        lambda rows: counted(
            len({shown(v) for v in values} - {None})
            for values in by_unit(rows, lambda row: row.n if read(row.s) is None else read(row.s)).values()
        ),
    ),
    "joined with rows of the query": (
        rows_by("(SELECT id, name AS k FROM (SELECT id, CAST(s AS NUMERIC) AS v FROM data) "
                "JOIN (SELECT NUMERIC '1.5' AS v, 'half' AS name "
                "UNION ALL SELECT CAST(-7 AS NUMERIC), 'week') USING (v))"),
        lambda rows: counted(
            {"1.5": "half", "-7": "week"}[v] for row in known(rows)
            if (v := shown(read(row.s))) in ("1.5", "-7")
        ),
    ),
    "distinct values of a group": (
        f"g, APPROX_COUNT_DISTINCT(COALESCE({_S}, n), {_LIMIT}) AS m FROM data GROUP BY g",
        lambda rows: {
            (g,): len({shown(row.n if read(row.s) is None else read(row.s)) for row in found} - {None})
            for g in "ab" if (found := [row for row in known(rows) if row.g == g])
        },
    ),
}  # fmt: skip


def _nearest(value: Decimal) -> int:
    with localcontext(prec=100):
        return int(value.to_integral_value(ROUND_HALF_UP))
