"""Histograms of what units bring: exact cells, what one unit moves them by, and listed groups."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.queries.plan.query import PublicTable, Query
from sfumato.queries.planner.contribution_histograms import EDGES, Counted, Histogram, histograms_of
from sfumato.queries.pricing.magnitude_bins import WHOLE

OPTIONS = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6, {}) "
GROUPED = OPTIONS.format("max_groups_contributed=2, max_rows_per_group=2") + (
    "town, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n, "
    "SUM(cost, contribution_bounds_per_row => (0, 9)) AS s, "
    "SUM(cost, contribution_bounds_per_group => (0, 9)) AS t FROM data GROUP BY town"
)
ALL_ROWS = OPTIONS.format("max_rows_contributed=3") + (
    "town, COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM data GROUP BY town"
)


def rows(units: int, seed: int) -> list[dict[str, object]]:
    """Draw the visits of some units: of several groups and rows, with NULLs and negative values."""
    draw = random.Random(seed)
    return [
        {
            "unit": unit,
            "town": draw.choice(["a", "b", "c", "d", None]),
            "cost": draw.choice([None, -3, 0, 1, 70]),
        }
        for unit in range(units)
        for _ in range(draw.choice([1, 2, 5, 12]))
    ]


def table(given: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(
        given, pa.schema([("unit", pa.int64()), ("town", pa.string()), ("cost", pa.int64())])
    )


def cells(given: list[dict[str, object]], secret: bytes) -> dict[Histogram, np.ndarray]:
    """Return the exact cells of both queries' histograms."""
    found: dict[Histogram, np.ndarray] = {}
    with sf.connect(table(given), privacy_unit="unit", epsilon=1, delta=1e-5, rng=1, threads=1) as session:
        for query in map(session.read, (GROUPED, ALL_ROWS)):
            for each in histograms_of(query, groups_known=False):
                found[each] = each.exact(session.engine.aggregate(each.job(query), secret))
    return found


def test_the_histograms_that_a_query_needs() -> None:
    with sf.connect(table(rows(5, 1)), privacy_unit="unit", epsilon=1, delta=1e-5, rng=1) as session:
        found = histograms_of(session.read(GROUPED), groups_known=False)
        known = histograms_of(session.read(GROUPED), groups_known=True)
        whole = histograms_of(session.read(ALL_ROWS), groups_known=True)
    assert [(each.counted, each.cap) for each in found] == [
        (Counted.GROUPS, 1),
        (Counted.ROWS, 2),
        (Counted.VALUES, 4),
        (Counted.TOTALS, 2),
        (Counted.NUMBER_OF_GROUPS, 1),
    ]
    assert known == found[:-1]
    assert whole == (Histogram(Counted.ALL_ROWS),)


def test_the_cells_are_exact() -> None:
    given = rows(300, 2)
    found = cells(given, bytes(32))
    groups = Counter(len(set(towns)) for towns in _by_unit(given).values())
    assert _numbers(found[Histogram(Counted.GROUPS)]) == groups
    of_rows = next(value for each, value in found.items() if each.counted is Counted.ROWS)
    assert of_rows.sum() == sum(min(2, len(set(towns))) for towns in _by_unit(given).values())
    values = next(value for each, value in found.items() if each.counted is Counted.VALUES)
    bins = {WHOLE.index(value) for value in (-3, 0, 1, 70)}
    assert set(np.flatnonzero(values)) == bins
    assert found[next(e for e in found if e.counted is Counted.NUMBER_OF_GROUPS)].tolist() == [4]
    assert _numbers(found[Histogram(Counted.ALL_ROWS)]) == Counter(map(len, _by_unit(given).values()))


def test_no_unit_moves_a_histogram_by_more_than_its_cap() -> None:
    reached: Counter[Counted] = Counter()
    for seed in (0,):
        given, secret = rows(8, seed), bytes([seed]) * 32
        whole = cells(given, secret)
        for gone in (0, 3, 7):
            less = cells([row for row in given if row["unit"] != gone], secret)
            for histogram, before in whole.items():
                moved = int(np.abs(before - less[histogram]).sum())
                assert moved <= histogram.cap
                reached[histogram.counted] += moved == histogram.cap
    # the number of groups seldom moves by one, all others reach their caps
    assert all(reached[counted] for counted in Counted if counted is not Counted.NUMBER_OF_GROUPS)


def test_rows_of_groups_that_are_not_listed_use_up_no_limit() -> None:
    given = rows(200, 3)
    lists = pa.table({"town": ["a", "c"]})
    with sf.connect(
        table(given), privacy_unit="unit", epsilon=1, delta=1e-5, rng=1, public={"towns": lists}
    ) as session:
        listed = session.read(GROUPED, {"town": ["a", "c"]})
        with_null = session.read(GROUPED, {"town": ["a", None]})
        named = replace(listed, public_groups=PublicTable("towns", ("town",)))
        for query, towns in ((listed, "ac"), (with_null, ["a", None]), (named, "ac")):
            answer = session.engine.aggregate(_groups(query).job(query), bytes(32))
            expected = Counter(
                len(set(seen) & set(towns)) for seen in _by_unit(given).values() if set(seen) & set(towns)
            )
            assert _numbers(_groups(query).exact(answer)) == expected


def test_what_is_beyond_the_last_bin_is_in_it() -> None:
    assert EDGES[:10] == (1, 2, 3, 4, 5, 6, 7, 8, 10, 12)
    assert EDGES[-1] == 2**20
    assert list(EDGES) == sorted(set(EDGES))


@pytest.mark.parametrize("kind", ["FLOAT64", "DATE", "TIMESTAMP", "BOOL", "STRING", "INT64"])
def test_listed_groups_of_each_type(kind: str) -> None:
    values = {"FLOAT64": "1.5", "DATE": "2026-01-02", "TIMESTAMP": "2026-01-02 03:04:05", "BOOL": "true"}
    given = pa.table({"unit": [1, 2, 3], "text": [values.get(kind, "7")] * 2 + ["0"]})
    with sf.connect(given, privacy_unit="unit", epsilon=1, delta=1e-5, rng=1) as session:
        text = OPTIONS.format("max_groups_contributed=1") + f"CAST(text AS {kind}) AS k, COUNT(*) AS n "
        text += "FROM data GROUP BY k"
        key = {
            "FLOAT64": 1.5,
            "DATE": dt.date(2026, 1, 2),
            "TIMESTAMP": dt.datetime(2026, 1, 2, 3, 4, 5),
            "BOOL": True,
            "STRING": "7",
            "INT64": 7,
        }[kind]
        query = session.read(text, {"k": [key]})
        session.engine.check(_groups(query).job(query))
        found = _groups(query).exact(session.engine.aggregate(_groups(query).job(query), bytes(32)))
    assert found.sum() == 2


def _groups(query: Query) -> Histogram:
    return next(each for each in histograms_of(query, groups_known=True) if each.counted is Counted.GROUPS)


def _by_unit(given: list[dict[str, object]]) -> dict[object, list[object]]:
    units: dict[object, list[object]] = {}
    for row in given:
        units.setdefault(row["unit"], []).append(row["town"])
    return units


def _numbers(found: np.ndarray) -> Counter[int]:
    """Return how often each number is there, of the bins of single numbers and of twelve."""
    return Counter({EDGES[cell]: int(count) for cell, count in enumerate(found) if count})
