"""What holds for the project as a whole: its papers agree, its faces export what they say, and lazily."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import sfumato
from sfumato.errors import MissingExtra
from tests.cases import cases

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
ROOMS = [name for name in sfumato.__all__ if importlib.util.find_spec(f"sfumato.{name}")]
LOCAL = ["sfumato.local.baselines", "sfumato.local.device", "sfumato.local.shuffle", "sfumato.local.surveys"]
FACES = ["sfumato", *(f"sfumato.{room}" for room in ROOMS), *LOCAL]
HEAVY = (
    "duckdb",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "scipy.optimize",
    "scipy.stats",
    "sqlglot",
    "torch",
    "typer",
)


def fenced_block(marker: str) -> str:
    """The block that follows a marker, as .ci/run reads it."""
    (block,) = re.findall(rf"<!-- {marker} -->\n+```\w*\n(.*?)\n```", README, re.DOTALL)
    return str(block)


def loaded_by(code: str) -> set[str]:
    """The modules that a fresh interpreter holds after some code."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def part(face: ModuleType, name: str) -> object:
    """What a face exports under a name; nothing, where it needs torch and torch is absent."""
    try:
        return getattr(face, name)
    except MissingExtra:
        assert importlib.util.find_spec("torch") is None
        return ""


def test_the_readme_tests_with_the_command_that_ci_runs() -> None:
    command = "python -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/python -m pytest"
    assert fenced_block("test-command") == command
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "<!-- test-command -->" in script
    assert "run_readme_command" in script


def test_the_readme_shows_the_demo_in_one_command() -> None:
    assert "python -m venv .venv && .venv/bin/pip install . && .venv/bin/sfumato demo" in README


def test_one_version_everywhere() -> None:
    version = PROJECT["project"]["version"]
    assert sfumato.__version__ == version
    assert importlib.metadata.version("sfumato") == version
    client = json.loads((ROOT / "javascript" / "package.json").read_text(encoding="utf-8"))
    assert client["version"] == version
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == version


def test_the_command_line_is_installed() -> None:
    (script,) = importlib.metadata.entry_points(group="console_scripts", name="sfumato")
    assert script.value == PROJECT["project"]["scripts"]["sfumato"]
    assert callable(script.load())


@cases("face", FACES)
def test_a_face_exports_what_it_lists(face: str) -> None:
    module = importlib.import_module(face)
    assert sorted(set(module.__all__)) == sorted(module.__all__)
    for name in module.__all__:
        assert part(module, name) is not None  # or the error that names the extra
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError):
        _ = module.no_such_name


@cases("face", FACES)
def test_a_star_import_brings_what_the_face_lists(face: str) -> None:
    space: dict[str, object] = {}
    listed = importlib.import_module(face)
    if not all(part(listed, name) for name in listed.__all__):
        pytest.skip("torch is absent, and a star import names it: see the test of extras")
    exec(f"from {face} import *", space)
    assert set(space) - {"__builtins__"} == set(importlib.import_module(face).__all__)


def test_importing_faces_loads_nothing_heavy() -> None:
    loaded = loaded_by(f"import {', '.join(FACES)}")
    assert loaded.issuperset(FACES)
    assert loaded.isdisjoint(HEAVY)


def test_importing_sfumato_loads_no_room() -> None:
    ours = {name for name in loaded_by("import sfumato") if name.startswith("sfumato")}
    assert ours == {"sfumato", "sfumato._lazy"}


def test_the_core_needs_nothing_heavy_even_when_used() -> None:
    """Not even the optimiser by which strategies for many queries are found, before one is."""
    rooms = ("numerics", "privacy", "mechanisms")
    code = f"import sfumato\nrooms = [sfumato.{', sfumato.'.join(rooms)}]\n"
    code += "parts = [getattr(room, name) for room in rooms for name in room.__all__]"
    everything = loaded_by(code)
    assert {f"sfumato.{room}" for room in rooms} <= everything
    assert everything.isdisjoint(HEAVY)


def test_the_reference_shows_every_room() -> None:
    reference = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^   (sfumato\S*)$", reference, re.MULTILINE)) == set(FACES)
