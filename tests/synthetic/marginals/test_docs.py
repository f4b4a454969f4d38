"""The page about published tables runs as it stands, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path

from tests.run_time import run_time

if run_time(__name__):
    import pandas  # noqa: F401, ICN001 - what the page loads

PAGE = (Path(__file__).parents[3] / "docs" / "tables.md").read_text(encoding="utf-8")


def test_the_page_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 3
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
