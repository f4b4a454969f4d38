"""NUMERIC in the SQL around private SELECTs: casts are exact, and answers are decimals."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pytest
from sqlglot import parse_one

import sfumato as sf
from sfumato.errors import UnsupportedSql
from sfumato.queries.outer.database import check, run, text_of
from sfumato.queries.outer.whitelist import in_duckdb
from sfumato.queries.sql.parser import PrivateSql
from tests.cases import cases

OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-7, max_groups_contributed=1)"
SUMS = (
    f"WITH b AS ({OPTIONS} g, COUNT(*) AS n, SUM(v, contribution_bounds_per_group => (0, 5)) AS s "
    "FROM data GROUP BY g) "
)
STEP = Decimal("1e-9")
EXACT = Context(prec=1200, Emax=10**6, Emin=-(10**6))


@pytest.fixture(scope="module")
def session() -> Iterator[sf.Session]:
    rows = pa.table({"person": range(400), "g": ["a", "b"] * 200, "v": [2.5, 0.125] * 200})
    with sf.connect(rows, privacy_unit="person", epsilon=50.0, delta=1e-4, rng=7) as opened:
        yield opened


def cast(values: pa.Array) -> list[Decimal | None]:
    tree = in_duckdb(parse_one("SELECT CAST(x AS NUMERIC) AS x FROM t ORDER BY i", dialect=PrivateSql()))
    rows = pa.table({"i": range(len(values)), "x": values})
    sql = text_of(tree)
    found: list[Decimal | None] = run(sql, {"t": rows}, check(sql, {"t": rows.schema}))["x"].to_pylist()
    return found


def nearest(value: float) -> Decimal | None:
    """The NUMERIC nearest to the number that a float is, halves away from zero."""
    if not math.isfinite(value):
        return None
    found = Decimal(value).quantize(STEP, ROUND_HALF_UP, EXACT)
    return found if abs(found) < Decimal(10) ** 29 else None


def test_floats_become_the_nearest_numeric() -> None:
    source = random.Random(3)
    values = [0.1, 5e-10, 4.999999999e-10, 1e22, 123456789012.345, 9.9e28, 1e29, -1e30, math.inf, -math.inf]
    values += [5e-324, -0.0, 2.5e-9, 1.7976931348623157e308, math.nan, math.nextafter(1e29, 0)]
    values += [source.uniform(-1, 1) * 10.0 ** source.randint(-12, 30) for _ in range(3000)]
    halves = [
        (2 * source.randint(-(10**12), 10**12) + 1) / 2048 for _ in range(500)
    ]  # ten digits, the last 5
    near = [math.nextafter(each, side) for each in halves for side in (-math.inf, math.inf)]
    values += halves + near
    wanted = [nearest(each) for each in values]
    assert cast(pa.array(values, pa.float64(), from_pandas=False)) == wanted
    naive = [
        each for each in values if abs(each) < 1e20 and Decimal(round(each * 1e9)) * STEP != nearest(each)
    ]
    assert len(naive) > 100  # what a product of floats would get wrong


def test_integers_and_texts_become_numerics_or_null() -> None:
    whole = [0, -7, 2**63 - 1, -(2**63)]
    assert cast(pa.array(whole)) == [Decimal(each) for each in whole]
    texts = {"1.5": "1.5", "-0.0000000005": "-0.000000001", "9" * 29: "9" * 29, "9" * 30: None, "x": None}
    assert cast(pa.array(texts)) == [None if each is None else Decimal(each) for each in texts.values()]


def test_an_answer_has_decimals(session: sf.Session) -> None:
    text = SUMS + (
        "SELECT n, s, CAST(s AS NUMERIC) AS d, CAST(n AS NUMERIC) * NUMERIC '1.19' AS taxed, "
        "CAST(s AS NUMERIC) * CAST(s AS NUMERIC) AS square, ROUND(CAST(s AS NUMERIC), 2) AS cents, "
        "SUM(CAST(s AS NUMERIC)) OVER () AS total, CAST(s AS NUMERIC) / 4 AS part FROM b ORDER BY g"
    )
    release = session.sql(text)
    found = release.to_arrow()
    money = pa.decimal128(38, 9)
    kinds = dict(zip(found.column_names, found.schema.types, strict=True))
    assert {name for name, kind in kinds.items() if kind == money} == {
        "d",
        "taxed",
        "square",
        "cents",
        "total",
    }
    rows = found.to_pylist()
    for row in rows:
        exact = nearest(row["s"])
        assert exact is not None
        assert row["d"] == exact
        assert row["taxed"] == row["n"] * Decimal("1.19")
        assert row["square"] == (exact * exact).quantize(STEP, ROUND_HALF_UP)
        assert row["cents"] == exact.quantize(Decimal("0.01"), ROUND_HALF_UP)
        assert row["part"] == float(exact) / 4
    assert rows[0]["total"] == sum(row["d"] for row in rows)
    assert f"{rows[0]['cents']:,f}".rstrip("0").rstrip(".") in str(release)
    assert release.to_pandas()["d"].tolist() == [row["d"] for row in rows]
    assert release.to_polars()["d"].to_list() == [row["d"] for row in rows]


def test_decimals_are_parameters_around_private_selects(session: sf.Session) -> None:
    text = SUMS + "SELECT n, CAST(n AS NUMERIC) * @rate AS x, k FROM b, UNNEST(@list) AS k WHERE n > @least"
    listed = [Decimal("1.5"), Decimal(2)]
    params = {"rate": Decimal("0.025"), "list": listed, "least": Decimal("-1000.5")}
    for row in session.sql(text, params=params).to_arrow().to_pylist():
        assert row["x"] == row["n"] * Decimal("0.025")
        assert row["k"] in listed


@cases(
    ("item", "phrase"),
    [
        (
            "NUMERIC '0.0000000001'",
            r"at most 29 digits before the point and 9 behind it, got '0\.0000000001'",
        ),
        ("NUMERIC '1e3'", "at most 29 digits before the point"),
        ("CAST(s AS NUMERIC(9, 2))", "DATATYPEPARAM is not answered"),
        ("CAST(s AS BIGNUMERIC)", "FLOAT64, NUMERIC, STRING, DATE or TIMESTAMP, without a size"),
    ],
)
def test_other_decimals_are_refused(session: sf.Session, item: str, phrase: str) -> None:
    charged = len(session.ledger.entries())
    with pytest.raises(UnsupportedSql, match=phrase):
        session.sql(f"{SUMS} SELECT {item} AS x FROM b")
    assert len(session.ledger.entries()) == charged
