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


def blocks(page: str) -> list[str]:
    """Return a page's blocks of code."""
    return re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)


def run(code: list[str]) -> None:
    """Run blocks one after the other."""
    space: dict[str, Any] = {}
    for block in code:
        exec(block, space)


@pytest.fixture
def imported() -> None:
    """What the guides import at their first use."""
    for name in ("sklearn.linear_model", "sklearn.model_selection"):
        importlib.import_module(name)
    for name in adaptive.__all__:
        getattr(adaptive, name)


@pytest.mark.usefixtures("imported")
def test_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run(blocks(PAGE)[:3])
    assert "Vacuous" in capsys.readouterr().out


@pytest.mark.usefixtures("imported")
def test_the_guide_goes_on_with_its_data() -> None:
    data, _, _, *others = blocks(PAGE)
    assert len(others) >= 4
    run([data, "from sfumato import adaptive", *others])


@pytest.mark.usefixtures("imported")
def test_the_guide_to_inference_runs() -> None:
    assert len(blocks(INFERENCE)) >= 3
    run(blocks(INFERENCE))


def test_the_guide_names_everything() -> None:
    assert [name for name in adaptive.__all__ if name not in PAGE + INFERENCE] == []
