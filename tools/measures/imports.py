"""Imports: no circle, and none inside a function that is not of an optional library."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from tools.measures.source import Module, statements

__all__ = ["circles", "import_graph", "inner_imports", "optional_libraries"]

TEST_EXTRA = "test"

_IMPORTED_AS = {"scikit_learn": "sklearn"}


def optional_libraries(project: Mapping[str, object]) -> frozenset[str]:
    """Return the libraries of pyproject's extras: those that may be imported on first use."""
    table = project.get("project", {})
    extras = table.get("optional-dependencies", {}) if isinstance(table, dict) else {}
    names = (
        re.match(r"[\w.-]+", wish)
        for extra, wishes in extras.items()
        if extra != TEST_EXTRA
        for wish in wishes
    )
    found = (name.group().replace("-", "_").lower() for name in names if name)
    return frozenset(_IMPORTED_AS.get(name, name) for name in found)


def circles(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield a circle of imports, if there is one; those for type checkers count, but for lazy faces."""
    try:
        TopologicalSorter(import_graph(modules)).prepare()
    except CycleError as error:
        yield "circle of imports: " + " <- ".join(error.args[1])


def import_graph(modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Return for each module those of the package that it imports."""
    return {name: _targets(modules, module) - {name} for name, module in modules.items()}


def _targets(modules: Mapping[str, Module], module: Module) -> set[str]:
    """Return the modules that one imports; a lazy face shows type checkers what it does not import."""
    nodes = [*statements(module.tree.body)]
    if module.attached is None:
        nodes += statements(module.tree.body, typing=True)
    targets = set()
    for base, name in module.imports(iter(nodes)):
        homes = (modules[base].attached or {}) if base in modules else {}
        choices = (f"{base}.{name}", homes.get(name or "", ""), base)
        targets.add(next((choice for choice in choices if choice in modules), module.name))
    return targets


def inner_imports(modules: Mapping[str, Module], optional: frozenset[str]) -> Iterator[str]:
    """Yield imports inside functions, except those of optional third-party libraries."""
    for module in modules.values():
        for function in module.functions:
            inner = (node for node in ast.walk(function) if isinstance(node, ast.stmt))
            for target, _ in module.imports(inner):
                if target.split(".")[0] not in optional:
                    yield f"{module.name}.{function.name}: imports {target} inside the function"
