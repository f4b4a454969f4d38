"""Releases as bars with whiskers: what is drawn is what the table says."""

from __future__ import annotations

from typing import Any

import pytest

import sfumato as sf
from tests.run_time import run_time

if run_time(__name__):
    import pyarrow as pa
    from matplotlib.figure import Figure

OPTIONS = "OPTIONS(epsilon=8, delta=1e-7, max_groups_contributed=1)"
SELECT = f"SELECT WITH DIFFERENTIAL_PRIVACY {OPTIONS} year, COUNT(*) AS n, COUNT(*) * 2 AS twice FROM data"


@pytest.fixture
def session() -> Any:
    table = pa.table({"id": range(900), "year": [2000 + i % 3 for i in range(900)]})
    with sf.connect(table, privacy_unit="id", epsilon=20.0, delta=1e-5, rng=4) as made:
        yield made


def axes() -> Any:
    return Figure().subplots()


def drawn(ax: Any) -> tuple[list[float], list[tuple[float, float]], list[str]]:
    """Return heights of bars, ends of whiskers, and what stands below."""
    (whiskers,) = ax.collections
    ends = [(float(low), float(high)) for (_, low), (_, high) in whiskers.get_segments()]
    return [bar.get_height() for bar in ax.patches], ends, [each.get_text() for each in ax.get_xticklabels()]


def test_the_first_numbers_are_drawn_with_their_intervals(session: Any) -> None:
    release = session.sql(f"{SELECT} GROUP BY year ORDER BY year")
    given = axes()
    ax = release.plot(given, level=0.9)
    assert ax is given
    wide = release.to_arrow(intervals=True, level=0.9).to_pylist()
    heights, ends, names = drawn(ax)
    assert heights == [row["n"] for row in wide]
    assert ends == [(row["n_lower"], row["n_upper"]) for row in wide]
    assert names == ["2000", "2001", "2002"]  # a year is a name, and no quantity
    assert (ax.get_ylabel(), ax.get_xlabel(), ax.get_title()) == ("n", "year", "")
    other = release.plot(axes(), column="twice", most=2)
    assert drawn(other)[0] == [row["twice"] for row in wide[:2]]
    assert other.get_title() == "the first 2 of 3 rows"


def test_what_is_computed_around_it_is_drawn_too(session: Any) -> None:
    release = session.sql(
        f"WITH c AS ({SELECT} GROUP BY year) SELECT year, n / 2 AS half FROM c ORDER BY year"
    )
    wide = release.to_arrow(intervals=True).to_pylist()
    assert "2,000" not in f"{release}{release._repr_html_()}"  # a year
    heights, ends, names = drawn(release.plot(axes()))
    assert heights == [float(row["half"]) for row in wide]
    assert ends == [(float(row["half_lower"]), float(row["half_upper"])) for row in wide]
    assert names == ["2000", "2001", "2002"]


def test_one_number_and_what_cannot_be_drawn(session: Any) -> None:
    alone = session.sql(
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, delta=0) COUNT(*) AS n FROM data"
    )
    ax = alone.plot(axes())
    assert ax.get_ylabel() == "n"
    assert len(ax.lines[0].get_ydata()) == 1
    for given, said in (
        ({"column": "m"}, r"column must be a column of numbers \('n'\), got 'm'"),
        ({"most": 0}, "most must be an integer of at least 1, got 0"),
    ):
        with pytest.raises(sf.errors.ParameterError, match=said):
            alone.plot(axes(), **given)
