"""Which limits of a query can cut something off, and how much of it a unit weighs."""

from __future__ import annotations

from sfumato.queries.plan.query import Column, ColumnType, Query, Scan, Schema
from sfumato.queries.plan.stated_limits import CutOff, cut_counts, rows_counted, stated_rows
from sfumato.queries.sql.analysis import read
from sfumato.queries.sql.catalog import Catalog

ROWS = "COUNT(*, contribution_bounds_per_group => (0, 3)) AS n"
SUM = "SUM(x, contribution_bounds_per_row => (0, 9)) AS s"
TOTAL = "SUM(x, contribution_bounds_per_group => (0, 9)) AS t"
UNITS, GROUPS, OF_ROWS, VALUES = CutOff


def query(select: str, options: str = "", *, keys: bool = True, unit: str | None = "id") -> Query:
    columns = (Column("id", ColumnType.INTEGER), Column("g", ColumnType.TEXT), Column("x", ColumnType.FLOAT))
    catalog = Catalog({"data": Scan("data", Schema(columns), unit)})
    head = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=1e-6{options}) "
    tail = " FROM data GROUP BY g" if keys else " FROM data"
    return read(head + ("g, " if keys else "") + select + tail, catalog)


def test_what_can_be_cut_off_of_groups() -> None:
    units, groups = (UNITS, 1, None), (GROUPS, 8, None)
    for select, options, expected in (
        ("COUNT(DISTINCT id) AS n", "max_groups_contributed=2", [units, groups]),
        # COUNT(*) without bounds counts a unit once in a group
        ("COUNT(*) AS n", "max_groups_contributed=2", [units, groups, (OF_ROWS, 8, None)]),
        (ROWS, "max_rows_contributed=6", [(OF_ROWS, 24, None)]),
        (
            f"{ROWS}, {SUM}",
            "max_groups_contributed=2, max_rows_per_group=7",
            [units, groups, (OF_ROWS, 56, None), (VALUES, 14, 1)],
        ),
        (TOTAL, "max_groups_contributed=2", [units, groups, (VALUES, 2, 0)]),
        (
            "APPROX_COUNT_DISTINCT(x, max_contributions_per_group => 3) AS d",
            "max_groups_contributed=2",
            [units, groups, (VALUES, 24, 0)],
        ),
        # bounds that are to be found are not stated
        ("SUM(x) AS s", "max_groups_contributed=2", [units, groups, (OF_ROWS, 8, None)]),
    ):
        found = cut_counts(query(select, f", {options}"))
        assert [(each.kind, each.cap, each.aggregate) for each in found] == expected, select


def test_what_can_be_cut_off_of_all_rows() -> None:
    assert cut_counts(query("COUNT(DISTINCT id) AS n", keys=False)) == ()
    (rows,) = cut_counts(query(ROWS, keys=False))
    assert (rows.kind, rows.cap) == (OF_ROWS, 12)
    (values,) = cut_counts(query(TOTAL, keys=False, unit=None))
    assert (values.kind, values.cap) == (VALUES, 1)
    assert cut_counts(query("COUNT(*) AS n", keys=False, unit=None)) == ()


def test_however_high_the_limits_are_a_unit_weighs_a_million_at_most() -> None:
    found = cut_counts(
        query(f"{ROWS}, {SUM}", ", max_groups_contributed=1000000, max_rows_per_group=1000000")
    )
    assert {each.cap for each in found} == {1, 1 << 20}


def test_the_rows_of_a_group_that_count() -> None:
    options = ", max_groups_contributed=1"
    assert rows_counted(query(ROWS, options)) == stated_rows(query(ROWS, options)) == 3
    assert rows_counted(query(ROWS, options + ", max_rows_per_group=2")) == 2
    # a sum of rows counts more of them than the count does
    assert rows_counted(query(f"{ROWS}, {SUM}", options + ", max_rows_per_group=8")) == 8
    assert rows_counted(query(TOTAL, options)) is None
    assert stated_rows(query(TOTAL, options)) is None
    assert stated_rows(query(TOTAL, "", keys=False, unit=None)) == 1
    # the bounds of a sum are no number of rows, wherever it stands
    both = "SUM(x, contribution_bounds_per_row => (0, 9), contribution_bounds_per_group => (0, 50)) AS s"
    assert stated_rows(query(f"COUNT(DISTINCT id) AS u, {both}, {ROWS}", options)) == 3
