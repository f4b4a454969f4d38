"""The guide to ranges runs as it stands, and its table is what the code gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[3] / "docs" / "ranges.md").read_text(encoding="utf-8")


def test_the_guide_runs_and_its_table_is_right() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 8
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    assert f"{space['ages'].device.width} bytes each" in PAGE
    plans = {plan.name: plan for plan in space["choice"].plans}
    rows = re.findall(r"^\| [^|]* \|" + r" ([\d.]+) \|" * 5, PAGE, re.MULTILINE)
    names = ("tree, projective", "haar", "tree", "tree, one bit", "flat")
    for name, row in zip(names, rows, strict=True):
        plan = plans[name]
        errors = [1000 * error for error in (*plan.by_length.values(), plan.stddev)]
        assert [f"{error:#.3g}" for error in errors] == list(row[:4])
        assert plan.bytes == int(row[4])
