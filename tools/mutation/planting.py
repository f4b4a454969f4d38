"""How a mutant gets into a process: functions exchange their code, and modules are imported mutated."""

from __future__ import annotations

import builtins
import functools
import gc
import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType

from tools.measures.source import Module
from tools.mutation.mutants import REACHED, compiled

__all__ = ["Importer", "Loaded", "NoSuchFunction", "on_reaching"]


CACHED = type(functools.lru_cache(len))
"""What a function becomes by caching."""


class NoSuchFunction(Exception):
    """No function that runs has the code that was to be exchanged, or its closure does not fit."""


def on_reaching(tell: Callable[[], None]) -> None:
    """Have ``tell`` called when a mutated expression is first evaluated."""

    def once() -> None:
        setattr(builtins, REACHED, lambda: None)
        tell()

    setattr(builtins, REACHED, once)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


class Loaded:
    """The functions and caches of a package that a process has loaded; found once, before it forks.

    Parameters
    ----------
    package : str
        The package's name.
    """

    def __init__(self, package: str) -> None:
        # Not isinstance: some objects answer it with an error or with an import.
        objects = gc.get_objects()
        functions = [each for each in objects if type(each) is FunctionType]
        caches = [each for each in objects if type(each) is CACHED]
        self.functions = [each for each in functions if _home(each) == package]
        self.caches = [each for each in caches if _home(each) == package]

    def names(self) -> dict[int, tuple[str, str]]:
        """Return the module and qualified name of the function that holds each code object, by identity."""
        found = {}
        for function in self.functions:
            for code in _codes(function.__code__):
                found[id(code)] = (str(function.__module__), function.__code__.co_qualname)
        return found

    def forget(self) -> None:
        """Empty the caches."""
        for cache in self.caches:
            cache.cache_clear()

    def exchange(self, module: Module, at: int, unit: tuple[str, int], origin: str) -> None:
        """Give all functions made from one definition the code of a mutant, and empty the caches.

        Parameters
        ----------
        module : Module
            The module's source.
        at : int
            The mutant's number in it.
        unit : tuple of str and int
            The qualified name and first line of the outermost function around the mutant.
        origin : str
            The file that the running module's code names.

        Raises
        ------
        NoSuchFunction
            If nothing that runs was made from that definition, or closures do not fit; then nothing has
            changed.
        """
        inside = {
            (code.co_qualname, code.co_firstlineno, code.co_name): code
            for outer in _codes(compiled(module, at, origin))
            if (outer.co_qualname, outer.co_firstlineno) == unit
            for code in _codes(outer)
        }
        found = []
        for function in self.functions:
            old = function.__code__
            new = inside.get((old.co_qualname, old.co_firstlineno, old.co_name))
            if old.co_filename == origin and new is not None:
                found.append((function, new))
        if not any((new.co_qualname, new.co_firstlineno) == unit for _, new in found):
            raise NoSuchFunction(unit[0])
        if any(len(function.__code__.co_freevars) != len(new.co_freevars) for function, new in found):
            raise NoSuchFunction(unit[0])
        for function, new in found:
            function.__code__ = new
        self.forget()


def _home(value: object) -> str:
    return str(getattr(value, "__module__", "")).split(".")[0]


class _Loader(SourceFileLoader):
    """Loads a module with a mutant in it."""

    def __init__(self, module: Module, at: int, origin: str) -> None:
        super().__init__(module.name, origin)
        self.module, self.at = module, at

    def get_code(self, fullname: str) -> CodeType:
        """Return the mutated code."""
        return compiled(self.module, self.at, self.path)


class Importer(MetaPathFinder):
    """Finds one module mutated, or one extension module in another file, wherever they lie.

    Parameters
    ----------
    name : str
        The module's name.
    change : tuple of Module and int, or pathlib.Path
        The source and the mutant's number, or the compiled extension.
    """

    def __init__(self, name: str, change: tuple[Module, int] | Path) -> None:
        self.name, self.change = name, change

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where to find the module, if it is the one that is changed."""
        if fullname != self.name:
            return None
        if isinstance(self.change, Path):
            return spec_from_file_location(
                fullname, self.change, loader=ExtensionFileLoader(fullname, str(self.change))
            )
        found = PathFinder.find_spec(fullname, path, target)
        if found is None or found.origin is None:
            return None
        return spec_from_file_location(
            fullname,
            found.origin,
            loader=_Loader(*self.change, found.origin),
            submodule_search_locations=found.submodule_search_locations,
        )

    def install(self) -> None:
        """Have the module imported this way from now on, before all other ways."""
        sys.meta_path[:] = [self, *(finder for finder in sys.meta_path if finder is not self)]
        importlib.invalidate_caches()
