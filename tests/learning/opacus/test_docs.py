"""The page for those who come from Opacus: its code runs as it stands, and its names are there."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "opacus.md"


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    space: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), space)  # one after the other, as a reader would
    assert 0 < float(capsys.readouterr().out) < 4


def test_the_table_names_what_is_there() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for module in ("layers", "accountants", "schedulers", "validators", "distributed"):
        assert f"`{module}." in page
        importlib.import_module(f"sfumato.learning.opacus.{module}")
