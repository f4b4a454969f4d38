"""Imports that wait until a test runs, so that collecting tests loads no library that takes seconds.

    if run_time(__name__):
        import torch
        from torch import nn

        from sfumato.learning.engine.engine import Engine

        class Net(nn.Module): ...

While pytest collects, the block is left out, and its names are not defined. Before the first test of the
module it is executed, and from then on the names are there as if they always had been. Tests, fixtures and
parameters are needed to collect, so they stand outside: where a case needs torch, it is a function, a name,
or one of a loop (`tests.cases`).
"""

from __future__ import annotations
import __future__

import ast
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given, settings, strategies

__all__ = ["RunTime", "loaded_while_collecting", "run_time"]


class _State:
    """Where the session stands."""

    collecting = False
    waiting: ClassVar[dict[str, None]] = {}
    """The modules whose blocks are still to be executed, in the order of their import."""
    loaded: frozenset[str] = frozenset()
    """What was imported when all tests were collected."""


def loaded_while_collecting() -> frozenset[str]:
    """The modules that were imported when this process had collected its tests."""
    return _State.loaded


def run_time(module: str) -> bool:
    """Whether the block that follows is executed now; if not, it is before the module's first test."""
    if _State.collecting:
        _State.waiting[module] = None
    return not _State.collecting


class RunTime:
    """The plugin: executes what waits in the modules that a test is made of."""

    def __init__(self) -> None:
        self._completed: set[Path] = set()
        _State.collecting = True

    @pytest.hookimpl(trylast=True)
    def pytest_collection_finish(self) -> None:
        """From here on, what is imported need not wait, and garbage is not looked for in what is there."""
        _State.collecting, _State.loaded = False, frozenset(sys.modules)
        _draw_nothing()  # when first used, Hypothesis asks the collector who holds its generators
        gc.collect()
        gc.freeze()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Complete the module of a test, and the conftest files beside and above it."""
        if item.path in self._completed:
            return
        waiting = len(_State.waiting)
        for name in list(_State.waiting):
            path = Path(str(sys.modules[name].__file__))
            if path == item.path or (path.name == "conftest.py" and path.parent in item.path.parents):
                _complete(name)
        self._completed.add(item.path)
        if len(_State.waiting) < waiting:
            gc.freeze()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        """Let the interpreter clear everything at its end, as libraries of C++ require."""
        gc.unfreeze()


@settings(max_examples=1, database=None)
@given(strategies.none())
def _draw_nothing(nothing: None) -> None:
    del nothing


def _complete(name: str) -> None:
    """Execute the blocks of a module, after those of all modules that it imports from."""
    if name not in _State.waiting:
        return
    del _State.waiting[name]
    module = sys.modules[name]
    file = str(module.__file__)
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    try:
        for imported in _imported(tree):
            _complete(imported)
        for node in tree.body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "run_time(__name__)":
                block = ast.Module(node.body, type_ignores=[])
                flags = __future__.annotations.compiler_flag
                exec(compile(block, file, "exec", flags, dont_inherit=True), vars(module))
    except BaseException:
        _State.waiting[name] = None  # so that each test of the module says why it cannot run
        raise


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a module may import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
