"""What one call enters: files, functions, and calls from folder to folder, by Python's own profiling hook."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tools.measures.imports import import_graph
from tools.measures.source import modules

__all__ = ["Walk", "trace"]


@dataclass
class Walk:
    """The parts of a package that a call entered, in the order in which it entered them first.

    Parameters
    ----------
    root : pathlib.Path
        The package's folder.
    functions : dict
        ``(file, function)`` to the step, from 0, at which it was entered first.
    calls : Counter
        How often a function of one file called one of another, by the pair of files.
    """

    root: Path
    functions: dict[tuple[str, str], int] = field(default_factory=dict)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def files(self) -> list[str]:
        """The files, relative to the package, by first entry."""
        return [*dict.fromkeys(file for file, _ in self.functions)]

    def folders(self) -> dict[str, list[str]]:
        """Return the files of each folder, folders by first entry."""
        found: dict[str, list[str]] = {}
        for file in self.files:
            folder, _, name = file.rpartition("/")
            found.setdefault(folder, []).append(name)
        return found

    def climbs(self) -> Iterator[tuple[str, str]]:
        """Yield the pairs of files of which the first called the second against the direction of imports.

        Such a call goes by way of an object or a function that was handed down: the file that is called
        imports, directly or not, the file that calls it.
        """
        graph = import_graph(modules(self.root))
        for caller, called in self.calls:
            if self._module(caller) in _reached(graph, self._module(called)):
                yield caller, called

    def _module(self, file: str) -> str:
        """Return a file's full name as a module."""
        parts = (self.root.name, *Path(file).with_suffix("").parts)
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    def note(self, frame: FrameType, event: str, _: object) -> None:
        """Take note of one event; made to be given to `sys.setprofile`."""
        file = self._inside(frame) if event == "call" else None
        if file is None:
            return
        self.functions.setdefault((file, frame.f_code.co_qualname), len(self.functions))
        caller = frame.f_back
        while caller is not None and self._inside(caller) is None:
            caller = caller.f_back
        above = None if caller is None else self._inside(caller)
        if above is not None and above != file:
            self.calls[above, file] += 1

    def _inside(self, frame: FrameType) -> str | None:
        """Return the frame's file in the package; importing a module is not part of a walk."""
        path = frame.f_code.co_filename
        if not path.startswith(f"{self.root}/") or frame.f_code.co_name == "<module>":
            return None
        return path[len(str(self.root)) + 1 :]


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    """Return all modules that one imports, directly or not."""
    found: set[str] = set()
    open_ends = [start]
    while open_ends:
        new = graph.get(open_ends.pop(), set()) - found
        found |= new
        open_ends += new
    return found


def trace(root: Path, call: Callable[[], object]) -> Walk:
    """Return what a call enters of the package at a folder.

    >>> trace(Path("/nowhere"), lambda: sorted([2, 1])).files
    []
    """
    walk = Walk(root)
    before = sys.getprofile()
    sys.setprofile(walk.note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return walk
