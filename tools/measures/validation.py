"""numpydoc's validation of the docstrings of what faces show, read from the source and never imported.

numpydoc reads a syntax tree as well as an object, but knows the parameters of a class by its ``__init__``
only. Here those of a dataclass are its fields, with the fields that it inherits.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from numpydoc.hooks.validate_docstrings import AstValidator
from numpydoc.validate import get_validation_checks, validate

from tools.measures.documentation import is_property, shown
from tools.measures.source import Function, Module, statements

__all__ = ["invalid"]


def invalid(modules: Mapping[str, Module], checks: Collection[str]) -> Iterator[str]:
    """Yield what numpydoc finds wrong in the docstring of each class, method and function that a face lists.

    Parameters
    ----------
    modules : mapping of str to Module
        The package's modules by full name.
    checks : collection of str
        The codes of numpydoc's checks that must hold; with "all", of those that need not.
    """
    chosen = get_validation_checks({*checks})
    classes = _Classes(modules)
    for name, module, node, owner in shown(modules):
        given = classes.parameters(module, node) if isinstance(node, ast.ClassDef) else None
        ancestry = [module.tree, *([owner] if owner else [])]
        try:
            with warnings.catch_warnings(action="ignore"):  # what numpydoc warns of is among the errors
                report = validate(
                    name, _Docstring, ast_node=node, filename=module.path, ancestry=ancestry, parameters=given
                )
        except ValueError as unreadable:  # such as a section that appears twice
            yield f"{name}: {str(unreadable).splitlines()[0]}"
            continue
        for code, message in report["errors"]:
            if code in chosen:
                yield f"{name}: {code} {message}"


class _Docstring(AstValidator):
    """A docstring with the parameters that are known of a class; None where a library's class hides them."""

    def __init__(
        self,
        *,
        ast_node: ast.ClassDef | Function,
        filename: os.PathLike[str],
        obj_name: str,
        ancestry: list[ast.AST],
        parameters: Mapping[str, _Parameter] | None,
    ) -> None:
        super().__init__(ast_node=ast_node, filename=filename, obj_name=obj_name, ancestry=ancestry)
        self._given = parameters

    @property
    def is_function_or_method(self) -> bool:
        """Whether this is called: a property is not, and returns nothing that needs a section."""
        return isinstance(self.node, Function) and not is_property(self.node)

    @property
    def type(self) -> str:
        """What numpydoc calls this."""
        return "type" if self.is_class else "function" if self.is_function_or_method else "property"

    @property
    def is_generator_function(self) -> bool:
        """Whether the function yields: one that returns another's iterator may name either section."""
        return False

    @property
    def signature_parameters(self) -> tuple[str, ...]:
        """What a caller passes.

        Parameters that are passed by keyword may be documented in any order, those that a base class
        documents and those whose name is private not at all, and those of a result as its attributes.
        """
        documented = self.doc_all_parameters
        if isinstance(self.node, Function):
            given = _signature(self.node, bound=len(self.ancestry) > 1)
        elif self._given is None or "made by" in self.summary:
            return tuple(documented)
        else:
            given = dict(self._given)
        attributes = self._doc_parameters(["Attributes"])
        wanted = {
            name: parameter
            for name, parameter in given.items()
            if name in documented
            or not (name in attributes or parameter.inherited or name.lstrip("*").startswith("_"))
        }
        first = [name for name, parameter in wanted.items() if not parameter.by_keyword]
        return tuple(dict.fromkeys([*first, *(name for name in documented if name in wanted), *wanted]))


@dataclass(frozen=True)
class _Parameter:
    """How a parameter is passed, and whether the class has it from a base."""

    by_keyword: bool
    inherited: bool = False


@dataclass(frozen=True)
class _Classes:
    """The classes of a package, and what their constructors take."""

    modules: Mapping[str, Module]

    def parameters(self, module: Module, node: ast.ClassDef) -> dict[str, _Parameter] | None:
        """Return what a class is made of, or None where a class of a library decides that."""
        if constructor := _constructor(node):
            return _signature(constructor, bound=True)
        inherited: dict[str, _Parameter] = {}
        for base in reversed(node.bases):
            plain = ast.unparse(base.value if isinstance(base, ast.Subscript) else base)
            if plain in {"Protocol", "Generic", "ABC", "abc.ABC"}:
                continue
            home = self._find(module, plain)
            found = None if home is None else self.parameters(*home)
            if found is None:
                return None
            inherited.update({name: replace(each, inherited=True) for name, each in found.items()})
        own = _fields(node)
        made = {name: parameter for name, parameter in own.items() if parameter is not None}
        return {name: each for name, each in inherited.items() if name not in own} | made

    def _find(self, module: Module, name: str) -> tuple[Module, ast.ClassDef] | None:
        """Return the class that a name stands for in a module, and where it is defined."""
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return module, node
        if module.attached and (home := self.modules.get(module.attached.get(name, ""))):
            return self._find(home, name)
        for base, imported in module.imports(statements(module.tree.body)):
            if imported == name and (home := self.modules.get(base)):
                return self._find(home, name)
        return None


def _constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    inner = (child for child in node.body if isinstance(child, ast.FunctionDef))
    return next((child for child in inner if child.name == "__init__"), None)


def _signature(function: Function, *, bound: bool) -> dict[str, _Parameter]:
    """Return the parameters of a function."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args)]
    if bound and names[:1] in (["self"], ["cls"]):
        del names[0]
    names += [f"*{given.vararg.arg}"] if given.vararg else []
    named = [argument.arg for argument in given.kwonlyargs]
    named += [f"**{given.kwarg.arg}"] if given.kwarg else []
    return dict.fromkeys(names, _Parameter(by_keyword=False)) | dict.fromkeys(
        named, _Parameter(by_keyword=True)
    )


def _fields(node: ast.ClassDef) -> dict[str, _Parameter | None]:
    """Return a dataclass's own fields; None for one that its constructor does not take."""
    made = [ast.unparse(mark) for mark in node.decorator_list if "dataclass" in ast.unparse(mark)]
    fields: dict[str, _Parameter | None] = {}
    for child in node.body if made else ():
        if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
            value = ast.unparse(child.value) if child.value else ""
            given = _Parameter(by_keyword="kw_only=True" in made[0] + value)
            if "ClassVar" not in ast.unparse(child.annotation):
                fields[child.target.id] = None if "init=False" in value else given
    return fields
