"""The guides to secure aggregation and to verifiable sums run as they stand, from top to bottom.

What vdaf.md asserts of noisy counts fails with a probability below 1e-12: they are 8 deviations apart.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import cases

DOCS = Path(__file__).parents[2] / "docs"


@cases("page", ["secure_aggregation.md", "vdaf.md"])
def test_the_guide_runs(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) > 3
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
