"""Faces: what a package exports is what it lists, and every public name has types and a docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from tools.measures.source import Function, Module, public, statements

__all__ = ["bare_names", "faces"]


def bare_names(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield public modules, classes, functions and methods without docstring or without types."""
    for module in filter(lambda m: m.is_public, modules.values()):
        if ast.get_docstring(module.tree) is None:
            yield f"{module.name}: no docstring"
        for name, node in public(module.tree.body, module.name):
            if ast.get_docstring(node) is None:
                yield f"{name}: no docstring"
            if isinstance(node, Function) and _untyped(node):
                yield f"{name}: not fully typed"


def _untyped(node: Function) -> bool:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments += [extra for extra in (node.args.vararg, node.args.kwarg) if extra]
    bare = [a for a in arguments if a.annotation is None and a.arg not in {"self", "cls"}]
    return node.returns is None or bool(bare)


def faces(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield names that a module lists but lacks, and faces whose lists differ from what they export."""
    for module in modules.values():
        listed, attached = module.listed, module.attached
        known = module.defined | set(attached or {})
        if listed is not None and (missing := sorted(set(listed) - known)):
            yield f"{module.name}: __all__ names {', '.join(missing)}, which it does not define"
        if attached is not None:
            yield from _face(modules, module, listed or [], attached)


def _face(
    modules: Mapping[str, Module], module: Module, listed: list[str], attached: dict[str, str]
) -> Iterator[str]:
    typed = {name for _, name in module.imports(statements(module.tree.body, typing=True)) if name}
    for what, names in (("exports", set(attached)), ("shows to type checkers", typed)):
        if odd := sorted(names ^ set(listed)):
            yield f"{module.name}: __all__ and what it {what} differ in {', '.join(odd)}"
    for name, home in attached.items():
        inner = f"{module.name}.{name}"
        if home and inner in modules:
            yield f"{inner} is a module and a name of the face; importing the module would hide the name"
        if not home and inner not in modules:
            yield f"{inner} is exported as a module that is not there"
        if home and (home not in modules or name not in modules[home].defined):
            yield f"{inner}: {home} does not define it"
