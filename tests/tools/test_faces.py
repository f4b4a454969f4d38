"""The tool that imports all faces sees every room, and tells a missing library from a fault."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tools.faces import packages, shown

WITHOUT = """
import runpy, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
runpy.run_path({path!r}, run_name="__main__")
"""
TOOL = Path(__file__).parents[2] / "tools" / "faces.py"


def run(*names: str, package: str) -> subprocess.CompletedProcess[str]:
    code = WITHOUT.format(names=names, path=str(TOOL))
    return subprocess.run([sys.executable, "-c", code, package], capture_output=True, text=True, check=False)


def test_every_room_is_seen() -> None:
    assert {"sfumato", "sfumato.privacy", "sfumato.queries", "sfumato.local.device"} <= set(packages())
    assert shown("sfumato.privacy") == (len(sys.modules["sfumato.privacy"].__all__), [])


def test_an_absent_library_is_told() -> None:
    done = run("torch", package="sfumato.learning")
    assert done.returncode == 0, done.stderr
    assert (
        "sfumato.learning.PrivacyEngine: PrivacyEngine needs torch; pip install 'sfumato[torch]'"
        in done.stdout
    )
    assert re.fullmatch(r"1 packages, \d+ names, \d+ without an absent library", done.stdout.splitlines()[-1])


def test_a_broken_module_is_a_fault() -> None:
    done = run("torch", "sfumato.numerics.interval", package="sfumato.numerics")
    assert done.returncode == 1
    assert "sfumato.numerics.interval" in done.stderr
