"""The words of a CPLEX LP file: its sections, their tokens, and the line on which each stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from sfumato import _check

__all__ = ["OPERATORS", "Section", "refuse_line", "sections"]

OPERATORS = {"<": "<=", "<=": "<=", "=<": "<=", ">": ">=", ">=": ">=", "=>": ">=", "=": "="}

_COMMENT = re.compile(r"\\[^\n]*")
_HEAD = re.compile(
    r"^[ \t]*(?:(?P<minimize>minimi[sz]e|minimum|min)|(?P<maximize>maximi[sz]e|maximum|max)"
    r"|(?P<constraints>subject[ \t]+to|such[ \t]+that|s\.t\.|st\.|st)|(?P<bounds>bounds?)"
    r"|(?P<integers>generals?|gen|integers?|int)|(?P<binaries>binar(?:y|ies)|bin)|(?P<end>end)"
    r"|(?P<other>semi-continuous|semis?|sos[12]?|lazy[ \t]+constraints|user[ \t]+cuts|pwlobj))"
    r"(?=[ \t\r]*$|[ \t]+(?![ \t:<>=]))",
    re.IGNORECASE | re.MULTILINE,
)
_TOKEN = re.compile(
    r"[<>=]=|=[<>]|[<>=:+\-]|(?:\d+\.?\d*|\.\d+)(?:[eE][+\-]?\d+)?|[A-Za-z!\"#$%&(),;?@_'`{}~|][^\s+\-*/<>=:^\[\]\\]*|\S"
)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of an LP file.

    Parameters
    ----------
    kind : str
        One of minimize, maximize, constraints, bounds, integers, binaries, end, other.
    tokens : list of str
    text : str
        The file without its comments.
    start, stop : int
        Where in the text its tokens are.
    """

    kind: str
    tokens: list[str]
    text: str
    start: int
    stop: int

    def line(self, token: int) -> int:
        """Return the line, counted from one, on which a token stands, or where the section ends."""
        position = self.stop
        for count, match in enumerate(_TOKEN.finditer(self.text, self.start, self.stop)):
            if count == token:
                position = match.start()
                break
        return self.text.count("\n", 0, position) + 1

    def refuse(self, token: int, rule: str) -> NoReturn:
        """Raise the error for what is wrong at a token."""
        found = repr(self.tokens[token][:60]) if token < len(self.tokens) else "the end of the section"
        refuse_line(self.line(token), rule, found)


def refuse_line(line: int, rule: str, found: str) -> NoReturn:
    """Raise the one error of a malformed file, with its line."""
    _check.refuse_state("LP file", rule, f"line {line} has {found}", "see CPLEX's description of LP files")


def _heads(text: str) -> Iterator[re.Match[str]]:
    start = 0
    while start < len(text):
        if head := _HEAD.match(text, start):
            yield head
        start = text.find("\n", start) + 1 or len(text)


def sections(text: str) -> list[Section]:
    """Cut an LP file into its sections.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of Section
        Without the end.

    Raises
    ------
    ParameterError
        If words stand before the first section, or a section is of a kind that is no linear program.
    """
    text = _COMMENT.sub("", text)
    heads = list(_heads(text))
    before = text[: heads[0].start()] if heads else text
    if before.strip() or not heads:
        line = before[: len(before) - len(before.lstrip())].count("\n") + 1
        refuse_line(line, "begin with Minimize or Maximize", repr(before.strip()[:60]))
    found = []
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        kind = str(head.lastgroup)
        stop = following.start() if following else len(text)
        if kind == "end":
            break
        if kind == "other":
            line = text.count("\n", 0, head.start()) + 1
            refuse_line(line, "be a linear program with integers", repr(head.group().strip()))
        tokens = _TOKEN.findall(text, head.end(), stop)
        found.append(Section(kind, tokens, text, head.end(), stop))
    return found
