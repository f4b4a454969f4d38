"""The guide to surveys runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "surveys.md"


def test_the_examples_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
