"""The guides to PATE, to tuning and to the classical models run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["pate", "tuning", "classical"])
def test_the_examples_run(page: str) -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    assert blocks
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
