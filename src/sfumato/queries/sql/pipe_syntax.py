"""Pipe syntax: ``FROM t |> WHERE ... |> AGGREGATE WITH DIFFERENTIAL_PRIVACY ... GROUP BY ...`` as a SELECT.

The words are put into another order and nothing else: what they mean is read as for any other query. Behind
an aggregation ``WHERE``, ``ORDER BY`` and ``LIMIT`` belong to its SELECT; other operators make SQL around it,
so behind the private one they read its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import Token, TokenType

from sfumato.errors import UnsupportedSql

__all__ = ["unpiped"]

_Words: TypeAlias = list[Token]
_Tokenize: TypeAlias = Callable[[str], _Words]

_JOINS = frozenset({"JOIN", "LEFT", "RIGHT", "INNER", "CROSS", "FULL"})
_MADE = frozenset({"SELECT", "EXTEND", "DISTINCT", "SET", "DROP"})
_OPERATORS = (
    "WHERE, SELECT, EXTEND, DISTINCT, JOIN, AGGREGATE, and behind an AGGREGATE SET, DROP, ORDER BY, LIMIT"
)


def unpiped(words: Sequence[Token], tokenize: _Tokenize) -> _Words:
    """Return the words of a query in pipe syntax as those of a SELECT.

    Raises
    ------
    UnsupportedSql
        If an operator is not supported, or stands where it cannot.
    """
    first, *operators = _split(words, TokenType.PIPE_GT)
    index = next((i for i, word in _outside(first) if word.token_type is TokenType.FROM), None)
    if index is None or _text(first, 0) not in ("FROM", "WITH"):
        raise UnsupportedSql("pipe syntax must begin with FROM; write FROM table |> AGGREGATE ...")
    pipe = _Pipe(tokenize, first[index + 1 :])
    for operator in operators:
        pipe.take(operator)
    if not pipe.aggregated:
        raise UnsupportedSql(
            "pipe syntax must have one aggregation at least; write |> AGGREGATE WITH DIFFERENTIAL_PRIVACY ..."
        )
    return first[:index] + pipe.select()


def _outside(words: Sequence[Token]) -> list[tuple[int, Token]]:
    """Return the words outside of parentheses, with their positions."""
    depth, found = 0, []
    for index, word in enumerate(words):
        depth -= word.token_type is TokenType.R_PAREN
        if depth < 0:
            raise UnsupportedSql("a parenthesis is closed that was never opened; leave it out")
        if depth == 0:
            found.append((index, word))
        depth += word.token_type is TokenType.L_PAREN
    return found


def _split(words: Sequence[Token], mark: TokenType) -> list[_Words]:
    marks = [index for index, word in _outside(words) if word.token_type is mark]
    if mark is TokenType.PIPE_GT and len(marks) < sum(word.token_type is mark for word in words):
        raise UnsupportedSql("pipe syntax in parentheses is not answered; write a SELECT there")
    ends = [*marks, len(words)]
    return [list(words[a:b]) for a, b in zip([0, *(m + 1 for m in marks)], ends, strict=True)]


def _text(words: Sequence[Token], index: int) -> str:
    return words[index].text.upper() if index < len(words) else ""


@dataclass(slots=True)
class _Pipe:
    """What the operators so far have made: FROM and WHERE, then what stands behind an aggregation."""

    tokenize: _Tokenize
    source: _Words
    aggregated: bool = False
    tests: list[_Words] = field(default_factory=list)
    head: _Words = field(default_factory=list)
    keys: int = 0
    released_tests: list[_Words] = field(default_factory=list)
    tail: _Words = field(default_factory=list)
    limited: bool = False

    def take(self, operator: _Words) -> None:
        """Apply one operator."""
        name = _text(operator, 0).partition(" ")[0]
        if name in ("ORDER", "LIMIT") and self.aggregated:
            if self.tail and (name == "ORDER" or self.limited):
                self._enclose()
            self.limited = name == "LIMIT"
            self.tail += operator
            return
        known = (*_JOINS, *_MADE, "WHERE", "AGGREGATE")
        if name not in known or (name in ("SET", "DROP") and not self.aggregated):
            shown = name if name.isidentifier() else "an operator"
            raise UnsupportedSql(f"|> {shown} is not answered here; the operators are {_OPERATORS}")
        if self.tail or (self.head and name != "WHERE"):
            self._enclose()
        if name == "WHERE":
            (self.released_tests if self.head else self.tests).append(operator[1:])
        elif name in _JOINS:
            if self.tests:
                self._wrap(self.tokenize("*"))
            self.source += operator
        elif name == "AGGREGATE":
            self._aggregate(operator[1:])
        else:
            self._wrap(self._items(name, operator[1:]))

    def _items(self, name: str, words: _Words) -> _Words:
        """Return the SELECT list of an operator that makes columns."""
        if name in ("SET", "DROP"):
            items = _split(words, TokenType.COMMA)
            if name == "SET":
                items = [self._replaced(item) for item in items]
            listed = [word for item in items for word in (*self.tokenize(","), *item)][1:]
            start = "* REPLACE (" if name == "SET" else "* EXCEPT ("
            return self.tokenize(start) + listed + self.tokenize(")")
        return self.tokenize({"SELECT": "", "EXTEND": "*,", "DISTINCT": "DISTINCT *"}[name]) + words

    def _replaced(self, item: _Words) -> _Words:
        """Return ``column = expression`` as ``(expression) AS column``."""
        if len(item) < 3 or item[1].token_type is not TokenType.EQ:
            raise UnsupportedSql("|> SET must have a column and its new value; write |> SET n = n / 2")
        return [*self.tokenize("("), *item[2:], *self.tokenize(") AS"), item[0]]

    def _enclose(self) -> None:
        """Make all of it so far a subquery that the next operators read."""
        self.source = self.tokenize("(") + self.select() + self.tokenize(")")
        self.head, self.keys, self.tail = [], 0, []
        self.tests, self.released_tests = [], []

    def _wrap(self, items: _Words) -> None:
        inner = self.tokenize("SELECT") + items + self._read()
        self.source, self.tests = self.tokenize("(") + inner + self.tokenize(")"), []

    def _read(self) -> _Words:
        return self.tokenize("FROM") + self.source + self._all("WHERE", self.tests)

    def _all(self, word: str, tests: list[_Words]) -> _Words:
        made: _Words = []
        for test in tests:
            made += self.tokenize("AND" if made else word) + self.tokenize("(") + test + self.tokenize(")")
        return made

    def _aggregate(self, words: _Words) -> None:
        clause = 0
        if _text(words, 0) == "WITH":
            clause = 2
            if _text(words, 2) == "OPTIONS":
                after = (index for index, word in _outside(words) if index > 3)
                clause = next(after, len(words)) + 1  # behind the closing parenthesis
        group = next((p for p, w in _outside(words) if w.token_type is TokenType.GROUP_BY), len(words))
        items = _split(words[clause:group], TokenType.COMMA) if group > clause else []
        keys = _split(words[group + 1 :], TokenType.COMMA) if group < len(words) else []
        self.keys = len(keys)
        self.aggregated = True
        comma = self.tokenize(",")
        listed = [word for item in (*keys, *items) for word in (*comma, *item)][1:]
        self.head = self.tokenize("SELECT") + words[:clause] + listed

    def select(self) -> _Words:
        """Return the SELECT."""
        if not self.head:
            return self.tokenize("SELECT *") + self._read() + self.tail
        positions = ", ".join(str(index + 1) for index in range(self.keys))
        group = self.tokenize(f"GROUP BY {positions}") if positions else []
        return self.head + self._read() + group + self._all("HAVING", self.released_tests) + self.tail
