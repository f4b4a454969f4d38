"""From the text of a regular expression to its tree: a part of RE2's syntax, all else refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sfumato.queries.plan.pattern_nodes import (
    Capture,
    Choice,
    Letter,
    Node,
    Repeat,
    Sequential,
    merged,
    nullable,
    walk,
)
from sfumato.queries.plan.pattern_nodes import refused_pattern as refused

__all__ = ["PatternParser"]

_SETS: Final = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (12, 13), (32, 32)),
}
_CONTROL: Final = {"t": 9, "n": 10, "f": 12, "r": 13}
_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}")


class PatternParser:
    """Reads a pattern from left to right; ``body``, ``start`` and ``end`` are what `Pattern` is made of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.captures = 0

    def read(self) -> tuple[Node, bool, bool]:
        """Return the body, whether it begins at the text's start, and whether it ends at its end."""
        start = self.text.startswith("^")
        self.at = int(start)
        parts = self._alternatives()
        end = self._peek() == "$"
        self.at += end
        if self.at < len(self.text):
            what = self._peek()
            raise refused(
                f"must not have {what!r} there", r"^ stands first and $ last; write \$ for the sign"
            )
        if len(parts) > 1 and (start or end):
            raise refused("must have its alternatives in parentheses beside ^ or $", "write '^(?:a|b)$'")
        return _chosen(parts), start, end

    def _peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def _take(self) -> str:
        self.at += 1
        return self.text[self.at - 1 : self.at]

    def _alternatives(self) -> list[Node]:
        parts = [self._sequence()]
        while self._peek() == "|":
            self.at += 1
            parts.append(self._sequence())
        if len(parts) > 1 and any(map(nullable, parts)):
            raise refused("must not have an alternative that may be empty", "write (?:a|b)?")
        return parts

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._peek() not in ("", "|", ")", "$"):
            parts.append(self._repeated())
        if not parts:
            raise refused("must not have an empty part", "write what it matches")
        return parts[0] if len(parts) == 1 else Sequential(tuple(parts))

    def _repeated(self) -> Node:
        atom = self._atom()
        bounds = self._bounds()
        if bounds is None:
            return atom
        least, most = bounds
        if self._peek() in ("?", "*", "+", "{") and self._peek():
            raise refused("must have one repetition on a part, a greedy one", "write a+ or a{2,5}")
        if isinstance(atom, Capture):
            raise refused("must not repeat what it captures", "put the repetition inside, as in ([a-z]+)")
        if most is None and not isinstance(atom, Letter):
            raise refused("must repeat characters and sets only without an end", "write (?:ab){1,5}")
        if nullable(atom):
            raise refused("must not repeat what may be empty", "write (?:ab)? once")
        if any(isinstance(node, Capture) for node in walk(atom)):
            raise refused("must not repeat what it captures", "capture a part that is always there")
        return Repeat(atom, least, most)

    def _bounds(self) -> tuple[int, int | None] | None:
        sign = self._peek()
        simple = {"?": (0, 1), "*": (0, None), "+": (1, None)}
        if sign in simple:
            self.at += 1
            return simple[sign]
        if sign != "{":
            return None
        close = self.text.find("}", self.at)
        numbers = self.text[self.at + 1 : close].split(",") if close > 0 else []
        valid = len(numbers) in (1, 2) and numbers[0].isdecimal() and all(n.isascii() for n in numbers)
        if (
            not valid
            or not (numbers[-1].isdecimal() or numbers[-1] == "")
            or any(len(n) > 3 for n in numbers)
        ):
            raise refused("must have numbers in {}", r"write a{3} or a{2,5}, and \{ for the brace")
        self.at = close + 1
        least = int(numbers[0])
        most = int(numbers[-1]) if numbers[-1] else None
        if most is not None and (most < least or most == 0):
            raise refused("must have the smaller number first in {}, the other from 1", "write a{2,5}")
        return least, most

    def _atom(self) -> Node:
        sign = self._take()
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._set()
        if sign == ".":
            return Letter(((10, 10),), negated=True)
        if sign == "\\":
            return self._escape()
        if sign in _SPECIAL:
            raise refused(f"must not have {sign!r} there", f"write \\{sign} for the character itself")
        return Letter(((ord(sign), ord(sign)),))

    def _group(self) -> Node:
        plain = self.text.startswith("?:", self.at)
        if not plain and self._peek() == "?":
            raise refused("must have no flags, names or conditions", "write (?:...) or (...)")
        self.at += 2 if plain else 0
        if not plain:
            self.captures += 1
            if self.captures > 1:
                raise refused("must capture one part at most", "write (?:...) for the other parentheses")
        inner = _chosen(self._alternatives())
        if self._take() != ")":
            raise refused("must close each parenthesis, and have $ at its end only", r"write \( for the sign")
        if plain:
            return inner
        if any(isinstance(node, Capture) for node in walk(inner)):
            raise refused("must capture one part at most", "write (?:...) for the other parentheses")
        return Capture(inner)

    def _escape(self) -> Letter:
        sign = self._take()
        if sign.lower() in _SETS and sign:
            return Letter(_SETS[sign.lower()], negated=sign.isupper())
        return Letter(((self._character(sign),) * 2,))

    def _character(self, sign: str) -> int:
        """Return the code of an escaped character."""
        if sign in _CONTROL:
            return _CONTROL[sign]
        if not sign or not sign.isascii() or sign.isalnum():
            raise refused(f"must not have \\{sign}", r"write \d, \w, \s, or a character; [a-z] for letters")
        return ord(sign)

    def _set(self) -> Letter:
        negated = self._peek() == "^"
        self.at += negated
        ranges: list[tuple[int, int]] = []
        while (sign := self._take()) != "]":
            if sign in ("", "["):
                raise refused(
                    "must close each set, and have no bracket in it",
                    r"write \[ for the sign, 0-9 for [:digit:]",
                )
            if sign == "\\":
                name = self._take()
                if name in _SETS:
                    ranges += _SETS[name]
                    continue
                low = self._character(name)
            else:
                low = ord(sign)
            high = self._upper(low)
            if high < low:
                raise refused("must have ranges that go up", "write [a-z]")
            ranges.append((low, high))
        if not ranges:
            raise refused("must not have an empty set", r"write [a-z], and \] for the sign")
        return Letter(merged(tuple(ranges)), negated)

    def _upper(self, low: int) -> int:
        """Return the other end of a range; of a character alone itself."""
        if self._peek() != "-" or self.text[self.at + 1 : self.at + 2] == "]":
            return low
        self.at += 1
        sign = self._take()
        if sign == "\\":
            return self._character(self._take())
        if not sign or sign == "[":
            raise refused("must have characters at the ends of a range", "write [a-z]")
        return ord(sign)


def _chosen(parts: Sequence[Node]) -> Node:
    return parts[0] if len(parts) == 1 else Choice(tuple(parts))
