"""The short examples run as their docstrings say, in an empty folder, and print what they promise."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

LINES = {
    "sql_report": "left of the budget: (1.5, 4e-08)-DP",
    "team_ledger": "grace, epsilon 0.2: refused, the largest that fits is 0.1",
    "local_telemetry": "20,000 reports of 9 bytes",
    "prio3_histogram": "1,999 of 2,000 reports are accepted",
}


@pytest.mark.sharpest(*LINES)
@pytest.mark.parametrize("name", LINES)
def test_the_example_runs_as_a_script(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert LINES[name] in capsys.readouterr().out
    assert not list(tmp_path.iterdir())  # what an example writes goes with its own temporary folder
