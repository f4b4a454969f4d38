"""Names: a module's or a class's name says one thing in its room, and words are the field's."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase

from tools.measures.source import Module

__all__ = ["classes_twice", "modules_twice", "words", "words_above"]


def _room(name: str) -> str:
    return ".".join(name.split(".")[:2])


def modules_twice(modules: Mapping[str, Module], parallel: Collection[str]) -> Iterator[str]:
    """Yield the names that two modules of one room have, where no folder repeats another on purpose.

    Parameters
    ----------
    modules : mapping
    parallel : collection of str
        Folders, such as those of the engines, that have the same modules as their siblings: what lies in them
        is compared with nothing. ``room.part.*`` stands for every folder in ``room.part``.
    """
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, module in modules.items():
        inside = any(fnmatchcase(name, f"{folder}.*") for folder in parallel)
        if not module.is_package and not inside and name.count(".") > 1:
            found[_room(name), name.rpartition(".")[2]].append(name)
    for (room, _), names in sorted(found.items()):
        if len(names) > 1:
            yield f"{room}: one name for {', '.join(names)}"


def classes_twice(modules: Mapping[str, Module]) -> Iterator[str]:
    """Yield the public classes of one name in one room."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, module in modules.items():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[_room(name), node.name].append(f"{name}.{node.name}")
    for (room, _), names in sorted(found.items()):
        if len(names) > 1:
            yield f"{room}: one name for {', '.join(names)}"


def words(modules: Mapping[str, Module], watched: Collection[str]) -> Counter[str]:
    """Return how often each watched word stands in the source."""
    text = "\n".join(module.text for module in modules.values())
    return Counter(
        {word: len(re.findall(rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])", text)) for word in watched}
    )


def words_above(modules: Mapping[str, Module], limits: Mapping[str, int]) -> Iterator[str]:
    """Yield the words of our own, where the field has one, that are used more often than they may."""
    for word, count in sorted(words(modules, limits).items()):
        if count > limits[word]:
            yield f"the word {word!r} stands in the source {count} times, over {limits[word]}"
