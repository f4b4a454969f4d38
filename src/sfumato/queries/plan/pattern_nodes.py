"""The parts of a regular expression as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from sfumato.errors import UnsupportedSql

__all__ = [
    "Capture",
    "Choice",
    "Letter",
    "Node",
    "Ranges",
    "Repeat",
    "Sequential",
    "children",
    "merged",
    "nullable",
    "refused_pattern",
    "walk",
]

_LAST: Final = 0x10FFFF
Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""First and last code points of ranges of characters."""


@dataclass(frozen=True, slots=True)
class Letter:
    """One character of a set: what ``ranges`` hold, or where ``negated`` what they do not."""

    ranges: Ranges
    negated: bool = False

    def meets(self, other: Letter) -> bool:
        """Return whether a character is in both sets."""
        ours, theirs = self._held(), other._held()
        return any(low <= last and first <= high for low, high in ours for first, last in theirs)

    def _held(self) -> Ranges:
        if not self.negated:
            return self.ranges
        held, start = [], 0
        for low, high in merged(self.ranges):
            held.append((start, low - 1))
            start = high + 1
        return tuple((low, high) for low, high in (*held, (start, _LAST)) if low <= high)


@dataclass(frozen=True, slots=True)
class Sequential:
    """One part after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One part of several."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """A part so many times, as often as it can; ``most`` None is without an end."""

    part: Node
    least: int
    most: int | None


@dataclass(frozen=True, slots=True)
class Capture:
    """The part that is extracted."""

    part: Node


Node: TypeAlias = Letter | Sequential | Choice | Repeat | Capture


def merged(ranges: Ranges) -> Ranges:
    """Return the same characters as ranges in order that do not touch."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def children(node: Node) -> tuple[Node, ...]:
    """Return the parts of a part."""
    if isinstance(node, Sequential | Choice):
        return node.parts
    return (node.part,) if isinstance(node, Repeat | Capture) else ()


def walk(node: Node) -> Iterator[Node]:
    """Yield a part and all parts of it."""
    yield node
    for child in children(node):
        yield from walk(child)


def nullable(node: Node) -> bool:
    """Return whether a part matches the empty text."""
    if isinstance(node, Repeat):
        return node.least == 0 or nullable(node.part)
    if isinstance(node, Letter):
        return False
    test: Callable[[Iterator[bool]], bool] = any if isinstance(node, Choice) else all
    return test(map(nullable, children(node)))


def refused_pattern(rule: str, remedy: str) -> UnsupportedSql:
    """Return the error for a pattern that is not taken."""
    return UnsupportedSql(f"a regular expression {rule}; {remedy}")
