"""What a relation is made of: the nodes below it, and those among them that have a rule of their own."""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.queries.plan.nodes import JoinPublic, Relation

__all__ = ["nodes_of", "single_values"]


def nodes_of(relation: Relation) -> Iterator[Relation]:
    """Yield a relation and all nodes below it, public ones too.

    Examples
    --------
    >>> from sfumato.queries.plan.nodes import Distinct, Scan
    >>> from sfumato.queries.plan.schema import Schema
    >>> [type(node).__name__ for node in nodes_of(Distinct(Scan("visits", Schema(()), "id")))]
    ['Distinct', 'Scan']
    """
    yield relation
    for slot in ("child", "left", "right", "public"):
        below = getattr(relation, slot, None)
        if below is not None:
            yield from nodes_of(below)
    for part in getattr(relation, "parts", ()):
        yield from nodes_of(part)


def single_values(relation: Relation) -> Iterator[Relation]:
    """Yield the public relations that stand for one value: those of subqueries in expressions."""
    for node in nodes_of(relation):
        if isinstance(node, JoinPublic) and node.single == ():
            yield node.public
