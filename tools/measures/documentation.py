"""Documentation of what faces show: parameters, returns, and an example that runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.measures.source import Function, Module, statements

__all__ = ["Documented", "documented", "is_property", "shown"]


@dataclass(frozen=True)
class Documented:
    """What one public name has, of what it should have.

    Parameters
    ----------
    name : str
    wanted : int
        How many sections its docstring needs, the summary among them.
    missing : tuple of str
        Those that are not there.
    """

    name: str
    wanted: int
    missing: tuple[str, ...]


def documented(modules: Mapping[str, Module]) -> Iterator[Documented]:
    """Yield what is documented of each class, method and function that some face lists."""
    for name, _, node, owner in shown(modules):
        yield _of(name, node, top=owner is None)


def shown(
    modules: Mapping[str, Module],
) -> Iterator[tuple[str, Module, ast.ClassDef | Function, ast.ClassDef | None]]:
    """Yield the classes, methods and functions that faces list, each with its name, module and class."""
    homes = {home for module in modules.values() if module.is_package for home in _homes(module)}
    for full, module in modules.items():
        for node in module.tree.body:
            if not isinstance(node, Function | ast.ClassDef) or (full, node.name) not in homes:
                continue
            if node.name[0] == "_" or _inherited(node):
                continue
            yield f"{full}.{node.name}", module, node, None
            if not isinstance(node, ast.ClassDef):
                continue
            for method in node.body:
                if isinstance(method, Function) and method.name[0] != "_" and not _inherited(method):
                    yield f"{full}.{node.name}.{method.name}", module, method, node


def _homes(face: Module) -> Iterator[tuple[str, str]]:
    """Yield the modules and names that a package's face exports."""
    attached, listed = face.attached or {}, face.listed or ()
    imported = {name: base for base, name in face.imports(statements(face.tree.body)) if name}
    for name in listed:
        yield attached.get(name) or imported.get(name) or face.name, name


def _of(name: str, node: ast.ClassDef | Function, *, top: bool) -> Documented:
    text = ast.get_docstring(node) or ""
    sections = {"Summary": [text.split("\n", 1)[0]]} if text else {"Summary": []}
    wanted = ["Summary", *(["Examples"] if top else [])]
    if isinstance(node, Function) and not is_property(node):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if any(argument.arg not in {"self", "cls"} for argument in arguments):
            wanted.append("Parameters")
        if node.returns is not None and ast.unparse(node.returns) not in {"None", "NoReturn"}:
            wanted.append("Returns")
    missing = [part for part in wanted if not (sections.get(part) or _has(text, part))]
    return Documented(name, len(wanted), tuple(missing))


def _has(text: str, section: str) -> bool:
    names = (section, "Yields") if section == "Returns" else (section,)
    return any(f"{name}\n{'-' * len(name)}" in text for name in names)


def _marks(node: ast.ClassDef | Function) -> set[str]:
    return {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}


def is_property(node: Function) -> bool:
    """Tell whether a method is read like an attribute."""
    return bool(_marks(node) & {"property", "cached_property"})


def _inherited(node: ast.ClassDef | Function) -> bool:
    return bool(_marks(node) & {"overload", "override", "setter"})
