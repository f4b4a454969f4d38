"""Mutants that mean the same as the original, with the reason of each."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Equivalent", "listed", "stale"]


@dataclass(frozen=True, slots=True)
class Equivalent:
    """An entry of the list.

    Parameters
    ----------
    name : str
        The full name of the function, class or module.
    original, mutated : str
        The expressions, as ``tools/mutate.py`` prints them.
    reason : str
        Why no test can tell them apart.
    """

    name: str
    original: str
    mutated: str
    reason: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What a mutant is compared with."""
        return self.name, self.original, self.mutated


def listed(path: Path) -> list[Equivalent]:
    """Return the entries of a list; a file that is not there has none.

    Raises
    ------
    ValueError
        If an entry lacks a part, or gives no reason.
    """
    table = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    found = []
    for entry in table.get("equivalent", []):
        if set(entry) != {"name", "original", "mutated", "reason"} or not str(entry["reason"]).strip():
            raise ValueError(f"{path}: an entry must have name, original, mutated and reason, got {entry}")
        found.append(Equivalent(**entry))
    return found


def stale(
    entries: Iterable[Equivalent], modules: Mapping[str, Callable[[], Iterable[tuple[str, str, str]]]]
) -> list[Equivalent]:
    """Return the entries that name no mutant any more.

    Parameters
    ----------
    entries : iterable of Equivalent
        The list.
    modules : mapping of str to callable
        For each module or file by its name, how to have the keys of all its mutants.
    """
    keys: dict[str, set[tuple[str, str, str]]] = {}
    old = []
    for entry in entries:
        module = entry.name
        while module not in modules and "." in module:
            module = module.rpartition(".")[0]
        if module in modules and module not in keys:
            keys[module] = set(modules[module]())
        if entry.key not in keys.get(module, ()):
            old.append(entry)
    return old
