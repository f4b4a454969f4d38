"""The guide to heavy hitters runs as it stands, from top to bottom."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from sfumato.local import Bitstogram, PrefixExtending, SequenceFragmentPuzzle, Strings, TreeHist

PAGE = (Path(__file__).parents[3] / "docs" / "heavy_hitters.md").read_text(encoding="utf-8")


def test_the_guide_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) > 5
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    assert sorted(space["estimate"].found)[-3:] == ["selfie", "sfumat", "yolo"]


def test_the_bytes_in_the_guide() -> None:
    kinds: list[Any] = [PrefixExtending, TreeHist, Bitstogram, SequenceFragmentPuzzle]
    for kind in kinds:
        (told,) = re.findall(rf"^\| `{kind.__name__}`[^|]*\|[^|]*\| (\d+) bytes", PAGE, flags=re.MULTILINE)
        assert kind(epsilon=1.0, strings=Strings(length=8)).device.width == int(told)
