"""Layouts: what is kept answers like what is computed, and only what serves is used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.errors import EngineError, ParameterError
from sfumato.frames.sources import open_source
from sfumato.queries.engines.duckdb.engine import DuckDBEngine
from sfumato.queries.plan.query import AggregationJob, Scan
from sfumato.queries.pricing.price import price
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog
from tests.cases import cases

SECRET, OTHER = b"s" * 32, b"o" * 32
GROUPS = {"state": ["CA", "NY", "WY"]}


def table(seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "person": rng.integers(0, 60, 900),
            "state": rng.choice(["CA", "NY", "TX", "WA", "OR"], 900),
            "pay": np.where(rng.random(900) < 0.1, np.nan, rng.normal(30, 20, 900)),
        }
    )


def job(engine: DuckDBEngine, select: str, *, public: bool = False, limits: str = "") -> AggregationJob:
    scan = Scan("data", engine.schemas["data"], "person")
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, max_groups_contributed=2"
        f"{limits or ', max_rows_per_group=3'}) state, {select} FROM data GROUP BY state"
    )
    return price(read(text, Catalog({"data": scan}), public_groups=GROUPS if public else None)).job


@contextmanager
def engines() -> Iterator[tuple[DuckDBEngine, DuckDBEngine]]:
    """Two engines over the same rows: one that keeps layouts, one that does not."""
    with DuckDBEngine(open_source(table()), cache=2) as keeping, DuckDBEngine(open_source(table())) as plain:
        yield keeping, plain


def tables(engine: DuckDBEngine) -> int:
    ((found,),) = engine._connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE temporary"
    ).fetchall()
    return int(found)


WIDE = (
    "COUNT(*, contribution_bounds_per_group => (0, 3)) AS n, "
    "SUM(pay, contribution_bounds_per_group => (0, 90)) AS total, "
    "AVG(pay, contribution_bounds_per_group => (0, 50)) AS pay"
)
NARROW = [
    "COUNT(*) AS n",
    "COUNT(pay) AS n",
    "SUM(pay, contribution_bounds_per_group => (0, 80)) AS total",
    (
        "SUM(pay, contribution_bounds_per_group => (0, 70)) AS total, "
        "AVG(pay, contribution_bounds_per_group => (0, 40)) AS pay"
    ),
    "COUNT(*, contribution_bounds_per_group => (0, 2)) AS n",
]


@cases("public", [False, True])
def test_a_kept_layout_answers_like_one_that_is_made(public: bool) -> None:
    with engines() as (keeping, plain):
        assert keeping.aggregate(job(keeping, WIDE, public=public), SECRET) == plain.aggregate(
            job(plain, WIDE, public=public), SECRET
        )
        # another query's own secret does not matter: the choice of rows and groups is the first one's
        for select in NARROW:
            narrow = job(keeping, select, public=public)
            assert keeping.aggregate(narrow, OTHER) == plain.aggregate(narrow, SECRET), select


def test_the_choice_is_kept_with_the_layout() -> None:
    with engines() as (keeping, plain):
        first = keeping.aggregate(job(keeping, WIDE), SECRET)
        assert keeping.aggregate(job(keeping, WIDE), OTHER) == first
        assert plain.aggregate(job(plain, WIDE), OTHER) != first


@pytest.mark.parametrize(
    ("select", "limits", "public"),
    [
        ("SUM(pay * 2, contribution_bounds_per_group => (0, 80)) AS total", "", False),
        (WIDE, ", max_rows_per_group=2", False),
        (WIDE, "", True),
    ],
    ids=["another value", "another limit", "public groups"],
)
def test_what_does_not_serve_is_made_anew(select: str, limits: str, public: bool) -> None:
    with engines() as (keeping, plain):
        keeping.aggregate(job(keeping, WIDE), SECRET)
        second = keeping.aggregate(job(keeping, select, limits=limits, public=public), OTHER)
        assert second == plain.aggregate(job(plain, select, limits=limits, public=public), OTHER)


def test_rows_by_other_bins_are_chosen_anew() -> None:
    """The rows that were chosen for one measure by bins do not carry the values of another."""
    wide, narrow = (f"MEDIAN(pay, contribution_bounds_per_row => (0, {most})) AS m" for most in (90, 50))
    with engines() as (keeping, plain):
        first = keeping.aggregate(job(keeping, wide), SECRET)
        assert keeping.aggregate(job(keeping, wide), OTHER) == first
        assert keeping.aggregate(job(keeping, narrow), OTHER) == plain.aggregate(job(plain, narrow), OTHER)


def test_only_the_last_few_are_kept() -> None:
    with engines() as (keeping, plain):
        sizes = []
        for rows in (1, 2, 3, 4, 5):
            keeping.aggregate(job(keeping, WIDE, limits=f", max_rows_per_group={rows}"), SECRET)
            sizes.append(tables(keeping))
        assert sizes[1] == sizes[-1] <= 10
        # the one used last stays: the oldest of two is dropped
        last = job(keeping, WIDE, limits=", max_rows_per_group=5")
        assert keeping.aggregate(last, OTHER) == keeping.aggregate(last, SECRET)
        plain.aggregate(job(plain, WIDE), SECRET)
        assert tables(plain) == 0


def test_a_failure_leaves_nothing_and_the_next_query_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with engines() as (keeping, plain):
        keeping.aggregate(job(keeping, WIDE), SECRET)

        def fail(*_: Any) -> Any:
            raise RuntimeError("out of memory")

        with monkeypatch.context() as broken:
            broken.setattr(DuckDBEngine, "_computed", fail)
            with pytest.raises(EngineError):
                keeping.aggregate(job(keeping, NARROW[2]), OTHER)
        assert tables(keeping) == 0
        again = keeping.aggregate(job(keeping, NARROW[2]), OTHER)
        assert again == plain.aggregate(job(plain, NARROW[2]), OTHER)


def test_how_many_are_kept_is_a_number() -> None:
    with pytest.raises(ParameterError, match="cache"):
        DuckDBEngine(open_source(table()), cache=-1)
