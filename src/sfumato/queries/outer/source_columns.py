"""The columns of what a SELECT reads, and what of them goes along with an expression over these.

Beside a column there may be hidden ones: the ends of its interval, and the cells whose noise is in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import SchemaError
from sfumato.queries.outer.monotone_expressions import Trees, moved
from sfumato.queries.outer.noise_forms import ColumnNoise, NoiseTrees
from sfumato.queries.outer.top_lists import listed_count, with_listed

__all__ = [
    "Ends",
    "Source",
    "SourceColumn",
    "ends_of",
    "expanded",
    "free",
    "list_ends",
    "noise_lookup",
    "with_shared",
]

Ends: TypeAlias = tuple[str, str]
"""Names of the columns of the lower and the upper ends."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a table or subquery, and the hidden columns of its ends and cells, if it carries these.

    It is ``free`` if no released number is in it.
    """

    name: str
    ends: Ends | None = None
    noise: ColumnNoise | None = None
    free: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """An item of FROM: what qualifies its columns, these, and which of them USING merges away."""

    alias: str
    columns: tuple[SourceColumn, ...]
    merged: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()


def with_shared(source: Source, using: frozenset[str]) -> Source:
    """Return a source some of whose columns USING has merged with those of a later one."""
    return Source(source.alias, source.columns, source.merged, source.shared | using)


def expanded(node: exp.Expr, sources: Sequence[Source]) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the names and expressions that an item of a SELECT list means."""
    star = node.this if isinstance(node, exp.Column) else node
    if not isinstance(star, exp.Star):
        inner = node.this if isinstance(node, exp.Alias) else node
        name = node.alias if isinstance(node, exp.Alias) else ""
        if not name and isinstance(inner, exp.Column):
            owner = _owner(inner, sources)
            name = inner.name if owner is None else owner[1].name
        yield name, inner
        return
    qualifier = node.table.casefold() if isinstance(node, exp.Column) else ""
    members = [each for each in sources if qualifier in ("", each.alias.casefold())]
    if not members:
        raise SchemaError(f"{node.sql()} must be of tables in FROM, got none; name the columns")
    left_out = {each.name.casefold() for each in star.args.get("except_") or []}
    replaced = {each.alias.casefold(): each.this for each in star.args.get("replace") or []}
    for source in members:
        for column in source.columns:
            folded = column.name.casefold()
            if folded in left_out or (not qualifier and folded in source.merged):
                continue
            both = folded in source.shared and not qualifier
            table = None if both else exp.to_identifier(source.alias)
            plain = exp.Column(this=exp.to_identifier(column.name, quoted=True), table=table)
            yield column.name, replaced.get(folded, plain)


def free(tree: exp.Expr, sources: Sequence[Source]) -> bool:
    """Whether no released number is in an expression."""
    if any(tree.find_all(exp.Window, exp.AggFunc, exp.Query)):
        return False
    owners = [_owner(node, sources) for node in tree.find_all(exp.Column)]
    return all(owner is not None and owner[1].free for owner in owners)


def noise_lookup(node: exp.Column, sources: Sequence[Source]) -> NoiseTrees | bool:
    """Return the noise of a column; True where it has none, False where it is not known."""
    owner = _owner(node, sources)
    if owner is None or owner[1].noise is None:
        return owner is not None and owner[1].free
    source, noise = owner[0], owner[1].noise
    *cells, above, below = (
        exp.Column(this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(source.alias))
        for name in (*noise.cells, *(noise.ratio or ("", "")))
    )
    return NoiseTrees(noise.weights, tuple(cells), (above, below) if noise.ratio else None)


def ends_of(tree: exp.Expr, sources: Sequence[Source]) -> Trees | None:
    """Return the expressions of the ends of an expression's interval, if it is of one noisy column."""
    if any(tree.find_all(exp.Window, exp.AggFunc, exp.Query)):
        return None
    noisy: dict[tuple[str, str], Trees] = {}
    for node in tree.find_all(exp.Column):
        owner = _owner(node, sources)
        if owner is None:
            return None
        source, column = owner
        if column.ends is None and not column.free:
            return None
        if column.ends is not None:
            low, high = (
                exp.Column(this=exp.to_identifier(end, quoted=True), table=exp.to_identifier(source.alias))
                for end in column.ends
            )
            noisy[source.alias, column.name] = (low, high)
    if len(noisy) != 1:
        return None
    (ends,) = noisy.values()

    def of_column(node: exp.Column) -> Trees | None:
        owner = _owner(node, sources)
        return None if owner is None or owner[1].ends is None else ends

    return moved(tree, of_column)


def list_ends(tree: exp.Expr, sources: Sequence[Source]) -> Trees | None:
    """Return the lists of the ends of the counts in a list of values and their counts."""
    count = listed_count(tree)
    owner = None if count is None else _owner(count, sources)
    if owner is None or owner[1].ends is None:
        return None
    low, high = (
        exp.Column(this=exp.to_identifier(end, quoted=True), table=exp.to_identifier(owner[0].alias))
        for end in owner[1].ends
    )
    return with_listed(tree, low), with_listed(tree, high)


def _owner(node: exp.Column, sources: Sequence[Source]) -> tuple[Source, SourceColumn] | None:
    """Return the table of a column; None where that is not known, or USING has merged it."""
    wanted, qualifier = node.name.casefold(), node.table.casefold()
    found = [
        (source, column)
        for source in sources
        if qualifier in ("", source.alias.casefold())
        for column in source.columns
        if column.name.casefold() == wanted and (qualifier or wanted not in source.merged | source.shared)
    ]
    if len(found) == 1:
        return found[0]
    merged = [source for source in sources if wanted in source.shared and not qualifier]
    if found or not merged:
        return None
    both = [column for source in sources for column in source.columns if column.name.casefold() == wanted]
    return merged[0], SourceColumn(node.name, free=all(column.free for column in both))
