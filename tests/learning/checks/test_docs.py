"""The page on checks: its code runs as it stands, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "checks.md"


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    space: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), space)  # one after the other, as a reader would
    out = capsys.readouterr().out.splitlines()
    assert f"# {out[0]}" in text
    assert out[1].startswith("passed: no leak seen")
    assert any(line.startswith("0.weight: ") for line in out[2:])
