"""Doctests that are found by reading a package's files, and import them only when they run.

pytest's own finder imports every module of the package in every process, to look at its docstrings.
"""

from __future__ import annotations

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import _get_checker, _get_continue_on_failure, _get_runner, get_optionflags

__all__ = ["Docstrings"]


class Docstrings:
    """The plugin: in place of ``--doctest-modules``, for files of packages."""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Take the place of pytest's finder."""
        self.wanted, config.option.doctestmodules = bool(config.option.doctestmodules), False

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Take the modules of packages: a folder of tests is none."""
        if not (self.wanted and file_path.suffix == ".py" and (file_path.parent / "__init__.py").exists()):
            return None
        source: _Source = _Source.from_parent(parent, path=file_path)
        return source


class _Source(pytest.File):
    """A module, read and not imported."""

    def collect(self) -> Iterator[pytest.Item]:
        text = self.path.read_text(encoding="utf-8")
        if ">>>" not in text:
            return
        name, parser = _module_name(self.path), doctest.DocTestParser()
        runner: Any = _get_runner(
            checker=_get_checker(),
            verbose=False,
            optionflags=get_optionflags(self.config),
            continue_on_failure=_get_continue_on_failure(self.config),
        )
        for where, docstring, line in sorted(_docstrings(ast.parse(text), name)):
            test = parser.get_doctest(docstring, {}, where, str(self.path), line)
            if test.examples:
                parent: Any = self
                yield _Example.from_parent(parent, name=where, runner=runner, dtest=test)


class _Example(pytest.DoctestItem):
    """The examples of one docstring."""

    def setup(self) -> None:
        self.dtest.globs.update(vars(importlib.import_module(_module_name(self.path))))
        super().setup()


def _docstrings(tree: ast.Module | ast.ClassDef, name: str) -> Iterator[tuple[str, str, int]]:
    """The docstrings of a module or class and of what it defines, with their names and lines (from 0)."""
    if docstring := ast.get_docstring(tree, clean=False):
        yield name, docstring, tree.body[0].lineno - 1
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from _docstrings(node, f"{name}.{node.name}")
        elif isinstance(node, ast.FunctionDef) and (docstring := ast.get_docstring(node, clean=False)):
            yield f"{name}.{node.name}", docstring, node.body[0].lineno - 1


def _module_name(path: Path) -> str:
    """The name under which a file of a package is imported."""
    parts = [] if path.name == "__init__.py" else [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").exists():
            break
        parts.append(folder.name)
    return ".".join(reversed(parts))
