"""Tests mirror the source: each folder of modules has tests in the folder of the same path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tools.measures.source import Module

__all__ = ["untested_folders"]


def untested_folders(modules: Mapping[str, Module], tests: Path) -> Iterator[str]:
    """Yield the folders of the source without a test module of their own, and tests of no such folder."""
    tested = {path.parent.relative_to(tests).parts for path in tests.rglob("test_*.py")}
    folders = {tuple(name.split(".")[1:-1]) for name, module in modules.items() if not module.is_package}
    packages = {tuple(name.split(".")[1:]) for name, module in modules.items() if module.is_package}
    for folder in sorted(folders - tested - {()}):
        yield f"{'/'.join(folder)}: no tests in a folder of this name"
    for folder in sorted(tested - packages - {()}):
        if (folder[0],) in packages:
            yield f"{tests.name}/{'/'.join(folder)}: no source in a folder of this name"
