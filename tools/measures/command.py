"""All measures of one package, with the limits that its project sets, and the command that prints them."""

from __future__ import annotations

import argparse
import importlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tools.measures.documentation import documented
from tools.measures.faces import bare_names, faces
from tools.measures.imports import circles, inner_imports, optional_libraries
from tools.measures.mirror import untested_folders
from tools.measures.names import classes_twice, modules_twice, words, words_above
from tools.measures.sizes import crowded_folders, sizes, totals
from tools.measures.source import Module, modules

__all__ = ["House", "Limits", "main"]


@dataclass(frozen=True)
class Limits:
    """What a project allows: ``[tool.house]`` and ``[tool.numpydoc_validation]`` in its ``pyproject.toml``.

    Parameters
    ----------
    families : list of str
        Folders of siblings of one kind, which may hold any number of modules.
    parallel : list of str
        Folders that repeat the module names of their siblings on purpose.
    documented : float
        The least share of sections that the docstrings of public names have.
    words : dict
        How often a word of our own, where the field has one, may still stand in the source.
    classes_twice, modules_twice, untested_folders : int
        How many names or folders of the kind there may still be.
    docstrings : list of str
        numpydoc's checks that hold for what faces show; with "all", those that do not.
    """

    families: Sequence[str] = ()
    parallel: Sequence[str] = ()
    documented: float = 0.0
    words: Mapping[str, int] = field(default_factory=dict)
    classes_twice: int = 0
    modules_twice: int = 0
    untested_folders: int = 0
    docstrings: Sequence[str] = ()


@dataclass(frozen=True)
class House:
    """The source tree of one package, measured.

    Parameters
    ----------
    root : pathlib.Path
        The package's folder; its name is the package's.
    optional : frozenset of str
        Libraries that may be imported inside a function.
    limits : Limits
    tests : pathlib.Path, optional
        The folder of tests that mirrors the package.
    """

    root: Path
    optional: frozenset[str]
    limits: Limits = Limits()
    tests: Path | None = None

    @cached_property
    def modules(self) -> dict[str, Module]:
        """The modules by full name."""
        return modules(self.root)

    def measures(self) -> dict[str, float]:
        """Return the numbers."""
        parts = [*documented(self.modules)]
        wanted = sum(part.wanted for part in parts)
        missing = sum(len(part.missing) for part in parts)
        return {
            **totals(self.modules),
            "documented": round(1 - missing / wanted, 4) if wanted else 1.0,
            "module names twice": len(self._modules_twice()),
            "class names twice": len([*classes_twice(self.modules)]),
            "folders without tests": len(self._untested()),
            **{f"'{word}'": count for word, count in words(self.modules, self.limits.words).items()},
        }

    def faults(self) -> list[str]:
        """Return every breach of a measure, one line each."""
        found = self.modules
        return [
            *sizes(found),
            *crowded_folders(found, self.limits.families),
            *circles(found),
            *inner_imports(found, self.optional),
            *bare_names(found),
            *faces(found),
            *words_above(found, self.limits.words),
            *_above(self._modules_twice(), self.limits.modules_twice),
            *_above([*classes_twice(found)], self.limits.classes_twice),
            *_above(self._untested(), self.limits.untested_folders),
            *self._undocumented(),
            *self._invalid(),
        ]

    def undocumented(self) -> Iterator[str]:
        """Yield what the docstrings of public names lack, one line a name."""
        for part in documented(self.modules):
            if part.missing:
                yield f"{part.name}: no {', '.join(part.missing)}"

    def _modules_twice(self) -> list[str]:
        return [*modules_twice(self.modules, self.limits.parallel)]

    def _untested(self) -> list[str]:
        return [] if self.tests is None else [*untested_folders(self.modules, self.tests)]

    def _invalid(self) -> Iterator[str]:
        """Yield what numpydoc finds; only a project that has chosen checks needs to have it."""
        if self.limits.docstrings:
            yield from importlib.import_module("tools.measures.validation").invalid(
                self.modules, self.limits.docstrings
            )

    def _undocumented(self) -> Iterator[str]:
        share = self.measures()["documented"]
        if share < self.limits.documented:
            yield f"{share:.1%} of what public names need is documented, under {self.limits.documented:.1%}"


def _above(found: Sequence[str], limit: int) -> Sequence[str]:
    """Return all that was found where it is more than may be."""
    return found if len(found) > limit else ()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the measures and the faults; return 1 if there is a fault."""
    parser = argparse.ArgumentParser(description="The measures of the house.")
    parser.add_argument("package", type=Path, nargs="?", default=Path("src/sfumato"))
    parser.add_argument("--project", type=Path, default=Path("pyproject.toml"))
    parser.add_argument("-v", "--verbose", action="store_true", help="list what is not documented")
    arguments = parser.parse_args(argv)
    project: dict[str, Any] = tomllib.loads(arguments.project.read_text(encoding="utf-8"))
    tools: dict[str, Any] = project.get("tool", {})
    checks = tools.get("numpydoc_validation", {}).get("checks", ())
    limits = Limits(**tools.get("house", {}), docstrings=checks)
    tests = arguments.project.parent / "tests"
    house = House(arguments.package, optional_libraries(project), limits, tests if tests.is_dir() else None)
    print(", ".join(f"{name} {value:g}" for name, value in house.measures().items()))
    if arguments.verbose:
        print(*house.undocumented(), sep="\n")
    faults = house.faults()
    for fault in faults:
        print(f"fault: {fault}")
    print(f"{len(faults)} faults")
    return 1 if faults or not house.modules else 0
