"""Intervals carried through SQL: beside a column that has one, its ends go along as hidden columns.

What is carried follows from one released number: a column of an answer that is passed on as it is, or an
expression that is monotone in that one column (sums and products with numbers that have no noise, rounding,
casts of numbers). The interval's coverage is then that of the number's own. Windows, aggregates, DISTINCT,
GROUP BY and expressions of several noisy columns carry none.

On the way every ``*`` is written out and every column of a SELECT list has a name, so that hidden columns are
reached by nothing that was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from sfumato.errors import SchemaError
from sfumato.queries.outer.monotone_expressions import Trees, moved
from sfumato.queries.sql.catalog import free_name

__all__ = ["Ends", "carry_intervals"]

Ends: TypeAlias = tuple[str, str]
"""Names of the columns of the lower and the upper ends."""


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of a table or subquery, and the hidden columns of its ends, if it carries an interval."""

    name: str
    ends: Ends | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """An item of FROM: what qualifies its columns, these, and which of them USING merges away."""

    alias: str
    columns: tuple[_Column, ...]
    merged: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()


@dataclass(slots=True)
class _Item:
    """An item of a SELECT list: its name, its expression, and those of its ends."""

    name: str
    tree: exp.Expr
    ends: Trees | None

    def written(self) -> exp.Expr:
        """Return it as it stands in the list: a column under its own name needs no other."""
        if isinstance(self.tree, exp.Column) and self.tree.name == self.name:
            return self.tree
        return exp.alias_(self.tree, self.name, quoted=True)


@dataclass(slots=True)
class _Query:
    """A query whose SELECT lists are written out, with the items of each of its parts."""

    parts: list[tuple[exp.Select, list[_Item]]]
    carries: bool

    def finish(self, taken: set[str], *, carry: bool = True) -> tuple[_Column, ...]:
        """Write the SELECT lists, hidden columns last, and return the columns."""
        _, first = self.parts[0]
        positions = [
            index
            for index in range(len(first))
            if carry and self.carries and all(items[index].ends is not None for _, items in self.parts)
        ]
        names = {
            index: (
                free_name(f"{first[index].name}_low", taken),
                free_name(f"{first[index].name}_high", taken),
            )
            for index in positions
        }
        for select, items in self.parts:
            written = [item.written() for item in items]
            for index in positions:
                pair = zip(items[index].ends or (), names[index], strict=True)
                written += [exp.alias_(end, name, quoted=True) for end, name in pair]
            select.set("expressions", written)
        return tuple(_Column(item.name, names.get(index)) for index, item in enumerate(first))


def carry_intervals(
    tree: exp.Expr, shown: Mapping[str, Sequence[str]], known: Mapping[str, Sequence[str]]
) -> tuple[exp.Expr, dict[str, Ends]]:
    """Return outer SQL that makes the ends of intervals beside the columns that carry one.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of nodes on the whitelist; it is left as it is.
    shown : mapping of str to sequence of str
        The columns of each table.
    known : mapping of str to sequence of str
        For answers, their columns with those of intervals, which are called ``<name>_lower`` and ``_upper``.

    Returns
    -------
    tuple
        The tree, and for each column of its answer that carries an interval the names of the ends' columns.

    Raises
    ------
    SchemaError
        If a table of a * is not known, or SELECTs of a union have different numbers of columns.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> outer = parse_one("SELECT n * 2 AS twice FROM (SELECT * FROM answer) AS a", dialect="bigquery")
    >>> carried, ends = carry_intervals(outer, {"answer": ["n"]}, {"answer": ["n", "n_lower", "n_upper"]})
    >>> ends
    {'twice': ('twice_low', 'twice_high')}
    """
    copied = tree.copy()
    taken = {node.name.casefold() for node in copied.find_all(exp.Identifier)}
    taken |= {name.casefold() for names in (*shown.values(), *known.values()) for name in names}
    writer = _Writer(shown, known, taken)
    query = writer.query(copied, {})
    for _, items in query.parts:  # an interval's columns never hide one that was asked for
        names = {item.name.casefold() for item in items}
        for item in items:
            if names & {f"{item.name.casefold()}_{end}" for end in ("lower", "upper")}:
                item.ends = None
    columns = query.finish(taken)
    return copied, {column.name: column.ends for column in columns if column.ends is not None}


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the SELECT lists of a tree, from the inside to the outside."""

    shown: Mapping[str, Sequence[str]]
    known: Mapping[str, Sequence[str]]
    taken: set[str]

    def query(self, node: exp.Expr, above: Mapping[str, tuple[_Column, ...]]) -> _Query:
        """Return a query with its items; what is inside of it is written already."""
        common = dict(above)
        clause = node.args.get("with_")
        for cte in [] if clause is None else clause.expressions:
            common[cte.alias.casefold()] = self._aliased(cte, self.query(cte.this, common))
        if isinstance(node, exp.Subquery):
            inner = self.query(node.this, common)
            self._subqueries(node, common, but=(node.this,))
            return inner
        if isinstance(node, exp.SetOperation):
            left, right = self.query(node.this, common), self.query(node.expression, common)
            self._subqueries(node, common, but=(node.this, node.expression))
            if len(left.parts[0][1]) != len(right.parts[0][1]):
                raise SchemaError(
                    f"{node.key.upper()} must be of SELECTs with as many columns, got "
                    f"{len(left.parts[0][1])} and {len(right.parts[0][1])}; select the same columns"
                )
            keeps = isinstance(node, exp.Union) and not node.args.get("distinct")
            return _Query([*left.parts, *right.parts], keeps and left.carries and right.carries)
        if not isinstance(node, exp.Select):
            raise SchemaError(f"a query must be a SELECT, got {node.key.upper()}; write a SELECT")
        sources = self._sources(node, common)
        self._subqueries(node, common)
        items = self._items(node, sources)
        grouped = node.args.get("group") or node.args.get("distinct") or _aggregates(node)
        return _Query([(node, items)], not grouped)

    def _aliased(self, item: exp.Expr, query: _Query) -> tuple[_Column, ...]:
        """Return the columns of a named query, which a list of names may rename; that carries nothing."""
        alias = item.args.get("alias")
        names = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
        columns = query.finish(self.taken, carry=not names)
        if not names:
            return columns
        if len(names) != len(columns):
            raise SchemaError(
                f"{item.alias!r} must name each of its columns, got {len(names)} names for {len(columns)}; "
                "correct them"
            )
        return tuple(map(_Column, names))

    def _subqueries(
        self, node: exp.Expr, common: Mapping[str, tuple[_Column, ...]], *, but: tuple[exp.Expr, ...] = ()
    ) -> None:
        """Write the queries that stand in expressions, which carry nothing."""
        pending = [each for slot, each in _children(node) if slot not in ("with_", "from_", "joins")]
        pending += [
            each for join in node.args.get("joins") or [] for slot, each in _children(join) if slot != "this"
        ]
        while pending:
            child = pending.pop()
            if any(child is each for each in but):
                continue
            if isinstance(child, exp.Select | exp.SetOperation | exp.Subquery):
                self.query(child, common).finish(self.taken, carry=False)
            else:
                pending += [each for _, each in _children(child)]

    def _sources(self, select: exp.Select, common: Mapping[str, tuple[_Column, ...]]) -> list[_Source]:
        from_ = select.args.get("from_")
        sources = [] if from_ is None else [self._source(from_.this, common)]
        for join in select.args.get("joins") or []:
            right = self._source(join.this, common)
            using = frozenset(column.name.casefold() for column in join.args.get("using") or [])
            sources = [_with_shared(each, using) for each in sources]
            sources.append(_Source(right.alias, right.columns, merged=using))
        return sources

    def _source(self, item: exp.Expr, common: Mapping[str, tuple[_Column, ...]]) -> _Source:
        if item.args.get("joins"):
            raise SchemaError(
                "a join in parentheses must be a SELECT of its own; write (SELECT * FROM a JOIN b)"
            )
        if isinstance(item, exp.Unnest):
            alias = item.args.get("alias")
            names = [each.name for each in (alias.args.get("columns") or [])] if alias is not None else []
            if alias is None or len(names) != 1:
                raise SchemaError("UNNEST must have one name; write UNNEST(['a', 'b']) AS name")
            made = free_name("listed", self.taken)
            alias.set("this", exp.to_identifier(made))
            return _Source(made, (_Column(names[0]),))
        if isinstance(item, exp.Subquery):
            columns = self._aliased(item, self.query(item.this, common))
            if not item.alias:
                names_ = exp.to_identifier(free_name("inner", self.taken))
                item.set("alias", exp.TableAlias(this=names_))
            return _Source(item.alias, columns)
        name = item.name
        if name in self.shown:
            return _Source(item.alias or name, self._answer(name))
        columns = common.get(name.casefold(), ())
        alias = item.args.get("alias")
        if not columns or (alias is not None and alias.args.get("columns")):
            raise SchemaError(f"the columns of {name!r} must be those it has; leave names of columns out")
        return _Source(item.alias or name, columns)

    def _answer(self, name: str) -> tuple[_Column, ...]:
        plain, every = self.shown[name], set(self.known.get(name, ()))
        pairs = ((column, (f"{column}_lower", f"{column}_upper")) for column in plain)
        return tuple(
            _Column(column, ends if set(ends) <= every and not set(ends) & set(plain) else None)
            for column, ends in pairs
        )

    def _items(self, select: exp.Select, sources: Sequence[_Source]) -> list[_Item]:
        items: list[_Item] = []
        for node in select.expressions:
            for name, tree in _expanded(node, sources):
                items.append(_Item(name or f"f{len(items)}_", tree, _ends_of(tree, sources)))
        return items


def _with_shared(source: _Source, using: frozenset[str]) -> _Source:
    return _Source(source.alias, source.columns, source.merged, source.shared | using)


def _children(node: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    for slot, value in node.args.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, exp.Expr):
                yield slot, each


def _aggregates(select: exp.Select) -> bool:
    """Whether a SELECT list aggregates all rows to one."""
    pending = list(select.expressions)
    while pending:
        node = pending.pop()
        if isinstance(node, exp.AggFunc):
            return True
        if isinstance(node, exp.Window):  # its function sees the rows, and leaves them as they are
            pending += [each for _, each in _children(node.this)]
        elif not isinstance(node, exp.Query):
            pending += [each for _, each in _children(node)]
    return False


def _expanded(node: exp.Expr, sources: Sequence[_Source]) -> Iterator[tuple[str, exp.Expr]]:
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


def _ends_of(tree: exp.Expr, sources: Sequence[_Source]) -> Trees | None:
    """Return the expressions of the ends of an expression's interval, if it is of one noisy column."""
    if any(tree.find_all(exp.Window, exp.AggFunc, exp.Query)):
        return None
    noisy: dict[tuple[str, str], Trees] = {}
    for node in tree.find_all(exp.Column):
        owner = _owner(node, sources)
        if owner is None:
            return None
        source, column = owner
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


def _owner(node: exp.Column, sources: Sequence[_Source]) -> tuple[_Source, _Column] | None:
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
    return (merged[0], _Column(node.name)) if merged and not found else None
