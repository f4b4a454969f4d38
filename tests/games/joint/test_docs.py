"""The guide runs as it stands, and names all there is."""

import re
from pathlib import Path
from typing import Any

import pytest

from sfumato import games

PAGE = (Path(__file__).parents[3] / "docs" / "joint_privacy.md").read_text(encoding="utf-8")


def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 7
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    printed = capsys.readouterr().out
    assert "1 leave" in printed or "1 stay" in printed


def test_the_guide_names_everything() -> None:
    own = [
        name for name in games.__all__ if getattr(games, name).__module__.startswith("sfumato.games.joint")
    ]
    assert len(own) > 20
    assert [name for name in own if name not in PAGE] == []
