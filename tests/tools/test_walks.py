"""A walk names what a call enters, and where it goes against the imports."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tools.walks.command import main
from tools.walks.scenes import local_walk
from tools.walks.trace import trace

FILES = {
    "__init__.py": "",
    "top.py": "from walked.low import low\ndef back():\n    return 1\ndef top():\n    return low(back)\n",
    "low.py": "def low(given):\n    return sorted([given()])\n",
}


@pytest.fixture
def walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "walked"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return root


def test_files_functions_and_climbs_are_named(walked: Path) -> None:
    top = importlib.import_module("walked.top").top
    try:
        walk = trace(walked, top)
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "walked"]:
            del sys.modules[name]
    assert walk.folders() == {"": ["top.py", "low.py"]}
    assert [name for _, name in walk.functions] == ["top", "low", "back"]
    assert walk.calls == {("top.py", "low.py"): 1, ("low.py", "top.py"): 1}
    assert [*walk.climbs()] == [("low.py", "top.py")]


def test_the_walk_of_a_local_report_begins_at_the_device() -> None:
    folders = [*local_walk().folders()]
    assert {"local/device/frequency", "local/frequency", "numerics/randomness"} <= set(folders)
    assert folders[0].startswith("local")


@pytest.mark.exhaustive
@pytest.mark.parametrize("scene", ["sql", "local"])
def test_the_command_prints_folders_numbers_and_climbs(
    scene: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([scene]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith("  1. ")
    assert any(" files, " in line and line.endswith(" climbs") for line in shown)
