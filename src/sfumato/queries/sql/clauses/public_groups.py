"""Public groups: keys known without looking at private rows, from a public table, a list or the caller.

Every listed group is in the answer, with noise around zero where no unit is in it, so the set of groups says
nothing about anybody. Rows whose group is not listed are dropped before anything is bounded.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sfumato.errors import OptionError, UnsupportedSql
from sfumato.queries.plan.constants import stored_value
from sfumato.queries.plan.query import (
    ColumnType,
    Expression,
    Named,
    PublicGroups,
    PublicRelation,
    PublicTable,
    PublicValues,
)
from sfumato.queries.sql.catalog import suggestion
from sfumato.queries.sql.clauses.public_lists import LIST_HINT, MAX_GROUPS, PublicList

__all__ = ["JoinedGroups", "comparable", "groups_from_caller"]


@dataclass(frozen=True, slots=True)
class JoinedGroups:
    """A public list, and for each of its columns the expression over private rows it is equated with."""

    listed: PublicList
    keys: tuple[Expression, ...]

    def in_order_of(self, keys: Sequence[Named]) -> PublicGroups:
        """Return the groups with their columns in the order of the query's keys.

        Raises
        ------
        UnsupportedSql
            If the keys are not exactly the columns of the list.
        """
        order = []
        for key in keys:
            if key.expression not in self.keys:
                raise UnsupportedSql(f"the GROUP BY item {key.name!r} is not in the public list; {LIST_HINT}")
            order.append(self.keys.index(key.expression))
        if len(order) != len(self.keys):
            names = ", ".join(column.name for column in self.listed.columns)
            raise UnsupportedSql(
                f"GROUP BY must name every column of the public list; write GROUP BY {names}"
            )
        sources = tuple(self.listed.sources[index] for index in order if self.listed.sources)
        if self.listed.table is not None:
            return PublicTable(self.listed.table, sources)
        if self.listed.relation is not None:
            return PublicRelation(self.listed.relation, sources)
        rows = (tuple(row[index] for index in order) for row in self.listed.values)
        return _sorted_values(rows, keys, "the public list")


def comparable(public: ColumnType | None, key: ColumnType) -> bool:
    """Return whether a public column can be equated with a key: integers may list groups of floats."""
    return public is key or (public is ColumnType.INTEGER and key is ColumnType.FLOAT)


def groups_from_caller(given: Mapping[str, Sequence[object]], keys: Sequence[Named]) -> PublicValues:
    """Read the argument ``public_groups``: values of each key (their cross product), or rows of several keys.

    Raises
    ------
    OptionError
        If it does not list exactly the query's keys, or a value is not of its key's type.
    """
    if not isinstance(given, Mapping):
        raise OptionError(
            f"public_groups must map keys to values, got a value of type {type(given).__name__}; "
            "write {key: values}"
        )
    blocks = [(_names(name), _block(name, rows)) for name, rows in given.items()]
    if math.prod(len(rows) for _, rows in blocks) > MAX_GROUPS:
        raise OptionError(
            f"public_groups must list at most {MAX_GROUPS} groups; list fewer, or group by fewer keys"
        )
    names = [name for block, _ in blocks for name in block]
    indices = [_index(key, names) for key in keys]
    if sorted(indices) != list(range(len(names))):
        extra = next(name for index, name in enumerate(names) if index not in indices)
        known = suggestion(str(extra), [key.name for key in keys], "keys")
        raise OptionError(f"public_groups must name the GROUP BY items only, got {extra!r}; {known}")
    product = (tuple(itertools.chain(*rows)) for rows in itertools.product(*(rows for _, rows in blocks)))
    return _sorted_values((tuple(row[index] for index in indices) for row in product), keys, "public_groups")


def _names(name: object) -> tuple[object, ...]:
    return name if isinstance(name, tuple) else (name,)


def _block(name: object, rows: object) -> list[tuple[object, ...]]:
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Iterable):
        raise OptionError(
            f"public_groups must give a list for each key, got a value of type {type(rows).__name__} for "
            f"{name!r}; write [value, ...]"
        )
    width = len(name) if isinstance(name, tuple) else None
    block = [(row,) if width is None else _row(row, width) for row in itertools.islice(rows, MAX_GROUPS + 1)]
    if not block:
        raise OptionError(
            f"public_groups must list at least one group, got none for {name!r}; name the groups"
        )
    return block


def _row(row: object, width: int) -> tuple[object, ...]:
    if not isinstance(row, (tuple, list)) or len(row) != width:
        raise OptionError(
            f"public_groups must give rows of {width} values for {width} keys; write them as tuples"
        )
    return tuple(row)


def _index(key: Named, names: Sequence[object]) -> int:
    wanted = {key.name.casefold()}
    if isinstance(key.expression.tree, exp.Column):
        wanted.add(key.expression.tree.name.casefold())
    for index, name in enumerate(names):
        if isinstance(name, str) and name.casefold() in wanted:
            return index
    raise OptionError(f"public_groups must list the GROUP BY item {key.name!r}; add its values")


def _sorted_values(rows: Iterable[tuple[object, ...]], keys: Sequence[Named], what: str) -> PublicValues:
    """Check, sort and freeze the groups, so that equal lists make equal plans."""
    types = [key.expression.type for key in keys]
    names = [f"{what} for {key.name!r}" for key in keys]
    checked = [
        tuple(stored_value(value, type_, name) for value, type_, name in zip(row, types, names, strict=True))
        for row in rows
    ]
    if len(set(checked)) != len(checked):
        raise OptionError(f"{what} must list each group once; remove the repeated ones")
    order = sorted(checked, key=lambda row: tuple((value is not None, value) for value in row))
    return PublicValues(tuple(order))
