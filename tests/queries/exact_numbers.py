"""Numbers of every size: their edges, and what each must become, by Python's decimals."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import sqlglot
from hypothesis import strategies as st

from sfumato.queries.engines.compilation.expressions import render
from sfumato.queries.engines.compilation.relations import relation_layer
from sfumato.queries.engines.dialects.base import Dialect, StoredTable
from sfumato.queries.plan.query import ColumnType, Scan
from sfumato.queries.sql.expressions.scalar import read_expression
from sfumato.queries.sql.parser import PrivateSql
from tests.queries.engines.compilation.test_expressions import _Scope

__all__ = ["Number", "Rows", "check", "columns", "drawn", "select"]

Rows = list[Decimal | None]
_CASTS = ("FLOAT64", "INT64", "STRING", "NUMERIC", "UINT64")
_LANDMARKS = [0, 1, 5, 10, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**15 + 1, 10**17 + 1]


@dataclass(frozen=True)
class Number:
    """A type of numbers: the whole multiples of ``10**-scale`` between two of them."""

    least: int
    most: int
    scale: int = 0

    @classmethod
    def of_bits(cls, bits: int, *, signed: bool = True) -> Number:
        """Integers of so many bits."""
        return cls(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else cls(0, 2**bits - 1)

    @classmethod
    def of_digits(cls, digits: int, scale: int) -> Number:
        """Decimals of so many digits."""
        return cls(-(10**digits) + 1, 10**digits - 1, scale)

    def rows(self, drawn: Sequence[int]) -> Rows:
        """Return the edges of the type, those of others, halves, neighbors of what was drawn, and NULL."""
        unit = 10 ** max(self.scale, 0)
        marks = [*_LANDMARKS, *(mark * unit for mark in _LANDMARKS), unit // 2, unit + unit // 2]
        marks += [unit * 2**63 - unit // 2, unit * 2**63 - unit // 2 - 1, self.most // 2, *drawn]
        units = {sign * mark + step for mark in marks for sign in (1, -1) for step in (-1, 0, 1)}
        units |= {self.least, self.least + 1, self.most - 1, self.most}
        kept = sorted(value for value in units if self.least <= value <= self.most)
        return [*(Decimal(value).scaleb(-self.scale, _context()) for value in kept), None]


def _context() -> Any:
    with localcontext(prec=4000, Emax=10**6, Emin=-(10**6)) as context:
        return context.copy()


def columns(numbers: Mapping[str, Number]) -> st.SearchStrategy[dict[str, Rows]]:
    """Draw the rows of a column of each type, filled up with NULL to one length."""
    drawn = {
        name: st.lists(st.integers(number.least, number.most), max_size=5).map(number.rows)
        for name, number in numbers.items()
    }
    return st.fixed_dictionaries(drawn).map(_filled)


def drawn(numbers: Mapping[str, Number], draw: random.Random) -> dict[str, Rows]:
    """Draw the same by a seed, where an example takes too long to draw many."""
    ends = {name: (number.least, number.most) for name, number in numbers.items()}
    return _filled(
        {name: numbers[name].rows([draw.randint(*of) for _ in range(5)]) for name, of in ends.items()}
    )


def _filled(rows: dict[str, Rows]) -> dict[str, Rows]:
    longest = max(map(len, rows.values()))
    return {name: values + [None] * (longest - len(values)) for name, values in rows.items()}


def select(table: StoredTable, dialect: Dialect) -> tuple[str, list[tuple[str, str]]]:
    """Return a SELECT of the table's first column, then of every other one as it is and cast; and which."""
    layer = relation_layer(Scan("data", table.schema, None), {"data": table}, dialect)
    made = [f"{layer.columns[table.columns[0].name.casefold()].sql} AS line"]
    which: list[tuple[str, str]] = []
    for column in table.schema.columns[1:]:
        casts = [f"CAST({column.name} AS {type_})" for type_ in _CASTS]
        # the text of a float is no engine's own: it is checked with the other expressions
        for text in (column.name, *(casts[:2] if column.type is ColumnType.FLOAT else casts)):
            tree = sqlglot.parse_one(f"SELECT {text}", read=PrivateSql()).expressions[0]
            expression = read_expression(tree, _Scope(table.schema), "x")
            made.append(f"{render(expression, layer.columns, dialect)} AS e{len(which)}")
            which.append((column.name, text))
    return f"SELECT {', '.join(made)} FROM ({layer.sql}) AS r ORDER BY line", which


def check(
    table: StoredTable, which: Sequence[tuple[str, str]], got: Sequence[Any], rows: dict[str, Rows]
) -> None:
    """Compare what an engine made, a sequence for each text, with what it must be."""
    types = {column.name: column.type for column in table.columns}
    for (name, text), found in zip(which, got, strict=True):
        target = text.rpartition(" ")[2].rstrip(")") if text != name else _own(types[name])
        expected = [None if value is None else _become(value, target) for value in rows[name]]
        assert list(map(repr, found)) == list(map(repr, expected)), (text, types[name])
        if text == name:  # nothing is NULL that was not, and no two values have become one
            assert [value is None for value in found] == [value is None for value in rows[name]]
            assert len(set(found)) == len(set(rows[name])), (text, types[name])


def _own(type_: ColumnType | None) -> str:
    assert type_ in (ColumnType.INTEGER, ColumnType.FLOAT, ColumnType.DECIMAL)
    return "STRING" if type_ is ColumnType.DECIMAL else str(type_.value)


def _become(value: Decimal, target: str) -> object:
    if target == "FLOAT64":
        return float(value) + 0.0
    if target in ("STRING", "NUMERIC"):
        text = f"{value:f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    whole = int(value.to_integral_value(ROUND_HALF_UP, _context()))
    if target == "UINT64":
        return str(whole) if 0 <= whole < 2**64 else None
    return whole if -(2**63) <= whole < 2**63 else None
