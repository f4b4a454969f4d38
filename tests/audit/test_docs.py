"""The page on auditing runs, block by block, as it is printed."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "audit.md"


def test_the_examples_run() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 6
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
    assert "found" in space
