"""A sound wheel passes the check; one thing wrong with it, and the check must say so."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tools.check_wheel import NEEDED_IN_SDIST, expected_files, sdist_faults, twin_faults, wheel_faults

PROJECT: dict[str, Any] = {
    "project": {
        "name": "demo",
        "version": "1.0",
        "description": "A demo.",
        "requires-python": ">=3.11",
        "license": "Apache-2.0",
        "license-files": ["LICENSE", "NOTICE"],
        "classifiers": ["Typing :: Typed"],
        "dependencies": ["numpy>=1.26", "rich>=13"],
        "optional-dependencies": {"pandas": ["pandas>=2.1"]},
        "scripts": {"demo": "demo.cli:main"},
    },
    "tool": {
        "setuptools": {
            "package-data": {"demo": ["py.typed"], "demo.data": ["*.parquet"]},
            "ext-modules": [{"name": "demo._kernel", "sources": ["src/demo/_kernel.c"]}],
        }
    },
}
METADATA = """\
Metadata-Version: 2.4
Name: demo
Version: 1.0
Summary: A demo.
Requires-Python: >=3.11
License-Expression: Apache-2.0
License-File: LICENSE
License-File: NOTICE
Classifier: Typing :: Typed
Requires-Dist: numpy>=1.26
Requires-Dist: rich >=13
Requires-Dist: pandas>=2.1; extra == "pandas"
Provides-Extra: pandas
Description-Content-Type: text/markdown

# demo
"""
CONTENT = {
    "demo-1.0.dist-info/METADATA": METADATA,
    "demo-1.0.dist-info/entry_points.txt": "[console_scripts]\ndemo = demo.cli:main\n",
}
NAME = "demo-1.0-cp311-abi3-linux_x86_64.whl"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    source = tmp_path / "src" / "demo"
    (source / "data").mkdir(parents=True)
    for file in ("__init__.py", "cli.py", "py.typed", "_kernel.c", "data/__init__.py", "data/a.parquet"):
        (source / file).touch()
    return tmp_path


def wheel(root: Path, changes: Mapping[str, str | None] | None = None, name: str = NAME) -> Path:
    files = dict.fromkeys(expected_files(root, PROJECT), "") | CONTENT | dict(changes or {})
    with zipfile.ZipFile(root / name, "w") as archive:
        for file, text in files.items():
            if text is not None:
                archive.writestr(file, text)
    return root / name


def test_the_expected_files_are_the_package_its_kernel_and_its_papers(root: Path) -> None:
    info = {
        "METADATA",
        "RECORD",
        "WHEEL",
        "entry_points.txt",
        "top_level.txt",
        "licenses/LICENSE",
        "licenses/NOTICE",
    }
    package = {"__init__.py", "cli.py", "py.typed", "data/__init__.py", "data/a.parquet", "_kernel.abi3.so"}
    named = {f"demo/{file}" for file in package} | {f"demo-1.0.dist-info/{file}" for file in info}
    assert expected_files(root, PROJECT) == named


def test_a_sound_wheel_has_no_fault(root: Path) -> None:
    assert list(wheel_faults(wheel(root), root, PROJECT)) == []


@pytest.mark.parametrize(
    "file", ["demo/_kernel.abi3.so", "demo/py.typed", "demo-1.0.dist-info/licenses/NOTICE"]
)
def test_a_missing_file_is_named(root: Path, file: str) -> None:
    assert list(wheel_faults(wheel(root, {file: None}), root, PROJECT)) == [f"missing from the wheel: {file}"]


@pytest.mark.parametrize("file", ["demo/_kernel.c", "tests/test_demo.py", "demo/a.ledger"])
def test_a_stray_file_is_named(root: Path, file: str) -> None:
    assert list(wheel_faults(wheel(root, {file: ""}), root, PROJECT)) == [f"must not be in the wheel: {file}"]


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("Requires-Python: >=3.11", "Requires-Python"),
        ("License-File: NOTICE", "License-File"),
        ("Requires-Dist: rich >=13", "Requires-Dist"),
        ("Classifier: Typing :: Typed", "Classifier"),
        ("Provides-Extra: pandas", "Provides-Extra"),
        ("# demo", "description"),
    ],
)
def test_a_missing_field_is_named(root: Path, line: str, field: str) -> None:
    broken = {"demo-1.0.dist-info/METADATA": METADATA.replace(f"{line}\n", "")}
    (fault,) = wheel_faults(wheel(root, broken), root, PROJECT)
    assert field in fault


def test_a_command_that_is_not_installed_is_named(root: Path) -> None:
    broken = {"demo-1.0.dist-info/entry_points.txt": "[console_scripts]\ndemo = demo.other:main\n"}
    (fault,) = wheel_faults(wheel(root, broken), root, PROJECT)
    assert "demo = demo.cli:main" in fault


def test_a_wheel_of_one_interpreter_only_is_refused(root: Path) -> None:
    (fault,) = wheel_faults(wheel(root, name="demo-1.0-cp311-cp311-linux_x86_64.whl"), root, PROJECT)
    assert "cp311-abi3" in fault


def test_a_heavy_wheel_is_refused(root: Path) -> None:
    (fault,) = wheel_faults(wheel(root, {"demo/data/a.parquet": "x" * 600_001}), root, PROJECT)
    assert "at most 600000 bytes" in fault


def test_sources_are_as_many_as_there_are(root: Path) -> None:
    assert not list(wheel_faults(wheel(root, {"demo/cli.py": "x" * 3_000_000}), root, PROJECT))


def test_twins_differ_where_their_bytes_do(root: Path) -> None:
    first = wheel(root)
    second = wheel(root, {"demo/cli.py": "x = 1\n"}, NAME.replace("linux", "other"))
    assert list(twin_faults(first, first)) == []
    assert list(twin_faults(first, second)) == ["demo/cli.py differs between the wheel and its twin"]


def sdist(root: Path, names: tuple[str, ...]) -> Path:
    path = root / "demo-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(f"demo-1.0/{name}"), io.BytesIO())
    return path


def test_the_sdist_holds_the_sources_and_nothing_built(root: Path) -> None:
    whole = (*NEEDED_IN_SDIST, "src/demo/_kernel.c")
    assert list(sdist_faults(sdist(root, whole), PROJECT)) == []
    assert list(sdist_faults(sdist(root, whole[1:-1]), PROJECT)) == [
        f"missing from the sdist: {NEEDED_IN_SDIST[0]}",
        "missing from the sdist: src/demo/_kernel.c",
    ]
    for stray in ("src/demo/_kernel.abi3.so", ".hypothesis/x", "build/lib/a.py", "a/__init__.pyc"):
        assert list(sdist_faults(sdist(root, (*whole, stray)), PROJECT)) == [
            f"must not be in the sdist: {stray}"
        ]
