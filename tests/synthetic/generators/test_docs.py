"""The page about synthetic tables runs as it stands, and what it says is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "synthetic.md").read_text(encoding="utf-8")


def test_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, space)
    printed = capsys.readouterr().out
    assert printed.startswith("<SyntheticModel of 4 columns")
    assert space["rows"].num_rows == round(space["model"].total)
    # Rows of an odd sum of three bits: half of all by pairs alone, next to none by the measured triple.
    shares = dict(re.findall(r"^(pairs|triple) (\S+)$", printed, re.MULTILINE))
    assert float(shares["pairs"]) > 0.1
    assert float(shares["triple"]) < 0.01
    assert not space["stored"].simulated
    assert space["stored"].receipt.sequence == 1
