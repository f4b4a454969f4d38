"""Lists of the largest counts where answers go: through outer SQL, into frames, displays and files."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import sfumato as sf
from sfumato.cli.commands import app
from sfumato.errors import UnsupportedSql
from tests.queries.sql.test_top_counts import CALL, DP, OPTIONS, answer, connect


@pytest.fixture(scope="module")
def session() -> Iterator[sf.Session]:
    with connect() as opened:
        yield opened


def test_lists_of_a_union_and_of_a_subquery(session: sf.Session) -> None:
    one, other = (
        f"{DP} g, APPROX_TOP_COUNT({name}, 2) AS top FROM data GROUP BY g" for name in ("word", "part")
    )
    made = answer(session, f"{one} UNION ALL {one}", intervals=True)
    assert sorted(map(str, made)) == sorted(map(str, answer(session, one, intervals=True) * 2))
    inside = answer(session, f"SELECT top AS t FROM ({other} ORDER BY g LIMIT 1) WHERE top IS NOT NULL")
    assert inside == [{"t": answer(session, other)[-1]["top"]}]


def test_lists_are_made_around_private_selects_only(session: sf.Session) -> None:
    inner = f"({DP} g, COUNT(*) AS n FROM data GROUP BY g)"
    for item in (
        "APPROX_TOP_COUNT(n, 2)",
        "ARRAY_AGG(n)",
        "ARRAY_AGG(STRUCT(g AS value, n AS count) LIMIT 2)",
    ):
        with pytest.raises(UnsupportedSql, match="is not answered in the SQL around private SELECTs"):
            session.sql(f"SELECT {item} FROM {inner}")
    with pytest.raises(UnsupportedSql, match=r"session\.sql alone writes it out"):
        session.read(DP + CALL)


def test_frames_and_displays_show_the_list(session: sf.Session) -> None:
    release = session.sql(
        f"{DP} flag, APPROX_TOP_COUNT(size, 1) AS top FROM data WHERE size > 3 GROUP BY flag ORDER BY 1"
    )
    rows = release.to_arrow().to_pylist()
    (listed,) = rows[-1]["top"]
    shown = f"{listed['value']:,} ({listed['count']})"
    assert shown in str(release)
    assert shown in release._repr_html_()
    assert release.to_pandas()["top"].iloc[-1].tolist() == [listed]
    assert release.to_polars()["top"].to_list() == [row["top"] for row in rows]


def test_the_command_line_writes_lists_in_every_format(tmp_path: Path) -> None:
    rows = pa.table({"id": range(600), "day": [dt.date(2020, 1, 1 + row % 3) for row in range(600)]})
    pq.write_table(rows, tmp_path / "data.parquet")
    text = OPTIONS.format(50, 1) + "APPROX_TOP_COUNT(day, 2) AS top FROM data"
    usual: tuple[object, ...] = (
        "sql",
        tmp_path / "data.parquet",
        "--privacy-unit",
        "id",
        "--epsilon",
        900,
        "--delta",
        0.1,
    )
    usual = (*usual, "--ledger", tmp_path / "l", "--no-intervals", text, "--format")

    def run(*words: object) -> Any:
        made = CliRunner().invoke(app, [str(word) for word in (*usual, *words)])
        assert made.exit_code == 0, made.output
        return made

    days = ["2020-01-01", "2020-01-02"]
    (row,) = json.loads(run("json").stdout)["rows"]
    assert [each["value"] for each in row["top"]] == days
    head, line = run("csv").stdout.splitlines()
    assert head == '"top"'
    assert json.loads(line[1:-1].replace('""', '"')) == row["top"]
    run("parquet", "--output", tmp_path / "out.parquet")
    (stored,) = pq.read_table(tmp_path / "out.parquet")["top"].to_pylist()
    assert [each["value"].isoformat() for each in stored] == days
    assert all(f"{day} (200)" in run("table").stdout for day in days)
