"""Which tests reach which functions, as one traced run found, for as long as the files stay as they were."""

from __future__ import annotations

import ast
import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.measures.source import Function, Module

__all__ = ["Reach", "names_near"]


class Reach:
    """A store of what a traced run of the tests found.

    Parameters
    ----------
    store : pathlib.Path
        The file, in an ignored folder.
    """

    def __init__(self, store: Path) -> None:
        self.store = store

    @cached_property
    def _table(self) -> dict[str, Any]:
        if not self.store.exists():
            return {"files": {}, "tests": {}}
        table: dict[str, Any] = json.loads(self.store.read_text(encoding="utf-8"))
        return table

    def known(self, files: Iterable[str], module: Module, function: str) -> dict[str, tuple[float, bool]]:
        """Return seconds, and whether a function is reached, for tests of files that have not changed."""
        table = self._table
        if table["files"].get(module.path.as_posix()) != _digest(module.path):
            return {}
        as_they_were = {
            file for file in files if file.endswith(".py") and table["files"].get(file) == _digest(Path(file))
        }
        return {
            test: (seconds, [module.name, function] in reached)
            for test, (file, seconds, reached) in table["tests"].items()
            if file in as_they_were
        }

    def remember(
        self, tests: Mapping[str, tuple[str, float, list[list[str]]]], sources: Iterable[Path]
    ) -> None:
        """Put the findings of a traced run in the store, in the place of what was known of the same files."""
        files = {file for file, *_ in tests.values()}
        kept = {test: entry for test, entry in self._table["tests"].items() if entry[0] not in files}
        digests = {path.as_posix(): _digest(path) for path in sources}
        stale = {f for f, digest in self._table["files"].items() if digests.get(f, digest) != digest}
        # What an older run found is only as good as the sources that it ran.
        table = {"files": self._table["files"] | digests, "tests": {} if stale else kept}
        table["tests"].update(tests)
        table["files"].update({file: _digest(Path(file)) for file in files if Path(file).exists()})
        self.store.parent.mkdir(exist_ok=True)
        self.store.write_text(json.dumps(table), encoding="utf-8")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names_near(module: Module, name: str, line: int, steps: int = 2) -> dict[str, int]:
    """Return the names by which a test may show that it uses what changed, and how many uses lie between.

    Parameters
    ----------
    module : Module
        The module.
    name : str
        The qualified name of the function or class; empty for what stands outside both.
    line : int
        The line that changes.
    steps : int
        How many uses may lie between.
    """
    found = {part: 0 for part in name.split(".") if part and not part.startswith("__")}
    if not name:
        found = dict.fromkeys(_assigned(module, line), 0)
    mentions: dict[str, set[str]] = {}
    for node in module.tree.body:
        if isinstance(node, Function | ast.ClassDef):
            for inner in [node, *(n for n in ast.walk(node) if isinstance(n, Function))]:
                used = {n.id for n in ast.walk(inner) if isinstance(n, ast.Name)}
                used |= {n.attr for n in ast.walk(inner) if isinstance(n, ast.Attribute)}
                mentions[inner.name] = mentions.get(inner.name, set()) | used
    for step in range(1, steps + 1):
        for user, used in mentions.items():
            if user not in found and any(found.get(one, steps) < step for one in used):
                found[user] = step
    return found


def _assigned(module: Module, line: int) -> set[str]:
    """Return the names that the statement on a line binds, outside functions."""
    around = (node for node in module.tree.body if node.lineno <= line <= (node.end_lineno or node.lineno))
    return {
        inner.id
        for node in around
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }
