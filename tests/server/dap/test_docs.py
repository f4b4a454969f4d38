"""The guide to DAP runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[3] / "docs" / "dap.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1
    space: dict[str, Any] = {}
    exec(blocks[0], space)
    assert space["task"].min_batch_size == 1000
