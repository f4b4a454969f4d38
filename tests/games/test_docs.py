"""The guide runs as it stands, and names what the room exports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sfumato import games

PAGE = (Path(__file__).parents[2] / "docs" / "games.md").read_text(encoding="utf-8")


def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 7
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    assert "Approximately truthful" in capsys.readouterr().out


def test_the_guides_name_everything() -> None:
    joint = (Path(__file__).parents[2] / "docs" / "joint_privacy.md").read_text(encoding="utf-8")
    assert [name for name in games.__all__ if name not in PAGE + joint] == []
