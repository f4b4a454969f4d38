"""The algebra of key sets: products, joins and filters of their factors.

Every step works on the factors that it reads, so that a product of many lists is never written out for the
sake of one of them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from sqlglot import parse_one

from sfumato import _check
from sfumato.queries.builder.columns import Expressible, expression_sql
from sfumato.queries.builder.key_factors import KeyFactor, refuse_empty, require_few
from sfumato.queries.plan.nodes import PublicScan
from sfumato.queries.plan.query import Schema
from sfumato.queries.release.postprocessing import evaluate, named_columns
from sfumato.queries.sql.catalog import Rows
from sfumato.queries.sql.expressions.scalar import read_predicate
from sfumato.queries.sql.parser import PrivateSql

__all__ = ["filtered", "joined", "multiplied", "parts_of", "split"]


def multiplied(factors: Sequence[KeyFactor]) -> KeyFactor:
    """Return all combinations of the rows of several factors.

    Parameters
    ----------
    factors : sequence of KeyFactor

    Raises
    ------
    ParameterError
        If they are more than a million.
    """
    if len(factors) == 1:
        return factors[0]
    require_few(math.prod(len(factor.rows) for factor in factors))
    columns = tuple(column for factor in factors for column in factor.columns)
    product = itertools.product(*(factor.rows for factor in factors))
    return KeyFactor(columns, tuple(tuple(itertools.chain(*row)) for row in product))


def joined(left: KeyFactor, right: KeyFactor, shared: Sequence[tuple[int, int]]) -> KeyFactor:
    """Return the rows of two factors that agree in their shared columns; NULL agrees with NULL.

    Parameters
    ----------
    left, right : KeyFactor
    shared : sequence of pair of int
        Where each shared column is, on the left and on the right.

    Raises
    ------
    ParameterError
        If no rows agree, they are more than a million, or a shared column has two types.
    """
    for one, other in shared:
        types = {left.columns[one].type, right.columns[other].type} - {None}
        if len(types) > 1:
            found = " and ".join(sorted(type_.value for type_ in types if type_ is not None))
            name = left.columns[one].name
            _check.refuse_state(
                "other", f"have {name!r} in the same type", f"they are {found}", "convert one"
            )
    rest = [place for place in range(len(right.columns)) if place not in {other for _, other in shared}]
    matches: dict[tuple[object, ...], list[tuple[object, ...]]] = {}
    for row in right.rows:
        key = tuple(row[other] for _, other in shared)
        matches.setdefault(key, []).append(tuple(row[place] for place in rest))
    keys = [tuple(row[one] for one, _ in shared) for row in left.rows]
    require_few(sum(len(matches.get(key, ())) for key in keys))
    rows = [(*row, *more) for row, key in zip(left.rows, keys, strict=True) for more in matches.get(key, ())]
    if not rows:
        refuse_empty()
    return KeyFactor((*left.columns, *(right.columns[place] for place in rest)), tuple(rows))


def filtered(factors: Sequence[KeyFactor], condition: Expressible) -> tuple[KeyFactor, ...]:
    """Return the factors with the rows for which a condition is true; those that it reads become one.

    Parameters
    ----------
    factors : sequence of KeyFactor
    condition : str or ColumnExpression
        Over columns of the factors, read as WHERE reads it.

    Raises
    ------
    ParameterError
        If nothing is left, or the factors that it reads have too many combinations.
    QueryError
        If it is no condition over the columns.
    """
    columns = tuple(column for factor in factors for column in factor.columns if column.type is not None)
    scope = Rows.of(PublicScan("keys", Schema(columns)), None, private=False)
    tree = parse_one(expression_sql(condition, "condition"), dialect=PrivateSql())
    predicate = read_predicate(tree, scope, "a condition on keys")
    named = named_columns(predicate)
    read = [index for index, factor in enumerate(factors) if named & set(factor.names)] or [0]
    whole = multiplied([factors[index] for index in read])
    usable = [column.name for column in whole.columns if column.type is not None]
    (mask,) = evaluate(whole.to_arrow().select(usable), [predicate])
    rows = tuple(row for row, holds in zip(whole.rows, mask.to_pylist(), strict=True) if holds)
    if not rows:
        refuse_empty()
    left = [factor for index, factor in enumerate(factors) if index not in read]
    left.insert(read[0], KeyFactor(whole.columns, rows))
    return tuple(left)


def parts_of(factors: Sequence[KeyFactor]) -> list[set[str]]:
    """Return the finest partition of the columns that separates no two columns of one factor."""
    parts: list[set[str]] = []
    for factor in factors:
        names = {name.casefold() for name in factor.names}
        met = [part for part in parts if part & names]
        parts = [*(part for part in parts if not part & names), names.union(*met)]
    return parts


def split(factors: Sequence[KeyFactor], names: set[str]) -> tuple[KeyFactor, list[KeyFactor]]:
    """Return the product of the factors that have any of the columns, and the other factors."""
    touched = [any(name.casefold() in names for name in factor.names) for factor in factors]
    chosen = [factor for factor, is_in in zip(factors, touched, strict=True) if is_in]
    return multiplied(chosen), [factor for factor, is_in in zip(factors, touched, strict=True) if not is_in]
