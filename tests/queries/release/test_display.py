"""What a release looks like in a notebook, a terminal and a log."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.queries.release.display import as_html, as_text
from sfumato.queries.release.table import TableRelease


@pytest.fixture
def release() -> TableRelease:
    table = pa.table({"id": range(9000), "g": [f"<b>{i % 18}\x1b[2J" for i in range(9000)]})
    with sf.connect(table, privacy_unit="id", epsilon=9.0, delta=1e-6, rng=4) as session:
        return session.sql(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=8, delta=1e-7, max_groups_contributed=1)"
            " g, COUNT(*) AS n FROM data GROUP BY g"
        )


def test_a_printed_release_is_a_few_rows_and_what_they_cost(release: TableRelease) -> None:
    lines = str(release).splitlines()
    assert lines[0].split() == ["g", "n"]
    assert lines[-2] == "... and 8 more"
    assert lines[-1] == "simulated, protects nobody: would be (8, 1e-07)-DP for each id"
    assert len(lines) == 13
    assert all(line.isprintable() for line in lines)
    assert repr(release).startswith("TableRelease(18 of (g, n); simulated")
    assert len(repr(release)) < 120


def test_a_release_in_a_notebook_is_a_table_without_foreign_markup(release: TableRelease) -> None:
    page = release._repr_html_()
    assert page.count("<tr>") == 19
    assert page.count('<th scope="col">') == 2
    assert "<caption>simulated, protects nobody" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page
    assert page.isprintable()


def test_a_notebook_shows_twenty_rows_intervals_cost_receipt_and_what_is_left() -> None:
    table = pa.table({"id": range(9000), "g": [i % 30 for i in range(9000)]})
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=2, delta=1e-7, max_groups_contributed=1)"
        " g, COUNT(*) AS n, COUNT(*) * 2 AS twice FROM data GROUP BY g"
    )
    with sf.connect(table, privacy_unit="id", epsilon=9.0, delta=1e-6, rng=4) as session:
        release = session.sql(text)
        page, again = release._repr_html_(), session.sql(text)._repr_html_()
        copied = pickle.loads(pickle.dumps(release))
    assert page.count("<tr>") == 21
    assert "... and 10 more" in page
    wide = release.to_arrow(intervals=True)
    low, high = wide["n_lower"][0], wide["n_upper"][0]
    assert f"<td>{wide['n'][0]} <small>[{low}, {high}]</small></td>" in page
    assert page.count("<small>") == 40
    assert "<dt>cost</dt><dd>(2, 1e-07)-DP</dd>" in page
    assert f"<dt>receipt</dt><dd>{release.receipt}</dd>" in page
    assert "<dt>left</dt><dd>(7, " in page
    assert "paid before" in again
    assert "<dt>receipt" not in again
    for closed in (release, copied):  # what is left is not known any more
        assert "<dt>left" not in closed._repr_html_()
        assert closed.to_arrow().equals(release.to_arrow())
    assert copied == release


def test_a_year_is_no_quantity() -> None:
    years = pa.table({"year": [2019, None], "n": [12345, 7]})
    assert as_text(years, "", ("year",)).split() == ["year", "n", "2019", "12,345", "NULL", "7"]


def test_long_and_empty_tables_are_shown_too() -> None:
    wide = as_text(pa.table({"x": ["a" * 500, None], "y": [1.5, float("nan")]}), "end").splitlines()
    assert max(len(line) for line in wide) < 60
    assert wide[2].split() == ["NULL", "nan"]
    assert as_text(pa.table({"n": pa.array([], pa.int64())}), "end") == "n\nend"
    assert "<tbody></tbody>" in as_html(pa.table({"n": pa.array([], pa.int64())}), "end")


def test_the_level_of_an_interval_has_a_remedy(release: TableRelease) -> None:
    with pytest.raises(sf.errors.ParameterError, match=r"got 95; write 0\.95, say"):
        release.to_arrow(intervals=True, level=95)
    wrong: Any = 0.5
    with pytest.raises(sf.errors.ParameterError, match="state another coverage by level="):
        release.to_arrow(intervals=wrong)
