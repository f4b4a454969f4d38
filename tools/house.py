"""The measures of the house, taken from the source tree.

Run ``python tools/house.py`` at the project's root. It prints the measures, then every fault, and exits with
1 if there is one: a file over 400 lines, a median of 150 or more, a 95th percentile of functions of 45 lines
or more, a circle of imports, an import inside a function that is not of an optional third-party library, a
public name without types or docstring, a face whose ``__all__`` is not what it exports.
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TypeAlias, TypeGuard

__all__ = ["House", "Module", "main", "optional_libraries"]

LONGEST_FILE = 400
MEDIAN_FILE = 150
LONG_FUNCTION = 45
TEST_EXTRA = "test"

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
    return frozenset(name.group().replace("-", "_").lower() for name in names if name)


class House:
    """The source tree of one package, measured.

    Parameters
    ----------
    root : pathlib.Path
        The package's folder; its name is the package's.
    optional : frozenset of str
        Libraries that may be imported inside a function.
    """

    def __init__(self, root: Path, optional: frozenset[str]) -> None:
        self.package = root.name
        self.optional = optional
        self.modules = {}
        for path in sorted(root.rglob("*.py")):
            parts = (root.name, *path.relative_to(root).with_suffix("").parts)
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            self.modules[name] = Module(name, path)

    def measures(self) -> dict[str, float]:
        """Return the numbers: files, lines, and how long files and functions are."""
        lengths = [module.lines for module in self.modules.values()]
        functions = sorted(_length(node) for module in self.modules.values() for node in module.functions)
        return {
            "files": len(lengths),
            "lines": sum(lengths),
            "longest file": max(lengths, default=0),
            "median file": statistics.median(lengths) if lengths else 0,
            "functions": len(functions),
            "95th percentile of functions": functions[int(0.95 * len(functions))] if functions else 0,
        }

    def faults(self) -> list[str]:
        """Return every breach of a measure, one line each."""
        checks = (self.sizes, self.circles, self.inner_imports, self.bare_names, self.faces)
        return [fault for check in checks for fault in check()]

    def sizes(self) -> Iterator[str]:
        """Yield files that are too long, and the median and percentile where those are."""
        for module in self.modules.values():
            if module.lines > LONGEST_FILE:
                yield f"{module.name}: {module.lines} lines, over {LONGEST_FILE}"
        measures = self.measures()
        if measures["median file"] >= MEDIAN_FILE:
            yield f"the median file has {measures['median file']} lines, not under {MEDIAN_FILE}"
        if measures["95th percentile of functions"] >= LONG_FUNCTION:
            longest = sorted(
                (
                    (_length(node), f"{module.name}.{node.name}")
                    for module in self.modules.values()
                    for node in module.functions
                ),
                reverse=True,
            )
            names = ", ".join(f"{name} ({length})" for length, name in longest[:10])
            yield f"the 95th percentile of functions is not under {LONG_FUNCTION} lines; the longest: {names}"

    def circles(self) -> Iterator[str]:
        """Yield a circle of imports, if there is one; what only a type checker reads does not count."""
        graph = {name: self._targets(module) - {name} for name, module in self.modules.items()}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            yield "circle of imports: " + " <- ".join(error.args[1])

    def _targets(self, module: Module) -> set[str]:
        targets = set()
        for base, name in module.imports(statements(module.tree.body)):
            homes = (self.modules[base].attached or {}) if base in self.modules else {}
            choices = (f"{base}.{name}", homes.get(name or "", ""), base)
            targets.add(next((choice for choice in choices if choice in self.modules), module.name))
        return targets

    def inner_imports(self) -> Iterator[str]:
        """Yield imports inside functions, except those of optional third-party libraries."""
        for module in self.modules.values():
            for function in module.functions:
                inner = (node for node in ast.walk(function) if isinstance(node, ast.stmt))
                for target, _ in module.imports(inner):
                    if target.split(".")[0] not in self.optional:
                        yield f"{module.name}.{function.name}: imports {target} inside the function"

    def bare_names(self) -> Iterator[str]:
        """Yield public modules, classes, functions and methods without docstring or without types."""
        for module in filter(lambda m: m.is_public, self.modules.values()):
            if ast.get_docstring(module.tree) is None:
                yield f"{module.name}: no docstring"
            for name, node in _public(module.tree.body, module.name):
                if ast.get_docstring(node) is None:
                    yield f"{name}: no docstring"
                if isinstance(node, Function) and _untyped(node):
                    yield f"{name}: not fully typed"

    def faces(self) -> Iterator[str]:
        """Yield names that a module lists but lacks, and faces whose lists differ from what they export."""
        for module in self.modules.values():
            listed, attached = module.listed, module.attached
            known = module.defined | set(attached or {})
            if listed is not None and (missing := sorted(set(listed) - known)):
                yield f"{module.name}: __all__ names {', '.join(missing)}, which it does not define"
            if attached is not None:
                yield from self._face(module, listed or [], attached)

    def _face(self, module: Module, listed: list[str], attached: dict[str, str]) -> Iterator[str]:
        typed = {name for _, name in module.imports(statements(module.tree.body, typing=True)) if name}
        for what, names in (("exports", set(attached)), ("shows to type checkers", typed)):
            if odd := sorted(names ^ set(listed)):
                yield f"{module.name}: __all__ and what it {what} differ in {', '.join(odd)}"
        for name, home in attached.items():
            inner = f"{module.name}.{name}"
            if home and inner in self.modules:
                yield f"{inner} is a module and a name of the face; importing the module would hide the name"
            if not home and inner not in self.modules:
                yield f"{inner} is exported as a module that is not there"
            if home and (home not in self.modules or name not in self.modules[home].defined):
                yield f"{inner}: {home} does not define it"


def _length(node: Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _public(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, ast.ClassDef | Function]]:
    for node in body:
        if not isinstance(node, ast.ClassDef | Function) or node.name.startswith("_"):
            continue
        if any(ast.unparse(mark).endswith(("overload", ".setter")) for mark in node.decorator_list):
            continue
        yield f"{prefix}.{node.name}", node
        if isinstance(node, ast.ClassDef):
            yield from _public(node.body, f"{prefix}.{node.name}")


def _untyped(node: Function) -> bool:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments += [extra for extra in (node.args.vararg, node.args.kwarg) if extra]
    bare = [a for a in arguments if a.annotation is None and a.arg not in {"self", "cls"}]
    return node.returns is None or bool(bare)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the measures and the faults; return 1 if there is a fault."""
    parser = argparse.ArgumentParser(description="The measures of the house.")
    parser.add_argument("package", type=Path, nargs="?", default=Path("src/sfumato"))
    parser.add_argument("--project", type=Path, default=Path("pyproject.toml"))
    arguments = parser.parse_args(argv)
    project = tomllib.loads(arguments.project.read_text(encoding="utf-8"))
    house = House(arguments.package, optional_libraries(project))
    print(", ".join(f"{name} {value:g}" for name, value in house.measures().items()))
    faults = house.faults()
    for fault in faults:
        print(f"fault: {fault}")
    print(f"{len(faults)} faults")
    return 1 if faults or not house.modules else 0


if __name__ == "__main__":
    sys.exit(main())
