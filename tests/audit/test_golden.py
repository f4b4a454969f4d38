"""Reports of audits are written in the bytes of their frozen format."""

from __future__ import annotations

import json
from pathlib import Path

from tests.golden.audit import making

GOLDEN = Path(making.__file__).parent


def test_what_is_written_today_is_what_was_written_first() -> None:
    for name, content in making.files().items():
        assert content == (GOLDEN / name).read_bytes(), name


def test_infinite_numbers_and_missing_parts_are_readable_json() -> None:
    plain = json.loads((GOLDEN / "audit-report.json").read_text())
    assert (plain["format"], plain["version"], plain["floating_point"]) == ("sfumato.audit-report", 1, None)
    unbounded = json.loads((GOLDEN / "audit-report-floating-point.json").read_text())
    assert float(unbounded["epsilon_lower"]) == float("inf")
    assert unbounded["epsilon_if_gaussian"] is None
    assert unbounded["floating_point"]["impossible"] == 42
