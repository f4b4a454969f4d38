"""Where the rows of a query come from, in words for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sfumato.queries.plan import nodes
from sfumato.queries.plan.nodes import Relation

__all__ = ["relation_words"]


def relation_words(relation: Relation) -> str:
    """Return where rows come from, in words.

    Examples
    --------
    >>> from sfumato.queries.plan.schema import Schema
    >>> relation_words(nodes.Distinct(nodes.Scan("visits", Schema(()), "id")))
    'the distinct rows of each unit in table visits'
    """
    return _WORDS[type(relation)](relation)


def _joined_words(node: nodes.JoinPublic) -> str:
    child, public = relation_words(node.child), relation_words(node.public)
    if node.single == ():
        return f"{child} beside the one value of the public {public}"
    once = "" if node.single is None else ", each row once at most"
    return f"{child} joined with the public {public}{once}"


def _member_words(node: nodes.InPublic) -> str:
    word = "not in" if node.negated else "in"
    subject, listed = node.subject.sql, relation_words(node.public)
    return f"{relation_words(node.child)} where {subject} is {word} the public {listed}"


def _unit_words(node: nodes.PerUnit) -> str:
    names = ", ".join(key.name for key in node.keys)
    return f"one row {f'for each {names} ' if names else ''}of {relation_words(node.child)}"


_WORDS: Final[dict[type[Any], Callable[[Any], str]]] = {
    nodes.Scan: lambda node: f"table {node.table}",
    nodes.PublicScan: lambda node: f"table {node.table}",
    nodes.PublicRows: lambda node: f"rows that the query lists ({len(node.rows)})",
    nodes.Filter: lambda node: f"{relation_words(node.child)} where {node.predicate.sql}",
    nodes.Project: lambda node: f"({relation_words(node.child)})",
    nodes.JoinPublic: _joined_words,
    nodes.JoinOnUnit: lambda node: (
        f"{relation_words(node.left)} joined on the unit with {relation_words(node.right)}"
    ),
    nodes.InPublic: _member_words,
    nodes.Union: lambda node: "(" + " and ".join(relation_words(part) for part in node.parts) + ")",
    nodes.Distinct: lambda node: (
        f"the distinct rows of {'' if node.unit is None else 'each unit in '}{relation_words(node.child)}"
    ),
    nodes.PerUnit: _unit_words,
    nodes.Unnest: lambda node: f"{relation_words(node.child)} for each element of {node.array}",
    nodes.UnitWindows: lambda node: f"{relation_words(node.child)} with windows over the rows of each unit",
}
