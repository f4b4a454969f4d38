"""The part of the guide to Flower that needs no Flower runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path


def test_the_guide_runs() -> None:
    text = (Path(__file__).parents[3] / "docs" / "flower.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    exec(block, {})
