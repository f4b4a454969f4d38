"""The guide to TopDown runs as it stands, and the figures that it states come out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "topdown.md").read_text(encoding="utf-8")


def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 8
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "<Hierarchy firm: 1 > region: 4 > city: 40 > shop: 600>"
    assert printed[-1] == "17.14 16.81"
    assert all(f"# {figure}" in PAGE for figure in ("17.14 16.81",))
