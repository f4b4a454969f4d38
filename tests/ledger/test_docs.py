"""The page about the ledger runs by copy and paste, from its first block to its last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sfumato.ledger import Ledger

PAGE = Path(__file__).parents[2] / "docs" / "ledger.md"


def test_the_blocks_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    ran = 0
    for block in blocks:
        code = compile(block, str(PAGE), "exec")
        if "postgresql://" not in block:
            exec(code, names)
            ran += 1
    assert ran == len(blocks) - 2 == 7
    with Ledger.read("people.ledger") as ledger:
        assert [entry.steps for entry in ledger.entries()] == [0, 100, 0, 0]
