"""How long a text can be, where that follows from how it is made: then joining it needs no guard."""

from __future__ import annotations

from sqlglot import exp

__all__ = ["most_bytes"]


def most_bytes(node: exp.Expr) -> int | None:
    """Return the most bytes of a text, where that follows from how it is made; a character has at most 4."""
    node = node.unnest()
    if isinstance(node, exp.Literal):
        return len(node.name.encode())
    if isinstance(node, exp.Null):
        return 0
    if isinstance(node, exp.Right):
        return 4 * int(node.expression.name)
    if isinstance(node, exp.TryCast) and isinstance(node.this.unnest(), (exp.Extract, exp.TryCast)):
        inner = node.this.unnest()
        whole = isinstance(inner, exp.Extract) or inner.args["to"].this is exp.DataType.Type.BIGINT
        return 20 if whole else None
    if isinstance(node, exp.Case):
        ends = [most_bytes(branch.args["true"]) for branch in node.args["ifs"]]
        ends.append(most_bytes(node.args.get("default") or exp.Null()))
        return None if None in ends else max(end for end in ends if end is not None)
    return None
