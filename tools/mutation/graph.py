"""Which tests stand near which modules, by the imports that their source texts name.

No code runs for this: imports are read from syntax trees, and a lazy face is followed to the modules that
define what is taken from it. What a file imports is remembered in an ignored folder until the file changes.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tools.measures.source import Module, is_type_checking

__all__ = ["CACHE", "Graph", "Near"]

CACHE = Path(".mutation")
"""The ignored folder for what may be computed again."""

Import = tuple[str, str | None, tuple[str, ...]]
"""The module that an import names, the name taken from it, and the attributes read from what it binds."""


@dataclass(frozen=True, slots=True)
class Source:
    """What the text of a file says of its place: its imports, and what it exports lazily."""

    imports: tuple[Import, ...]
    attached: Mapping[str, str] = field(default_factory=dict)
    has_doctest: bool = False


@dataclass(frozen=True, slots=True, order=True)
class Near:
    """A file of tests, or the doctests of a module, and how far they stand from a module.

    Parameters
    ----------
    distance : int
        0 for the tests named after the module and for its own doctests, 1 for tests that import it, and one
        more for each import between.
    elsewhere : bool
        Whether the tests lie outside the folders that mirror the module's.
    breadth : int
        How many modules the tests import themselves; fewer are more specific.
    tests : str
        What pytest is asked to collect: a file below the project's root, or the name of a module.
    """

    distance: int
    elsewhere: bool
    breadth: int
    tests: str


class Graph:
    """The imports of a package and of its tests.

    Parameters
    ----------
    package : pathlib.Path
        The package's folder; its name is the package's.
    tests : pathlib.Path
        The folder of the tests, whose folders mirror the package's.
    cache : pathlib.Path, optional
        The folder in which the imports of files are remembered.
    """

    def __init__(self, package: Path, tests: Path, cache: Path | None = None) -> None:
        self.root, self.package, self.tests = package, package.name, tests
        files = [
            *sorted(package.rglob("*.py")),
            *sorted(package.rglob("*.pyi")),
            *sorted(tests.rglob("*.py")),
        ]
        self.paths = {
            _name(path, (tests if path.is_relative_to(tests) else package).parent): path for path in files
        }
        self.sources = _read(self.paths, package.name, cache)
        self.modules = {name for name, path in self.paths.items() if path.is_relative_to(package)}

    @cached_property
    def _edges(self) -> dict[str, frozenset[str]]:
        return {
            name: frozenset(self._resolve(source)) & self.paths.keys() - {name}
            for name, source in self.sources.items()
        }

    @cached_property
    def importers(self) -> dict[str, set[str]]:
        """The modules of the package that import each module."""
        back: dict[str, set[str]] = {name: set() for name in self.modules}
        for name in self.modules:
            for target in self._edges[name] & self.modules:
                back[target].add(name)
        return back

    @cached_property
    def _helpers(self) -> dict[str, set[str]]:
        """Each file of tests, with itself and all the files among the tests that it imports."""
        found = {}
        for name in self.paths.keys() - self.modules:
            seen, queue = {name}, [name]
            while queue:
                fresh = self._edges[queue.pop()] - self.modules - seen
                seen |= fresh
                queue += fresh
            if self.paths[name].name.startswith("test_"):
                found[name] = seen
        return found

    @cached_property
    def test_imports(self) -> dict[str, frozenset[str]]:
        """The modules of the package that each file of tests imports, itself or through its helpers."""
        none: frozenset[str] = frozenset()
        return {
            name: none.union(*(self._edges[part] for part in parts)) & self.modules
            for name, parts in self._helpers.items()
        }

    def module_of(self, path: Path) -> str | None:
        """Return the name of the module in a file, tests included, or None."""
        return next((name for name, known in self.paths.items() if known == path), None)

    def distances(self, module: str) -> dict[str, int]:
        """Return for each module that needs ``module`` the number of imports between them."""
        found, queue = {module: 0}, deque([module])
        while queue:
            at = queue.popleft()
            for importer in self.importers.get(at, ()):
                if importer not in found:
                    found[importer] = found[at] + 1
                    queue.append(importer)
        return found

    def nearest(self, module: str) -> list[Near]:
        """Return all tests from which imports lead to ``module``, the nearest first.

        A file of tests is nearest to itself, and a helper among the tests to those that import it.
        """
        if module not in self.modules:
            return sorted(
                Near(int(name != module), False, len(self.test_imports[name]), self.paths[name].as_posix())
                for name, parts in self._helpers.items()
                if module in parts
            )
        away = self.distances(module)
        found = []
        for name, imports in self.test_imports.items():
            steps = [away[target] for target in imports if target in away]
            if steps:
                path = self.paths[name]
                mirrored = self._mirrors(path, module)
                distance = 0 if mirrored and self._named_after(path, module) else 1 + min(steps)
                found.append(Near(distance, not mirrored, len(imports), path.as_posix()))
        for name, steps_between in away.items():
            if self.sources[name].has_doctest:
                found.append(Near(steps_between + (name != module), name != module, 1, name))
        return sorted(found)

    def externals(self, names: Collection[str]) -> set[str]:
        """Return the modules of other libraries that these modules or tests load, by all that they import."""
        seen, queue = set(names), list(names)
        while queue:
            fresh = self._edges.get(queue.pop(), frozenset()) - seen
            seen |= fresh
            queue += fresh
        own = {self.package, self.tests.name}
        wanted = {base for name in seen & self.sources.keys() for base, *_ in self.sources[name].imports}
        return {base for base in wanted if base.split(".")[0] not in own | sys.stdlib_module_names}

    def _mirrors(self, test: Path, module: str) -> bool:
        folder = test.relative_to(self.tests).parent.parts
        return module.split(".")[1 : 1 + len(folder)] == list(folder)

    def _named_after(self, test: Path, module: str) -> bool:
        words = test.stem.removeprefix("test_").split("_")
        return set(module.rpartition(".")[2].strip("_").split("_")) <= set(words)

    def _resolve(self, source: Source) -> Iterator[str]:
        for base, name, chains in source.imports:
            target = self._step(base, name)[0] if name else base
            yield target
            for chain in chains:
                at, inside = target, True
                for part in chain.split("."):
                    if inside:
                        at, inside = self._step(at, part)
                yield at

    def _step(self, module: str, name: str) -> tuple[str, bool]:
        """Return the module to which an attribute of a module leads, and whether it is that module itself."""
        inner = f"{module}.{name}"
        if inner in self.paths:
            return inner, True
        source = self.sources.get(module)
        return (source.attached.get(name) or module) if source else module, False


def _name(path: Path, parent: Path) -> str:
    parts = path.relative_to(parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _read(paths: Mapping[str, Path], package: str, cache: Path | None) -> dict[str, Source]:
    store = cache / "imports.json" if cache else None
    known = json.loads(store.read_text(encoding="utf-8")) if store and store.exists() else {}
    found, fresh = {}, {}
    for name, path in paths.items():
        stat = path.stat()
        stamp = [str(path.resolve()), stat.st_size, stat.st_mtime_ns]
        entry = known.get(name)
        if not entry or entry[0] != stamp:
            source = _source(Module(name, path), package)
            entry = [stamp, source.imports, source.attached, source.has_doctest]
        fresh[name] = entry
        imports = tuple((base, taken, tuple(chains)) for base, taken, chains in entry[1])
        found[name] = Source(imports, entry[2], entry[3])
    if store and fresh != known:
        store.parent.mkdir(exist_ok=True)
        store.write_text(json.dumps(fresh), encoding="utf-8")
    return found


def _source(module: Module, package: str) -> Source:
    imports = []
    for node in _imports(module.tree.body):
        for alias in node.names:
            whole = isinstance(node, ast.Import)
            base, name = (
                (alias.name, None) if isinstance(node, ast.Import) else (module.base(node), alias.name)
            )
            bound = alias.asname or alias.name
            chains: Sequence[str] = ()
            if base.split(".")[0] == package:
                chains = sorted(
                    set(re.findall(rf"(?<![\w.]){re.escape(bound)}\.([A-Za-z_][\w.]*\w|\w)", module.text))
                )
            imports.append((base, name, tuple(chains)))
            if whole and not alias.asname and "." in base:
                imports.append((base.split(".")[0], None, ()))
    attached = module.attached if module.is_package else None
    return Source(tuple(imports), attached or {}, ">>>" in module.text)


def _imports(body: Sequence[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports among statements, inside functions too, but not what only a type checker reads."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif is_type_checking(node):
            yield from _imports(node.orelse)
        elif isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield from _imports(
                [
                    n
                    for n in ast.iter_child_nodes(node)
                    if isinstance(n, ast.stmt | ast.ExceptHandler | ast.match_case)
                ]
            )
