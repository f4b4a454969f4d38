"""The guide to distributed noise runs as it stands, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "distributed_noise.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
