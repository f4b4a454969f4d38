"""A job's measures over integer columns: of rows, of a unit's part of a group, and of the answer.

Rows carry ``v0, v1, ...``, values on a grid. A unit's part of a group carries ``n`` (rows), and for column i
``ci`` (rows with a value) and ``si`` (their exact sum), and ``t...`` for sums of products of two columns.
Each column is there once, whatever measures need it.

Where nothing says how many rows a unit may have, an exact sum needs more than 64 bits, and arithmetic with
those is slow. If all that is computed from it is clamped to less than 2**62, it stands as ``li`` instead: the
same sum, limited to 2**62 in magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from sfumato._check import refuse
from sfumato.queries.engines.compilation.value_columns import ValueColumn
from sfumato.queries.engines.dialects.base import REACH, Dialect
from sfumato.queries.plan.measure import (
    AtLeast,
    BinCounts,
    DistinctCount,
    GridColumn,
    Measure,
    One,
    RowCount,
    RowMean,
    RowSum,
    UnitValue,
    ValueCount,
)
from sfumato.queries.plan.query import ColumnType, Expression

__all__ = ["MeasureColumns", "check_measure"]

_FLOAT_INTEGERS: Final = 2**53  # every integer up to here is a float, so float sums of integers are exact

_MEANS: Final = 2**24
"""Bounds of a mean up to which a limited sum serves it: for fewer than 2**38 rows of a unit in a group."""

_Centred: TypeAlias = tuple[int, int]
"""A column, by number, and what is subtracted from it."""


@dataclass(frozen=True, slots=True)
class _Indices:
    """The columns of one measure: of which values are counted, which is summed, and a product that is.

    ``row`` is the one whose rows are counted, by bin or by value.
    """

    counted: int | None = None
    summed: int | None = None
    product: int | None = None
    row: int | None = None


class MeasureColumns:
    """A job's measures over integer columns, each column once.

    Parameters
    ----------
    measures : sequence of Measure
    max_rows : int or None
        Most rows of one unit in one group, None for any number; it says where a sum fits in 64 bits.
    dialect : Dialect
        What the texts are written in.
    known : sequence of ValueColumn
        Columns that are there already and come first, used or not.

    Raises
    ------
    ParameterError
        If a bound is out of reach or reversed, or an expression is of the wrong type.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        max_rows: int | None,
        dialect: Dialect,
        known: Sequence[ValueColumn] = (),
    ) -> None:
        for measure in measures:
            check_measure(measure)
        self.measures, self.max_rows, self.dialect = tuple(measures), max_rows, dialect
        self.items: list[ValueColumn] = list(known)
        self.products: list[tuple[_Centred, _Centred]] = []
        # values first: a count of values reads off any column of the same expression
        order = sorted(range(len(measures)), key=lambda index: not measures[index].value.columns)
        placed = {index: self._place(measures[index].value) for index in order}
        self._indices = [placed[index] for index in range(len(measures))]

    def _place(self, value: UnitValue) -> _Indices:  # noqa: PLR0911 - one for each word
        """Add the columns that a value needs, and return where they are."""
        match value:
            case AtLeast():
                return self._place(value.value)
            case ValueCount():
                return _Indices(counted=self._count_index(value.expression))
            case DistinctCount():
                return _Indices(row=self._index(ValueColumn(value.expression, None, whole=True)))
            case BinCounts():
                return _Indices(row=self._gridded(value.column))
            case RowSum() | RowMean():
                indices = [self._gridded(column) for column in value.columns]
                counted = self._count_index(value.columns[0].expression)
                if len(indices) == 1:
                    return _Indices(counted, summed=indices[0])
                one, other = zip(indices, (column.center for column in value.columns), strict=True)
                if (one, other) not in self.products:
                    self.products.append((one, other))
                return _Indices(counted, product=self.products.index((one, other)))
            case One() | RowCount():
                return _Indices()
            case _:
                raise TypeError(f"{type(value).__name__} has no SQL yet; add a case here and in _number")

    def _gridded(self, column: GridColumn) -> int:
        return self._index(ValueColumn(column.expression, column.exponent, column.lower, column.upper))

    def _index(self, column: ValueColumn) -> int:
        """Return the number of a column, which is added if it is new."""
        if column not in self.items:
            self.items.append(column)
        return self.items.index(column)

    def _count_index(self, expression: Expression) -> int:
        """Return the number of a column that has a value where the expression has: any of it will do."""
        same = (index for index, column in enumerate(self.items) if column.expression == expression)
        found = next(same, None)
        return self._index(ValueColumn(expression, None)) if found is None else found

    @property
    def names(self) -> list[str]:
        """The names of the columns of rows, ``v0, v1, ...``."""
        return [f"v{i}" for i in range(len(self.items))]

    @property
    def part_names(self) -> list[str]:
        """The columns of a unit's part of a group."""
        sums = *map(self._sum_name, self.sums), *map(self._product_name, range(len(self.products)))
        return ["n", *(f"c{i}" for i in self.counts), *sums]

    @property
    def counts(self) -> tuple[int, ...]:
        """The columns whose values are counted, by number."""
        return tuple(sorted({each.counted for each in self._indices if each.counted is not None}))

    @property
    def sums(self) -> tuple[int, ...]:
        """The columns that are summed, by number."""
        return tuple(sorted({each.summed for each in self._indices if each.summed is not None}))

    def count_name(self, index: int) -> str:
        """Return the column of a part with the number of values that a measure is of."""
        return f"c{self._indices[index].counted}"

    def sum_name(self, index: int) -> str:
        """Return the column of a part with the sum that a measure is of, of values or of products."""
        each = self._indices[index]
        return self._sum_name(each.summed) if each.product is None else self._product_name(each.product)

    def grouped(self) -> list[str]:
        """Return the aggregates that make a unit's part of a group from its rows."""
        items = ["count(*) AS n", *(f"count(v{i}) AS c{i}" for i in self.counts)]
        items += [f"{self._total(i)} AS {self._sum_name(i)}" for i in self.sums]
        total = self.dialect.total
        return items + [
            f"{total(self._product(i), narrow=False)} AS {self._product_name(i)}"
            for i in range(len(self.products))
        ]

    def single(self) -> list[str]:
        """Return the same for a row that is a unit of its own."""
        wide = self.dialect.wide
        items = ["1 AS n", *(f"CASE WHEN v{i} IS NULL THEN 0 ELSE 1 END AS c{i}" for i in self.counts)]
        for i in self.sums:
            narrow = self._fits(i, 1) or self._limited(i)
            items.append(f"{f'v{i}' if narrow else wide(f'v{i}')} AS {self._sum_name(i)}")
        return items + [f"{self._product(i)} AS {self._product_name(i)}" for i in range(len(self.products))]

    def _product_name(self, index: int) -> str:
        """Return a name that says what is multiplied, in any job with the same columns."""
        return "t" + "_".join(f"{i}x{c}" for i, c in self.products[index]).replace("-", "m")

    def _product(self, index: int) -> str:
        """Return a row's product of two values less their centers; it fits in 64 bits."""
        one, other = (f"(v{i} - {self.dialect.integer(c)})" for i, c in self.products[index])
        return f"({one} * {other})"

    def _total(self, index: int) -> str:
        """Return a part's exact sum; any of one with too many rows, which is computed again from fewer."""
        name, rows, item = f"v{index}", self.max_rows, self.items[index]
        reach = max(abs(item.lower), abs(item.upper))
        if rows is not None and reach * rows <= _FLOAT_INTEGERS:
            return self.dialect.small_total(name, reach)
        if self._limited(index):
            return self.dialect.limited_total(name, reach)
        return self.dialect.total(name, narrow=rows is not None and self._fits(index, rows))

    def _sum_name(self, index: int | None) -> str:
        """Return the name of a column's sum, which says whether it is limited."""
        return f"l{index}" if self._limited(index) else f"s{index}"

    def _limited(self, index: int | None) -> bool:
        """Return whether 2**62 stands for every sum beyond it.

        A sum is clamped to bounds of at most 2**62 in magnitude, so there it makes no difference. The mean of
        fewer than 2**38 values that add up to more is beyond 2**24, and so beyond its bounds with either.
        """
        if index is None or (self.max_rows is not None and self._fits(index, self.max_rows)):
            return False
        pairs = zip(self.measures, self._indices, strict=True)
        return all(_takes_limited(measure) for measure, each in pairs if each.summed == index)

    def _narrow(self, index: int | None) -> bool:
        """Return whether a part's sum is of 64 bits, and so is what a mean computes from it."""
        fits = index is not None and self.max_rows is not None and self._fits(index, self.max_rows)
        return fits or self._limited(index)

    def _fits(self, index: int, rows: int) -> bool:
        """Return whether the sum of so many rows, and what a mean computes from it, fits in 64 bits."""
        bound = max(abs(self.items[index].lower), abs(self.items[index].upper))
        return 4 * (bound + 1) * rows < REACH

    @property
    def binned(self) -> list[int]:
        """The measures that are counts of rows by bin."""
        return [i for i, measure in enumerate(self.measures) if isinstance(measure.value, BinCounts)]

    @property
    def distinct(self) -> list[int]:
        """The measures that are numbers of distinct values."""
        return [i for i, measure in enumerate(self.measures) if isinstance(measure.value, DistinctCount)]

    @property
    def rowwise(self) -> bool:
        """Whether any measure needs the rows that stay, one by one."""
        return bool(self.binned or self.distinct)

    def value(self, index: int) -> str:
        """Return the column of the values that a measure of `distinct` counts."""
        return f"v{self._indices[index].row}"

    def leaf(self, index: int) -> str:
        """Return the bin of a row for a measure of `binned`, from 0; NULL where it has no value."""
        return f"{self.value(index)} - {self.dialect.integer(self.measures[index].value.columns[0].lower)}"

    def means(self) -> list[str]:
        """Return the means that measures need, ``q0, q1, ...`` by measure: exact, halves away from zero."""
        means = []
        for index, (measure, each) in enumerate(zip(self.measures, self._indices, strict=True)):
            if isinstance(measure.value, RowMean):
                total, count = self._sum_name(each.summed), f"c{each.counted}"
                if self._narrow(each.summed):
                    half = self.dialect.narrow_quotient(count, "2")
                    rounded = self.dialect.narrow_quotient(f"(abs({total}) + {half})", count)
                else:
                    rounded = self.dialect.quotient(f"(2 * abs({total}) + {count})", f"(2 * {count})")
                signed = f"CASE WHEN {total} < 0 THEN -{rounded} ELSE {rounded} END"
                means.append(f"CASE WHEN {count} > 0 THEN {signed} END AS q{index}")
        return means

    def contribution(self, index: int) -> str:
        """Return what a unit's part of a group adds to a measure: within its sensitivity, or NULL."""
        measure = self.measures[index]
        text, known = self._number(measure.value, index)
        clamped = self.dialect.clamped(text, (measure.lower, measure.upper), known)
        return f"{clamped} - {self.dialect.integer(measure.center)}" if measure.center else clamped

    def _number(  # noqa: PLR0911 - one for each word
        self, value: UnitValue, index: int
    ) -> tuple[str, tuple[int, int] | None]:
        """Return a unit's value for a measure, and a range that it cannot leave, where one is known."""
        integer, each, most = self.dialect.integer, self._indices[index], self.max_rows
        match value:
            case One():
                return integer(1), (1, 1)
            case RowCount():
                return "n", (1, REACH if most is None else most)
            case ValueCount():
                return f"c{each.counted}", (0, REACH if most is None else most)
            case AtLeast():
                number = self._number(value.value, index)[0]
                above = f"{number} > {value.minimum - 1}"
                return f"CASE WHEN {above} THEN {integer(1)} ELSE {integer(0)} END", (0, 1)
            case RowMean():
                return f"q{index}", (value.column.lower, value.column.upper)
            case RowSum():
                return self._sum(value, each)
            case _:
                return integer(0), (0, 0)  # what is counted, by bin or by value, is put there instead

    def _sum(self, value: RowSum, each: _Indices) -> tuple[str, tuple[int, int] | None]:
        """Return what all rows add, from the sum of their values or products and their number."""
        subtracted, total = value.offset, ""
        if each.product is not None:
            total = self._product_name(each.product)
        else:
            (column,) = value.factors
            subtracted, total = value.offset + column.center, self._sum_name(each.summed)
            if not subtracted:
                low, high, most = column.lower, column.upper, self.max_rows
                return total, None if most is None else (min(low, low * most), max(high, high * most))
        return f"({total} - {self.dialect.integer(subtracted)} * c{each.counted})", None


def _takes_limited(measure: Measure) -> bool:
    """Return whether a measure of a sum is the same where 2**62 stands for every larger sum."""
    match measure.value:
        case RowMean():
            return max(abs(measure.lower), abs(measure.upper)) <= _MEANS
        case RowSum() as total:
            return total.offset + total.factors[0].center == 0
        case AtLeast(value=RowSum() as total, minimum=minimum):
            return total.offset + total.factors[0].center == 0 and abs(minimum) < REACH
        case _:
            return False


def check_measure(measure: Measure) -> None:
    """Refuse a measure that cannot be computed in 64 bits.

    Raises
    ------
    ParameterError
        If a bound is out of reach or reversed, or a column on a grid is no number.
    """
    ends = [(measure.lower, measure.upper), *((each.lower, each.upper) for each in measure.value.columns)]
    for lower, upper in ends:
        if max(abs(lower), abs(upper), abs(measure.center)) > REACH:
            refuse("bounds", "be at most 2**62 grid steps", (lower, upper), "use a coarser grid")
        if lower > upper:
            refuse("bounds", "have lower at most upper", (lower, upper), "swap them")
    for column in measure.value.columns:
        if column.expression.type not in (ColumnType.INTEGER, ColumnType.FLOAT):
            refuse("expression", "be a number where it is put on a grid", column.expression, "use CAST")
        if column.center and not column.lower <= column.center <= column.upper:
            refuse("bounds", "hold their center", column, "use the middle of the bounds")
    if isinstance(value := measure.value, RowSum):
        if len(value.factors) not in (1, 2):
            refuse("factors", "be one or two", value.factors, "sum a column, or the product of two")
        if max(map(abs, value.terms)) + abs(value.offset) > REACH:
            refuse(
                "factors", "have products of at most 2**62 grid steps", value.factors, "use a coarser grid"
            )
