"""The guide runs as it stands, and its table of towns is whole."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sfumato import location

PAGE = (Path(__file__).parents[2] / "docs" / "location.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 6
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)


def test_every_function_is_in_the_guide() -> None:
    for name in location.__all__:
        if name[0].islower() and name not in {"greedy_spanner", "bayes_adversary"}:
            assert f"`{name}" in PAGE or f".{name}(" in PAGE, name
