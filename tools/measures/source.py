"""One source file, as the measures of the house read it: its imports, what it defines and exports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias, TypeGuard

__all__ = ["Function", "Module", "is_type_checking", "length", "modules", "public", "statements"]

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def is_type_checking(node: ast.AST) -> TypeGuard[ast.If]:
    """Tell whether a statement is ``if TYPE_CHECKING:``."""
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def statements(body: Sequence[ast.stmt], *, typing: bool = False) -> Iterator[ast.stmt]:
    """Yield what runs when a module is imported (or, with ``typing``, what only a type checker reads)."""
    for node in body:
        if is_type_checking(node):
            if typing:
                yield from node.body
        elif isinstance(node, ast.If | ast.Try | ast.With):
            yield from statements(
                [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            )
        elif not typing:
            yield node


@dataclass(frozen=True)
class Module:
    """One source file of the package.

    Parameters
    ----------
    name : str
        The module's full name; a package's ``__init__.py`` has the package's name.
    path : pathlib.Path
        The file.
    """

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        """The source."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """The number of lines."""
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        """Whether this is the face of a package."""
        return self.path.name == "__init__.py"

    @property
    def is_public(self) -> bool:
        """Whether no part of the name begins with an underscore."""
        return not any(part.startswith("_") for part in self.name.split("."))

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, nested ones too."""
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    def base(self, node: ast.ImportFrom) -> str:
        """Return the full name of the module that a ``from`` import names, relative or not."""
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        anchor = parts[: len(parts) - node.level + (1 if self.is_package else 0)]
        return ".".join([*anchor, *([node.module] if node.module else [])])

    def imports(self, nodes: Iterator[ast.stmt]) -> Iterator[tuple[str, str | None]]:
        """Yield ``(module, name)`` for each import among the nodes; the name is None for a whole module."""
        for node in nodes:
            if isinstance(node, ast.Import):
                yield from ((alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((self.base(node), alias.name) for alias in node.names)

    @cached_property
    def defined(self) -> set[str]:
        """The names that importing the module binds, and those a type checker sees."""
        names = set()
        for node in (*statements(self.tree.body), *statements(self.tree.body, typing=True)):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.add(node.name)
                case ast.Import() | ast.ImportFrom():
                    names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
                case ast.Assign() | ast.AnnAssign():
                    names.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name) and _stored(n))
        return names

    def assigned(self, name: str) -> ast.expr | None:
        """Return the expression that the module gives to a name, if it does so in one plain statement."""
        for node in statements(self.tree.body):
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == name for t in node.targets
            ):
                return node.value
        return None

    @property
    def listed(self) -> list[str] | None:
        """``__all__``, or None where there is none."""
        value = self.assigned("__all__")
        return None if value is None else list(ast.literal_eval(value))

    @cached_property
    def attached(self) -> dict[str, str] | None:
        """The names that a lazy face exports, with the modules that define them; None for an eager face."""
        calls = (node.func for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        if not any(isinstance(called, ast.Name) and called.id == "attach" for called in calls):
            return None
        homes: dict[str, str] = {}

        def attach(_: str, given: Mapping[str, str], **__: object) -> tuple[None, None]:
            homes.update(given)
            return None, None

        # A face may compute its mapping, so its assignments are run, with this attach in the other's place.
        plain = [node for node in statements(self.tree.body) if isinstance(node, ast.Assign | ast.AnnAssign)]
        code = compile(ast.Module([*plain], []), str(self.path), "exec")
        exec(code, {"__name__": self.name, "attach": attach})
        return homes


def _stored(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)


def modules(root: Path) -> dict[str, Module]:
    """Return the modules of a package by full name; the folder has the package's name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path)
    return found


def length(node: Function) -> int:
    """Return the number of lines from the ``def`` to the end."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def public(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.ClassDef | Function]]:
    """Yield the public classes, functions and methods of a module or class, with their full names."""
    for node in body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
            continue
        if any(ast.unparse(mark).endswith(("overload", ".setter")) for mark in node.decorator_list):
            continue
        yield f"{prefix}.{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from public(node.body, f"{prefix}.{node.name}")
