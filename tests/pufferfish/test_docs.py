"""The guide runs as it stands, and says what is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "pufferfish.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 9
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    assert space["quilt"].scale == pytest.approx(125.7, abs=0.05)
    assert space["year"].scale == pytest.approx(54.3, abs=0.05)
    error = abs(space["noisy"] - space["histogram"]).sum() / 1_000_000
    assert error < 0.02  # 51 bars of scale 54: a mean of .0028; seven times that has probability below 1e-30
