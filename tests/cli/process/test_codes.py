"""Exit codes: 2 for what is wrong on the command line, 1 for what is wrong elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sfumato.cli.commands import FAILED, WRONG, app
from sfumato.cli.data import ACS

QUERY = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=0.5, delta=0) COUNT(*) AS n FROM data"
UNIT = ("--privacy-unit", "person_id", "--epsilon", "2")


@pytest.mark.parametrize("code", [WRONG, FAILED], ids=["wrong", "failed"])
@pytest.mark.sharpest("wrong", "failed")
def test_codes(code: int, tmp_path: Path) -> None:
    lines: dict[int, list[tuple[object, ...]]] = {
        WRONG: [
            ("sql", ACS, "--privacy-unit", "person_id", QUERY),
            ("sql", ACS, *UNIT),
            ("sql", ACS, *UNIT, "--epsilon", "-1", QUERY),
            ("sql", ACS, *UNIT, "--format", "xml", QUERY),
            ("sql", ACS, *UNIT, "--param", "age", QUERY),
            ("sql", ACS, *UNIT, "--output", tmp_path / "none" / "a.csv", QUERY),
            ("ledger", "grant", tmp_path / "l", "ada"),
            ("epsilon",),
            ("epsilon", "--gaussian", "one"),
            ("nothing",),
        ],
        FAILED: [
            ("sql", ACS, *UNIT, "SELECT FROM WHERE"),
            ("sql", tmp_path / "none.parquet", *UNIT, QUERY),
            ("ledger", "show", tmp_path / "none"),
        ],
    }
    for words in lines[code]:
        assert CliRunner().invoke(app, [str(word) for word in words]).exit_code == code, words
