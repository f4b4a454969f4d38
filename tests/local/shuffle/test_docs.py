"""The guide to the shuffle model runs as it stands, and its table is what the code gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "shuffle.md").read_text(encoding="utf-8")


@pytest.mark.exhaustive  # plans for a hundred thousand clients
def test_the_guide_runs_and_its_table_is_right() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 6
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    rows = re.findall(r"^\|[^|]*\| (\d+\.\d) \| (\d+\.\d) \|$", PAGE, re.MULTILINE)
    found = [tuple(f"{number:.1f}" for number in row) for row in space["table"].values()]
    assert rows == found
    assert f"{space['several'].messages} messages each" in PAGE
    decoys = space["several"].device.decoys
    assert round(float(decoys.slots * decoys.coin.chance) * 100_000 / 10_000) == 43
    sums = re.findall(r"^\|[^|]*\| (\d+\.\d) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    rows = [(f"{strays:.1f}", str(count), str(size)) for strays, count, size in space["sums"].values()]
    assert sums == rows
    target = {"epsilon": 1.0, "delta": 1e-6, "bounds": (0.0, 60.0)}
    sent = [space["shuffle"].ShuffledMean(clients=count, **target).messages for count in (10_000, 1_000_000)]
    assert "Ten thousand clients send {} messages each for this target, a million {}".format(*sent) in PAGE
    lone = space["lone"].device
    assert f"{lone.steps + 1}\nplaces" in PAGE
    assert f"true with probability {float(lone.inside.chance):.2f}" in PAGE
    assert abs(space["estimate"].reports - 100_000) == 0
