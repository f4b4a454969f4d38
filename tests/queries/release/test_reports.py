"""Columns told as JSON: the value and its interval, and nothing that was not paid for."""

from __future__ import annotations

import json

import pyarrow as pa

import sfumato as sf
from sfumato.queries.release.record import ReleaseRecord
from sfumato.queries.release.table import TableRelease

ROW = "contribution_bounds_per_row => (0, 4)"
GROUP = "contribution_bounds_per_group => (0, 4)"
JSON = "report_format => 'JSON'"
CALLS = {
    "n": "COUNT(*{})",
    "s": "SUM(x, " + GROUP + "{})",
    "a": "AVG(x, " + GROUP + "{})",
    "v": "VAR_POP(x, " + ROW + "{})",
    "r": "CORR(x, x, contribution_bounds_per_row => ((0, 4), (0, 4)){})",
    "m": "MEDIAN(x, " + ROW + "{})",
    "d": "COUNT(DISTINCT x)",
}


def _release(session: sf.Session) -> TableRelease:
    plain = [f"{call.format('')} AS {name}" for name, call in CALLS.items()]
    reports = [f"{call.format(', ' + JSON)} AS {name}_json" for name, call in CALLS.items() if name != "d"]
    options = "epsilon=9, delta=1e-6, max_groups_contributed=1, max_rows_per_group=1"
    return session.sql(
        f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options}) g, {', '.join(plain + reports)} "
        "FROM data GROUP BY g ORDER BY n DESC"
    )


def _session() -> sf.Session:
    table = pa.table({"id": list(range(900)), "g": ["a", "b", "b"] * 300, "x": [0.5, 2.0, 3.0] * 300})
    return sf.connect(table, privacy_unit="id", epsilon=20, delta=1e-5, rng=5)


def test_a_report_holds_the_value_and_the_interval_of_the_plain_column() -> None:
    with _session() as session:
        release = _release(session)
    for level in (0.95, 0.5):
        answer = release.to_arrow(intervals=True, level=level)
        assert not [name for name in answer.column_names if "_json_" in name]
        for row in answer.to_pylist():
            for name in CALLS.keys() - {"d"}:
                (body,) = json.loads(row[f"{name}_json"]).values()
                interval = body["noise_confidence_interval"]
                assert body["value"] == row[name]
                assert interval["lower_bound"] == row[f"{name}_lower"]
                assert interval["upper_bound"] == row[f"{name}_upper"]
                assert interval["confidence_level"] == level


def test_reports_cost_nothing_and_are_read_back() -> None:
    with _session() as session:
        release = _release(session)
    read = {index for c in release.record.columns for index in (c.total, c.count, *c.more)}
    assert read - {None} == set(range(len(release.record.measures)))
    assert len(release.record.measures) == 8
    again = TableRelease(ReleaseRecord.from_bytes(release.record.to_bytes()), None, release.priced)
    assert again.to_arrow().equals(release.to_arrow())
    assert "json" in str(release)
