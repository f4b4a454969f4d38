"""The guide runs as it stands."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from sfumato import adaptive

DOCS = Path(__file__).parents[2] / "docs"
PAGE, INFERENCE = ((DOCS / name).read_text(encoding="utf-8") for name in ("adaptive.md", "inference.md"))


def run(page: str) -> int:
    """Run a page's blocks, and return how many there are."""
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    space: dict[str, Any] = {}
    for block in blocks:
        exec(block, space)
    return len(blocks)


@pytest.fixture
def scikit_learn() -> None:
    """The library that the guide imports, imported."""
    importlib.import_module("sklearn.linear_model")
    importlib.import_module("sklearn.model_selection")


@pytest.mark.usefixtures("scikit_learn")
def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(PAGE) >= 5
    assert "Vacuous" in capsys.readouterr().out


def test_the_guide_to_inference_runs() -> None:
    assert run(INFERENCE) >= 3


def test_the_guide_names_everything() -> None:
    assert [name for name in adaptive.__all__ if name not in PAGE + INFERENCE] == []
