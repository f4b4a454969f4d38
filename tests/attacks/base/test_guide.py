"""The code blocks of the page on attacks run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "attacks.md"


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 11
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
