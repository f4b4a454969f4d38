"""The page on recipes: its code runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "recipes.md"


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    space: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), space)  # one after the other, as a reader would
    found = re.search(r"(\d\.\d+) at epsilon (\d\.\d+)", capsys.readouterr().out)
    assert found is not None
    assert float(found[1]) > 0.5
    assert 2.9 < float(found[2]) <= 3.0
