"""The page on mechanisms runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cases import cases

PAGE = Path(__file__).parents[2] / "docs" / "mechanisms.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


@cases("section", SECTIONS, ids=[section.splitlines()[0] for section in SECTIONS])
def test_the_examples_run(section: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", section, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)
