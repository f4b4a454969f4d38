"""Documentation of what faces show: parameters, returns, and an example that runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tools.measures.source import Function, Module

__all__ = ["Documented", "documented"]


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
    shown = {name for module in modules.values() if module.is_package for name in module.listed or ()}
    for full, module in modules.items():
        for node in module.tree.body:
            if not isinstance(node, Function | ast.ClassDef) or node.name not in shown or node.name[0] == "_":
                continue
            yield _of(f"{full}.{node.name}", node, top=True)
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(method, Function) and method.name[0] != "_" and not _inherited(method):
                    yield _of(f"{full}.{node.name}.{method.name}", method, top=False)


def _of(name: str, node: ast.ClassDef | Function, *, top: bool) -> Documented:
    text = ast.get_docstring(node) or ""
    sections = {"Summary": [text.split("\n", 1)[0]]} if text else {"Summary": []}
    wanted = ["Summary", *(["Examples"] if top else [])]
    if isinstance(node, Function) and not _is_property(node):
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


def _marks(node: Function) -> set[str]:
    return {ast.unparse(mark).rpartition(".")[2] for mark in node.decorator_list}


def _is_property(node: Function) -> bool:
    return bool(_marks(node) & {"property", "cached_property"})


def _inherited(node: Function) -> bool:
    return bool(_marks(node) & {"overload", "override", "setter"})
