"""Intervals carried through SQL: beside a column that has one, its ends go along as hidden columns.

What is carried follows from one released number: a column of an answer that is passed on as it is, or an
expression that is monotone in that one column (sums and products with numbers that have no noise, rounding,
casts of numbers). The interval's coverage is then that of the number's own. Of weighted sums of several
released counts and sums, and ratios of two, the cells go along (`noise_forms`), so that their own noise is
known. Beside a list of counts (`top_lists`) there are lists of their ends. All else carries none.

On the way every ``*`` is written out and every column of a SELECT list has a name, so that hidden columns are
reached by nothing that was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import SchemaError
from sfumato.queries.outer.monotone_expressions import Trees
from sfumato.queries.outer.noise_forms import ColumnNoise, NoiseTrees, noise_of
from sfumato.queries.outer.source_columns import (
    Ends,
    Source,
    SourceColumn,
    ends_of,
    expanded,
    free,
    list_ends,
    noise_lookup,
    with_shared,
)
from sfumato.queries.sql.catalog import free_name

__all__ = ["Ends", "carry_intervals"]


@dataclass(slots=True)
class _Item:
    """An item of a SELECT list: its name, its expression, and those of its ends and cells."""

    name: str
    tree: exp.Expr
    ends: Trees | None
    noise: NoiseTrees | None = None
    free: bool = False

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

    def finish(self, taken: set[str], *, carry: bool = True) -> tuple[SourceColumn, ...]:
        """Write the SELECT lists, hidden columns last, and return the columns."""
        lists = [items for _, items in self.parts]
        columns, hidden = [], []
        for each in zip(*lists, strict=True):
            first, ends, noise = each[0], None, None
            if carry and self.carries and all(item.ends is not None for item in each):
                ends = _named(first.name, ("low", "high"), taken)
                hidden.append([(*zip(item.ends or (), ends, strict=True),) for item in each])
            shapes = {None if item.noise is None else item.noise.shape for item in each}
            if carry and self.carries and len(shapes) == 1 and first.noise is not None:
                noise, written = _named_noise(first.name, [item.noise for item in each if item.noise], taken)
                hidden.append(written)
            columns.append(SourceColumn(first.name, ends, noise, all(item.free for item in each)))
        for index, (select, items) in enumerate(self.parts):
            made = [exp.alias_(tree, name, quoted=True) for each in hidden for tree, name in each[index]]
            select.set("expressions", [*(item.written() for item in items), *made])
        return tuple(columns)


def _give_constants_ends(column: Sequence[_Item]) -> None:
    """Let numbers that are written out, in a column of which others have intervals, be their own ends."""
    if any(item.ends is not None for item in column):
        for item in column:
            number = item.tree.this if isinstance(item.tree, exp.Neg) else item.tree
            if isinstance(number, exp.Null) or (isinstance(number, exp.Literal) and not number.is_string):
                item.ends, item.noise = (item.tree.copy(), item.tree.copy()), None


def _named(name: str, words: Sequence[str], taken: set[str]) -> tuple[str, str]:
    one, other = (free_name(f"{name}_{word}", taken) for word in words)
    return one, other


def _named_noise(
    name: str, trees: Sequence[NoiseTrees], taken: set[str]
) -> tuple[ColumnNoise, list[tuple[tuple[exp.Expr, str], ...]]]:
    """Return the noise of a column by the names of hidden columns, and these for each part of a query."""
    cells = tuple(free_name(f"{name}_cells", taken) for _ in trees[0].cells)
    ratio = None if trees[0].ratio is None else _named(name, ("above", "below"), taken)
    names = (*cells, *(ratio or ()))
    written = [(*zip((*each.cells, *(each.ratio or ())), names, strict=True),) for each in trees]
    return ColumnNoise(trees[0].weights, cells, ratio), written


def carry_intervals(
    tree: exp.Expr,
    shown: Mapping[str, Sequence[str]],
    known: Mapping[str, Sequence[str]],
    cells: Mapping[str, Mapping[str, str]] | None = None,
    keys: Mapping[str, Sequence[str]] | None = None,
) -> tuple[exp.Expr, dict[str, Ends], dict[str, ColumnNoise]]:
    """Return outer SQL that makes the ends of intervals beside the columns that carry one.

    Parameters
    ----------
    tree : sqlglot.exp.Expr
        Of nodes on the whitelist; it is left as it is.
    shown : mapping of str to sequence of str
        The columns of each table.
    known : mapping of str to sequence of str
        For answers, their columns with those of intervals, which are called ``<name>_lower`` and ``_upper``.
    cells : mapping or None
        For answers, the columns of lists of cells, by those that they are beside; without it there are none.
    keys : mapping of str to sequence of str or None
        For answers, the columns that hold no released number.

    Returns
    -------
    tuple
        The tree; for each column of its answer that carries an interval the names of the ends' columns; and
        for each other one that cells are carried to, what noise it has.

    Raises
    ------
    SchemaError
        If a table of a * is not known, or SELECTs of a union have different numbers of columns.

    Examples
    --------
    >>> from sqlglot import parse_one
    >>> outer = parse_one("SELECT n * 2 AS twice FROM (SELECT * FROM answer) AS a", dialect="bigquery")
    >>> carried, ends, _ = carry_intervals(outer, {"answer": ["n"]}, {"answer": ["n", "n_lower", "n_upper"]})
    >>> ends
    {'twice': ('twice_low', 'twice_high')}
    """
    copied = tree.copy()
    taken = {node.name.casefold() for node in copied.find_all(exp.Identifier)}
    taken |= {name.casefold() for names in (*shown.values(), *known.values()) for name in names}
    writer = _Writer(shown, known, taken, cells or {}, keys or {})
    query = writer.query(copied, {})
    for _, items in query.parts:  # an interval's columns never hide one that was asked for
        names = {item.name.casefold() for item in items}
        for item in items:
            if names & {f"{item.name.casefold()}_{end}" for end in ("lower", "upper")}:
                item.ends = item.noise = None
    for column in zip(*(items for _, items in query.parts), strict=True):
        if all(item.ends is not None for item in column):  # which are enough
            for item in column:
                item.noise = None
    columns = query.finish(taken)
    ends = {column.name: column.ends for column in columns if column.ends is not None}
    return copied, ends, {column.name: column.noise for column in columns if column.noise is not None}


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the SELECT lists of a tree, from the inside to the outside."""

    shown: Mapping[str, Sequence[str]]
    known: Mapping[str, Sequence[str]]
    taken: set[str]
    cells: Mapping[str, Mapping[str, str]]
    keys: Mapping[str, Sequence[str]]

    def query(self, node: exp.Expr, above: Mapping[str, tuple[SourceColumn, ...]]) -> _Query:
        """Return a query with its items; what is inside of it is written already."""
        common = dict(above)
        clause = node.args.get("with_")
        for cte in [] if clause is None else clause.expressions:
            common[cte.alias.casefold()] = self._aliased(cte, self.query(cte.this, common))
        if isinstance(node, exp.Subquery):
            inner = self.query(node.this, common)
            self._subqueries(node, common, but=(node.this,))
            _check_positions(node, len(inner.parts[0][1]))
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
            parts = [*left.parts, *right.parts]
            for column in zip(*(items for _, items in parts), strict=True):
                _give_constants_ends(column)
            _check_positions(node, len(left.parts[0][1]))
            return _Query(parts, keeps and left.carries and right.carries)
        if not isinstance(node, exp.Select):
            raise SchemaError(f"a query must be a SELECT, got {node.key.upper()}; write a SELECT")
        sources = self._sources(node, common)
        self._subqueries(node, common)
        grouped = bool(node.args.get("group")) or _aggregates(node)
        items = self._items(node, sources, grouped=grouped)
        _check_positions(node, len(items))
        return _Query([(node, items)], not node.args.get("distinct"))

    def _aliased(self, item: exp.Expr, query: _Query) -> tuple[SourceColumn, ...]:
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
        return tuple(
            SourceColumn(name, free=column.free) for name, column in zip(names, columns, strict=True)
        )

    def _subqueries(
        self,
        node: exp.Expr,
        common: Mapping[str, tuple[SourceColumn, ...]],
        *,
        but: tuple[exp.Expr, ...] = (),
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

    def _sources(self, select: exp.Select, common: Mapping[str, tuple[SourceColumn, ...]]) -> list[Source]:
        from_ = select.args.get("from_")
        sources = [] if from_ is None else [self._source(from_.this, common)]
        for join in select.args.get("joins") or []:
            right = self._source(join.this, common)
            using = frozenset(column.name.casefold() for column in join.args.get("using") or [])
            sources = [with_shared(each, using) for each in sources]
            sources.append(Source(right.alias, right.columns, merged=using))
        return sources

    def _source(self, item: exp.Expr, common: Mapping[str, tuple[SourceColumn, ...]]) -> Source:
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
            return Source(made, (SourceColumn(names[0], free=True),))
        if isinstance(item, exp.Subquery):
            columns = self._aliased(item, self.query(item.this, common))
            if not item.alias:
                names_ = exp.to_identifier(free_name("inner", self.taken))
                item.set("alias", exp.TableAlias(this=names_))
            return Source(item.alias, columns)
        name = item.name
        if name in self.shown:
            return Source(item.alias or name, self._answer(name))
        columns = common.get(name.casefold(), ())
        alias = item.args.get("alias")
        if not columns or (alias is not None and alias.args.get("columns")):
            raise SchemaError(f"the columns of {name!r} must be those it has; leave names of columns out")
        return Source(item.alias or name, columns)

    def _answer(self, name: str) -> tuple[SourceColumn, ...]:
        plain, every = self.shown[name], set(self.known.get(name, ()))
        keys = set(self.keys.get(name, ()) if name in self.known else plain)
        made = []
        for column in plain:
            ends, cells = (f"{column}_lower", f"{column}_upper"), self.cells.get(name, {}).get(column)
            carried = ends if set(ends) <= every and not set(ends) & set(plain) else None
            noise = None if cells is None else ColumnNoise(((1.0, 0.0),), (cells,))
            made.append(SourceColumn(column, carried, noise, column in keys))
        return tuple(made)

    def _items(self, select: exp.Select, sources: Sequence[Source], *, grouped: bool) -> list[_Item]:
        items: list[_Item] = []
        for node in select.expressions:
            for name, tree in expanded(node, sources):
                ends = list_ends(tree, sources) if grouped else ends_of(tree, sources)
                noise = noise_of(tree, lambda node: noise_lookup(node, sources), grouped=grouped)
                items.append(_Item(name or f"f{len(items)}_", tree, ends, noise, free(tree, sources)))
        return items


def _check_positions(node: exp.Expr, count: int) -> None:
    """Refuse a position behind the columns that are asked for: hidden ones stand there."""
    for slot in ("group", "order"):
        clause = node.args.get(slot)
        for item in [] if clause is None else clause.expressions:
            place = item.unnest() if slot == "group" else item.this.unnest()
            if isinstance(place, exp.Literal) and place.is_int and not 1 <= int(place.name) <= count:
                raise SchemaError(
                    f"a position in {slot.upper()} BY must be from 1 to {count}, got {place.name}; correct it"
                )


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
