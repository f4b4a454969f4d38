r"""Regular expressions that mean the same on every engine, and take at most quadratic time on any.

The syntax is a part of RE2's. Each engine is given a spelling of its own, made from the parsed pattern, so
that nothing is left to how it reads ``.``, ``\d`` or ``$``.

>>> parse_pattern("^[A-Z]{2}-([0-9]+)$").captures
True
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sfumato.queries.plan.pattern_nodes import (
    Capture,
    Choice,
    Letter,
    Node,
    Repeat,
    Sequential,
    children,
    nullable,
    refused_pattern,
    walk,
)
from sfumato.queries.plan.pattern_parser import PatternParser

__all__ = ["Pattern", "PatternSpelling", "parse_pattern"]

_MAX_TEXT: Final = 1000
_MAX_POSITIONS: Final = 250
_MAX_WAYS: Final = 1000


@dataclass(frozen=True, slots=True)
class PatternSpelling:
    """How an engine writes what engines write differently.

    ``end`` is the end of the text; without ``plain_groups`` every parenthesis captures.
    """

    end: str
    plain_groups: bool = True


@dataclass(frozen=True, slots=True)
class Pattern:
    """A parsed pattern: its body, and whether it begins at the text's start and ends at its end."""

    body: Node
    start: bool
    end: bool

    @property
    def captures(self) -> bool:
        """Whether a part of it stands in parentheses that capture."""
        return any(isinstance(node, Capture) for node in walk(self.body))

    @property
    def group(self) -> int:
        """The number of the capturing parenthesis, where every parenthesis is counted; 0 without one."""
        opened = [
            found
            for found in re.findall(r"\\.|[(](?:[?]:)?", self.spelled(PatternSpelling("$")))
            if found[0] == "("
        ]
        return opened.index("(") + 1 if self.captures else 0

    def spelled(self, spelling: PatternSpelling) -> str:
        """Return the pattern as an engine reads it."""
        start, end = "^" if self.start else "", spelling.end if self.end else ""
        body = _spelled(self.body, spelling)
        if isinstance(self.body, Choice) and (start or end):
            body = f"(?:{body})" if spelling.plain_groups else f"({body})"
        return f"{start}{body}{end}"


def parse_pattern(text: str, *, extracts: bool = False) -> Pattern:
    """Parse and check a pattern.

    Parameters
    ----------
    text : str
    extracts : bool
        Whether the part of the text that matches is asked for, not only whether there is one.

    Raises
    ------
    UnsupportedSql
        If engines would disagree on it, or could take more than quadratic time.

    Notes
    -----
    What is extracted is the same on every engine where the pattern is deterministic (one-unambiguous:
    Brueggemann-Klein and Wood 1998): at each character at most one part of the pattern goes on, so
    the first match of a backtracking engine is the longest match of an automaton, with the same parts. A
    pattern that is not deterministic may still be looked for, which is the same for every engine, if it has
    one repetition without an end at most, and few ways to match besides: that bounds what backtracking takes.
    """
    if len(text) > _MAX_TEXT:
        raise refused_pattern(f"must have at most {_MAX_TEXT} characters", "shorten it")
    pattern = Pattern(*PatternParser(text).read())
    if nullable(pattern.body):
        raise refused_pattern("must not match the empty text", "leave out what may be missing")
    size = _size(pattern.body)
    if size > _MAX_POSITIONS:
        raise refused_pattern(
            f"must have at most {_MAX_POSITIONS} characters and sets, each repetition counted", "shorten it"
        )
    if _deterministic(pattern.body):
        return pattern
    if extracts:
        raise refused_pattern(
            "must be deterministic for REGEXP_EXTRACT: what follows a repetition or an option must begin "
            "with another character",
            r"write '([^@]+)@', not '(.+)@'",
        )
    if _endless(pattern.body) > 1 or _ways(pattern.body) > _MAX_WAYS:
        raise refused_pattern(
            "must be deterministic, or have one *, + or {n,} at most and few alternatives",
            "leave .* out at its ends, and let another character follow each repetition",
        )
    return pattern


def _size(node: Node) -> int:
    inner = sum(map(_size, children(node)))
    if isinstance(node, Repeat):
        return inner * max(node.most or 0, node.least, 1)
    return 1 if isinstance(node, Letter) else inner


def _endless(node: Node) -> int:
    """Return how many repetitions have no end, those of a part that is repeated counted each time."""
    inner = sum(map(_endless, children(node)))
    if not isinstance(node, Repeat):
        return inner
    return 1 if node.most is None else inner * node.most


def _ways(node: Node) -> int:
    """Return at most how many ways to match backtracking can try, but for repetitions without an end."""
    inner = [_ways(child) for child in children(node)]
    if isinstance(node, Choice):
        return sum(inner)
    if isinstance(node, Repeat):
        most = node.least if node.most is None else node.most
        each = int(inner[0] ** min(max(most, 1), 20))
        return min(each * (max(most, node.least) - node.least + 1), _MAX_WAYS + 1)
    made = 1
    for ways in inner:
        made = min(made * ways, _MAX_WAYS + 1)
    return made


@dataclass(slots=True)
class _Positions:
    """The positions of a pattern: their sets of characters, and which may follow each."""

    letters: list[Letter]
    follow: list[set[int]]

    def of(self, node: Node) -> tuple[set[int], set[int], bool]:
        """Return the first and last positions of a part, and whether it may be empty."""
        if isinstance(node, Letter):
            self.letters.append(node)
            self.follow.append(set())
            return {len(self.letters) - 1}, {len(self.letters) - 1}, False
        if isinstance(node, Choice):
            made = [self.of(part) for part in node.parts]
            firsts, lasts = set().union(*(m[0] for m in made)), set().union(*(m[1] for m in made))
            return firsts, lasts, any(m[2] for m in made)
        if isinstance(node, Repeat):
            return self._repeated(node)
        return self._chained([self.of(part) for part in children(node)])

    def _chained(self, made: Sequence[tuple[set[int], set[int], bool]]) -> tuple[set[int], set[int], bool]:
        first, last, empty = made[0]
        for following, ends, skipped in made[1:]:
            for position in last:
                self.follow[position] |= following
            first = first | following if empty else first
            last = last | ends if skipped else ends
            empty = empty and skipped
        return first, last, empty

    def _repeated(self, node: Repeat) -> tuple[set[int], set[int], bool]:
        """Write a repetition out: a a (a (a)?)? for {2,4}, and for one without an end a loop on the last."""
        copies = max(node.most or 0, node.least, 1)
        made = [self.of(node.part) for _ in range(copies)]
        if node.most is None:
            for position in made[-1][1]:
                self.follow[position] |= made[-1][0]
        for index in range(copies - 1):
            for position in made[index][1]:
                self.follow[position] |= made[index + 1][0]
        optional = [ends for index, (_, ends, _) in enumerate(made) if index + 1 >= node.least]
        return made[0][0], set().union(*optional), node.least == 0 or made[0][2]


def _deterministic(node: Node) -> bool:
    positions = _Positions([], [])
    first, _, _ = positions.of(node)
    return not any(
        positions.letters[one].meets(positions.letters[other])
        for choices in (first, *positions.follow)
        for one in choices
        for other in choices
        if one < other
    )


def _needs_group(parent: Node, child: Node) -> bool:
    if isinstance(parent, Repeat):
        return not isinstance(child, Letter)
    return isinstance(parent, Sequential) and isinstance(child, Choice)


def _spelled(node: Node, spelling: PatternSpelling) -> str:
    if isinstance(node, Letter):
        return _letter(node)
    plain = "(?:" if spelling.plain_groups else "("
    parts = [
        f"{plain}{_spelled(child, spelling)})" if _needs_group(node, child) else _spelled(child, spelling)
        for child in children(node)
    ]
    if isinstance(node, Capture):
        return f"({parts[0]})"
    if isinstance(node, Repeat):
        return _repeated(parts[0], node)
    return ("|" if isinstance(node, Choice) else "").join(parts)


def _repeated(part: str, node: Repeat) -> str:
    """Return a repetition; without an end it is a loop on one character, which takes no room on a stack."""
    simple = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((node.least, node.most))
    if simple is not None:
        return part + simple
    if node.most is None:
        return f"{part}{{{node.least - 1}}}{part}+"
    return f"{part}{{{node.least},{node.most}}}"


def _letter(node: Letter) -> str:
    if len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1] and not node.negated:
        return _escaped(node.ranges[0][0])
    inner = "".join(
        _escaped(low) if low == high else f"{_escaped(low)}-{_escaped(high)}" for low, high in node.ranges
    )
    return f"[{'^' if node.negated else ''}{inner}]"


def _escaped(code: int) -> str:
    character = chr(code)
    punctuation = (
        character.isascii() and character.isprintable() and not character.isalnum() and character not in " _"
    )
    return f"\\{character}" if punctuation else character
