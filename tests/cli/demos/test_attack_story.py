"""The code blocks of the page that tells the demo's story run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sfumato.cli.demos import attack_story

PAGE = Path(__file__).parents[3] / "docs" / "attack_story.md"


def test_the_story_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack_story, "_BLOCKS", 6)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
