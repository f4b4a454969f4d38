"""The guides to surveys run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"


def run(page: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / page).read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert blocks
    space: dict[str, object] = {}
    for block in blocks:
        exec(block, space)


def test_the_examples_of_designs_and_samples_run() -> None:
    run("surveys.md")


def test_the_examples_of_models_run() -> None:
    run("survey_models.md")
