"""The mutants of a module: where each is, what it changes, and the module's code with one of them."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

from tools.measures.source import Function, Module, is_type_checking
from tools.mutation.operators import changes

__all__ = ["REACHED", "Mutant", "compiled", "mutants"]

REACHED = "__mutation_reached__"
"""The built-in function that a mutated expression calls before it is evaluated."""

NEVER_MUTATED = {"warn", "refuse", "refuse_type", "refuse_state", "TypeVar", "ParamSpec", "NewType", "attach"}
PLAIN_KEYWORDS = {"strict", "stacklevel", "maxsize"}
LONGEST_TEXT = 200
ATOMS = ast.Constant | ast.Name | ast.Attribute | ast.UnaryOp | ast.Slice
SIMPLE = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr

OPPOSITE_AUGMENTS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small change of one expression.

    Parameters
    ----------
    identity : str
        The module's name and a hash of what changes; it stays while the function does.
    module, name : str
        The module's full name, and the qualified name of the function or class in it (the module's name for
        what stands outside both).
    path, line : pathlib.Path, int
        Where the expression is.
    kind : str
        The operator that made it.
    original, mutated : str
        The expression before and after, with the expression or statement around it where it is a mere name or
        number.
    at : int
        The mutant's number in its module.
    unit : tuple of str and int, optional
        The qualified name and the first line of the outermost function around it; None outside functions,
        where only a new import shows the change.
    """

    identity: str
    module: str
    name: str
    path: Path
    line: int
    kind: str
    original: str
    mutated: str
    at: int
    unit: tuple[str, int] | None

    @property
    def key(self) -> tuple[str, str, str]:
        """What the list of equivalent mutants knows it by."""
        return self.qualified, self.original, self.mutated

    @property
    def qualified(self) -> str:
        """The full name of the function or class that changes."""
        return f"{self.module}.{self.name}" if self.name else self.module


@dataclass(slots=True)
class Site:
    """An expression or an augmented assignment, and what could stand in its place."""

    node: ast.expr | ast.AugAssign
    replacement: ast.expr | ast.AugAssign
    kind: str
    parents: tuple[ast.AST, ...]
    scope: tuple[str, ...]
    unit: tuple[str, int] | None

    def put(self, node: ast.AST, instead: ast.AST) -> None:
        """Put one node in another's place."""
        parent = self.parents[-1]
        for name, value in ast.iter_fields(parent):
            if value is node:
                setattr(parent, name, instead)
            elif isinstance(value, list):
                value[:] = [instead if item is node else item for item in value]

    def texts(self) -> tuple[str, str]:
        """Return what a reader is shown of the original and of the mutant."""
        shown: ast.AST = self.node
        if isinstance(self.node, ATOMS):
            for around in reversed(self.parents):
                if (
                    not isinstance(around, ast.expr | ast.keyword | SIMPLE)
                    or len(_text(around)) > LONGEST_TEXT
                ):
                    break
                if isinstance(around, ast.expr | SIMPLE):
                    shown = around
                if not isinstance(around, ATOMS | ast.keyword):
                    break
        original = _text(shown)
        if shown is self.node:
            return original, _text(self.replacement)
        self.put(self.node, self.replacement)
        mutated = _text(shown)
        self.put(self.replacement, self.node)
        return original, mutated


def _text(node: ast.AST) -> str:
    return " ".join(ast.unparse(ast.fix_missing_locations(node)).split())


class _Walk:
    """The sites of one module, in an order that depends on its syntax tree alone."""

    def __init__(self, module: Module) -> None:
        self.bound = frozenset(module.defined)

    def body(
        self, nodes: list[ast.stmt], parent: ast.AST, scope: tuple[str, ...], unit: tuple[str, int] | None
    ) -> Iterator[Site]:
        for node in nodes:
            yield from self.visit(node, (parent,), scope, unit)

    def visit(
        self,
        node: ast.AST,
        parents: tuple[ast.AST, ...],
        scope: tuple[str, ...],
        unit: tuple[str, int] | None,
    ) -> Iterator[Site]:
        if isinstance(node, Function):
            yield from self.function(node, parents, scope, unit)
            return
        if isinstance(node, ast.ClassDef):
            yield from self.body(node.body, node, (*scope, node.name), unit)
            return
        if _is_left_alone(node):
            return
        if isinstance(node, ast.AugAssign) and type(node.op) in OPPOSITE_AUGMENTS:
            other = ast.AugAssign(node.target, OPPOSITE_AUGMENTS[type(node.op)](), node.value)
            yield Site(node, ast.copy_location(other, node), "sign", parents, scope, unit)
        if isinstance(node, ast.expr):
            for kind, replacement in changes(node, self.bound, decides=_decides(node, parents[-1])):
                yield Site(node, ast.copy_location(replacement, node), kind, parents, scope, unit)
        for child in _children(node):
            yield from self.visit(child, (*parents, node), scope, unit)

    def function(
        self,
        node: Function,
        parents: tuple[ast.AST, ...],
        scope: tuple[str, ...],
        unit: tuple[str, int] | None,
    ) -> Iterator[Site]:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                yield from self.visit(default, (*parents, node, node.args), (*scope, node.name), unit)
        if any(ast.unparse(mark).endswith("overload") for mark in node.decorator_list):
            return
        first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
        yield from self.body(
            node.body, node, (*scope, node.name), unit or (".".join((*scope, node.name)), first)
        )


def _is_left_alone(node: ast.AST) -> bool:
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Pass():
            return True
        case ast.Expr(value=ast.Constant()) | ast.MatchValue() | ast.MatchMapping():
            return True
        case ast.Assign(targets=[ast.Name(id="__all__" | "__slots__" | "__match_args__")]):
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in NEVER_MUTATED:
            return True
        case ast.keyword(arg=str(name)) if name in PLAIN_KEYWORDS:
            return True
    return is_type_checking(node)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.AnnAssign):
        yield from (child for child in (node.target, node.value) if child is not None)
    elif isinstance(node, ast.Lambda):
        yield from (
            default for default in (*node.args.defaults, *node.args.kw_defaults) if default is not None
        )
        yield node.body
    else:
        yield from ast.iter_child_nodes(node)


def _decides(node: ast.expr, parent: ast.AST) -> bool:
    if isinstance(parent, ast.If | ast.While | ast.IfExp):
        return node is parent.test
    return isinstance(parent, ast.comprehension) and node in parent.ifs


def _sites(module: Module, tree: ast.Module) -> list[Site]:
    return list(_Walk(module).body(tree.body, tree, (), None))


def mutants(module: Module) -> list[Mutant]:
    """Return every mutant of a module."""
    found, met = [], Counter[tuple[str, ...]]()
    for at, site in enumerate(_sites(module, ast.parse(module.text))):
        original, mutated = site.texts()
        if original == mutated:
            continue
        name = ".".join(site.scope)
        key = (name, original, mutated)
        met[key] += 1
        digest = hashlib.sha256("\0".join((*key, str(met[key]))).encode()).hexdigest()[:8]
        found.append(
            Mutant(
                f"{module.name}:{digest}",
                module.name,
                name,
                module.path,
                site.node.lineno,
                site.kind,
                original,
                mutated,
                at,
                site.unit,
            )
        )
    return found


def compiled(module: Module, at: int | None, filename: str) -> CodeType:
    """Return a module's code, with the mutant of that number in it.

    Parameters
    ----------
    module : Module
        The module.
    at : int or None
        The mutant's number; None compiles the module as it is.
    filename : str
        The file that the code says it is from.
    """
    tree = ast.parse(module.text)
    if at is not None:
        site = _sites(module, tree)[at]
        if isinstance(site.replacement, ast.AugAssign):
            site.replacement.value = _marked(site.replacement.value)
            site.put(site.node, site.replacement)
        elif isinstance(site.node, ast.expr):
            site.put(site.node, ast.copy_location(_marked(site.replacement), site.node))
    return compile(ast.fix_missing_locations(tree), filename, "exec", dont_inherit=True)


def _marked(expression: ast.expr) -> ast.expr:
    """Return an expression of the same value that first says that it was reached."""
    call = ast.Call(ast.Name(REACHED, ast.Load()), [], [])
    return ast.Subscript(ast.Tuple([call, expression], ast.Load()), ast.Constant(1), ast.Load())
