"""MeasureColumns: the integer columns that measures are computed from, and the measures as SQL over them.

Rows carry ``v0, v1, ...``, the values on the grid. A unit's part of a group carries ``n`` (rows) and for
each slot i ``ci`` (rows with a value) and ``si`` (their exact sum), and ``t...`` for sums of products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato._check import refuse
from sfumato.queries.engines.dialects.base import REACH, Dialect
from sfumato.queries.plan.query import ColumnType, Expression, Measure, MeasureKind

__all__ = ["MeasureColumns", "ValueColumn"]

_FLOAT_INTEGERS = 2**53  # every integer up to here is a float, so float sums of integers are exact
_SUMMED = (MeasureKind.SUM, MeasureKind.MEAN)
_GRIDDED = (*_SUMMED, MeasureKind.LEAVES)
_FIRST = (*_GRIDDED, MeasureKind.MOMENT)
_OF_VALUES = (MeasureKind.VALUES, MeasureKind.VALUE_UNITS, MeasureKind.DISTINCT)


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """One integer per row: the value of ``expression`` on the grid, NULL where there is none.

    ``exponent`` None marks a slot that only tells whether there is a value; ``whole`` one that has the value
    itself, in its canonical form.
    """

    expression: Expression
    exponent: int | None
    lower: int = -REACH
    upper: int = REACH
    whole: bool = False

    def sql(self, value: str, dialect: Dialect) -> str:
        """Return the integer of a column ``value`` of the expression's type."""
        if self.whole:
            return dialect.canonical(value, self.expression.type)
        real = self.expression.type is ColumnType.FLOAT
        if self.exponent is None:
            present = f"{value} IS NOT NULL" + (f" AND NOT {dialect.isnan(value)}" if real else "")
            return f"CASE WHEN {present} THEN {dialect.integer(1)} END"
        lower, upper = dialect.integer(self.lower), dialect.integer(self.upper)
        if real:
            below = dialect.real(-_at_most(-self.lower, self.exponent))
            above = dialect.real(_at_most(self.upper, self.exponent))
            return (
                f"CASE WHEN {dialect.isnan(value)} THEN NULL WHEN {value} > {above} THEN {upper} "
                f"WHEN {value} < {below} THEN {lower} ELSE {dialect.gridded(value, self.exponent)} END"
            )
        scale = Fraction(2) ** self.exponent
        above = dialect.limit(math.floor(self.upper * scale))
        below = dialect.limit(math.ceil(self.lower * scale))
        nearest = _shifted(value, self.exponent, dialect)
        return (
            f"CASE WHEN {value} > {above} THEN {upper} WHEN {value} < {below} THEN {lower} ELSE {nearest} END"
        )


def _at_most(bound: int, exponent: int) -> float:
    """Return the largest float that is at most ``bound * 2**exponent``."""
    exact = Fraction(bound) * Fraction(2) ** exponent
    try:
        near = float(exact)
    except OverflowError:
        near = math.copysign(math.inf, bound)
    if math.isinf(near) or Fraction(near) > exact:
        return math.nextafter(near, -math.inf) if near > 0 or math.isfinite(near) else near
    return near


def _shifted(value: str, exponent: int, dialect: Dialect) -> str:
    """Return the integer nearest to ``value / 2**exponent``; halves round up."""
    if exponent <= 0:
        return value if exponent == 0 else f"{value} * {dialect.integer(2 ** min(-exponent, 62))}"
    return f"{value} * 0" if exponent >= 64 else dialect.shifted(value, exponent)


class MeasureColumns:
    """The slots of a job's measures, each once, and the measures read off them.

    Parameters
    ----------
    measures : sequence of Measure
    max_rows : int or None
        Most rows of one unit in one group, None for any number; it tells where a sum fits in 64 bits.
    dialect : Dialect
        What the texts are written in.
    known : sequence of ValueColumn
        Columns that are there already and come first, used or not.

    Raises
    ------
    ParameterError
        If a bound is out of reach or reversed, or an expression is missing or of the wrong type.
    """

    def __init__(
        self,
        measures: Sequence[Measure],
        max_rows: int | None,
        dialect: Dialect,
        known: Sequence[ValueColumn] = (),
    ) -> None:
        for measure in measures:
            _check(measure)
        self.dialect = dialect
        self.measures = tuple(measures)
        self.items: list[ValueColumn] = list(known)
        self._rows = max_rows
        self._summed: dict[int, int] = {}  # measure to slot
        self._counted: dict[int, int] = {}  # measure to the one slot that counts the values of its expression
        self._binned: dict[int, int] = {}  # measure to slot
        self._whole: dict[int, int] = {}  # measure to slot
        self._products: list[tuple[tuple[int, int], tuple[int, int]]] = []  # slots and their centers
        self._multiplied: dict[int, int] = {}  # measure to product
        # sums first: a count of values reads off any slot of the same expression
        for index in sorted(range(len(measures)), key=lambda i: measures[i].kind not in _FIRST):
            self._place(index)

    def _place(self, index: int) -> None:
        measure = self.measures[index]
        if measure.expression is None:
            return
        if measure.kind is MeasureKind.DISTINCT:
            slot = ValueColumn(measure.expression, None, whole=True)
            if slot not in self.items:
                self.items.append(slot)
            self._whole[index] = self.items.index(slot)
            return
        if measure.kind is MeasureKind.MOMENT:
            self._place_moment(index)
        if measure.kind in _GRIDDED:
            slot = ValueColumn(measure.expression, measure.exponent, *_row_range(measure))
            if slot not in self.items:
                self.items.append(slot)
            places = self._binned if measure.kind is MeasureKind.LEAVES else self._summed
            places[index] = self.items.index(slot)
        if measure.kind is MeasureKind.LEAVES:
            return
        same = [place for place, slot in enumerate(self.items) if slot.expression == measure.expression]
        if not same:
            self.items.append(ValueColumn(measure.expression, None))
            same = [len(self.items) - 1]
        self._counted[index] = same[0]

    def _place_moment(self, index: int) -> None:
        factors = self.measures[index].factors
        places = []
        for factor in factors:
            slot = ValueColumn(factor.expression, factor.exponent, factor.lower, factor.upper)
            if slot not in self.items:
                self.items.append(slot)
            places.append((self.items.index(slot), factor.center))
        if len(places) == 1:
            self._summed[index] = places[0][0]
            return
        first, second = places
        if (first, second) not in self._products:
            self._products.append((first, second))
        self._multiplied[index] = self._products.index((first, second))

    def _product_name(self, index: int) -> str:
        """Return a name that says what is multiplied, in any job with the same slots."""
        return "t" + "_".join(f"{i}x{c}" for i, c in self._products[index]).replace("-", "m")

    def _product(self, index: int) -> str:
        """Return a row's product of two values less their centers; it fits in 64 bits."""
        one, other = (f"(v{i} - {self.dialect.integer(c)})" for i, c in self._products[index])
        return f"({one} * {other})"

    @property
    def names(self) -> list[str]:
        """The row columns, ``v0, v1, ...``."""
        return [f"v{i}" for i in range(len(self.items))]

    @property
    def part_names(self) -> list[str]:
        """The columns of a unit's part of a group."""
        products = range(len(self._products))
        sums = *(f"s{i}" for i in self._sums()), *(self._product_name(i) for i in products)
        return ["n", *(f"c{i}" for i in self._counts()), *sums]

    def _counts(self) -> list[int]:
        return sorted(set(self._counted.values()))

    def _sums(self) -> list[int]:
        return sorted(set(self._summed.values()))

    def grouped(self) -> list[str]:
        """Return the aggregates that make a unit's part of a group from its rows."""
        items = ["count(*) AS n", *(f"count(v{i}) AS c{i}" for i in self._counts())]
        items += [f"{self._total(i)} AS s{i}" for i in self._sums()]
        total, products = self.dialect.total, range(len(self._products))
        return items + [
            f"{total(self._product(i), narrow=False)} AS {self._product_name(i)}" for i in products
        ]

    def _total(self, i: int) -> str:
        """Return a part's exact sum; any of one with too many rows, which is computed again from fewer."""
        column, bound = f"v{i}", max(abs(self.items[i].lower), abs(self.items[i].upper))
        if self._rows is not None and bound * self._rows <= _FLOAT_INTEGERS:
            return self.dialect.small_total(column)
        return self.dialect.total(column, narrow=self._rows is not None and self._fits(i, self._rows))

    def single(self) -> list[str]:
        """Return the same for a row that is a unit of its own."""
        items = ["1 AS n", *(f"CASE WHEN v{i} IS NULL THEN 0 ELSE 1 END AS c{i}" for i in self._counts())]
        wide = self.dialect.wide
        items += [f"{f'v{i}' if self._fits(i, 1) else wide(f'v{i}')} AS s{i}" for i in self._sums()]
        products = range(len(self._products))
        return items + [f"{self._product(i)} AS {self._product_name(i)}" for i in products]

    def _fits(self, i: int, rows: int) -> bool:
        """Tell whether the sum of so many rows, and what a mean computes from it, fits in 64 bits."""
        bound = max(abs(self.items[i].lower), abs(self.items[i].upper))
        return 4 * (bound + 1) * rows < REACH

    @property
    def binned(self) -> list[int]:
        """The measures that are counts of rows by bin."""
        return sorted(self._binned)

    @property
    def distinct(self) -> list[int]:
        """The measures that are numbers of distinct values."""
        return sorted(self._whole)

    @property
    def rowwise(self) -> bool:
        """Whether any measure needs the rows that stay, one by one."""
        return bool(self._binned or self._whole)

    def value(self, index: int) -> str:
        """Return the column of the values that such a measure tells apart."""
        return f"v{self._whole[index]}"

    def leaf(self, index: int) -> str:
        """Return the bin of a row for such a measure, from 0; NULL where it has no value."""
        lower = _row_range(self.measures[index])[0]
        return f"v{self._binned[index]} - {self.dialect.integer(lower)}"

    def means(self) -> list[str]:
        """Return the means that measures need, ``q0, q1, ...`` by measure: exact, halves away from zero."""
        items = []
        for index, measure in enumerate(self.measures):
            if measure.kind is MeasureKind.MEAN:
                total, count = f"s{self._summed[index]}", f"c{self._counted[index]}"
                rounded = self.dialect.quotient(f"(2 * abs({total}) + {count})", f"(2 * {count})")
                signed = f"CASE WHEN {total} < 0 THEN -{rounded} ELSE {rounded} END"
                items.append(f"CASE WHEN {count} > 0 THEN {signed} END AS q{index}")
        return items

    def contribution(self, index: int) -> str:
        """Return what a unit's part of a group adds to a measure: within its sensitivity, or NULL."""
        measure = self.measures[index]
        integer, clamped = self.dialect.integer, self.dialect.clamped
        bounds, most = (measure.lower, measure.upper), REACH if self._rows is None else self._rows
        match measure.kind:
            case MeasureKind.UNITS | MeasureKind.LEAVES | MeasureKind.DISTINCT:
                present = int(
                    measure.kind is MeasureKind.UNITS
                )  # what is counted takes the place of the others
                return integer(min(max(present, measure.lower), measure.upper))
            case MeasureKind.ROWS:
                return clamped("n", bounds, (1, most))
            case MeasureKind.VALUES:
                return clamped(f"c{self._counted[index]}", bounds, (0, most))
            case MeasureKind.VALUE_UNITS:
                one, none = (integer(min(max(x, measure.lower), measure.upper)) for x in (1, 0))
                return f"CASE WHEN c{self._counted[index]} > 0 THEN {one} ELSE {none} END"
            case MeasureKind.MOMENT:
                return self._moment(measure, index)
            case MeasureKind.SUM | MeasureKind.MEAN:
                return self._from_sum(measure, self._summed[index], index)

    def _from_sum(self, measure: Measure, place: int, index: int) -> str:
        """Return a unit's clamped sum, or its clamped mean less the center."""
        clamped, bounds = self.dialect.clamped, (measure.lower, measure.upper)
        if measure.kind is MeasureKind.SUM:
            known = None if self._rows is None else self._sum_range(place, self._rows)
            return clamped(f"s{place}", bounds, known)
        slot = self.items[place]
        mean = clamped(f"q{index}", bounds, (slot.lower, slot.upper))
        return f"{mean} - {self.dialect.integer(measure.center)}"

    def _moment(self, measure: Measure, index: int) -> str:
        """Return a unit's sum of what its rows add, from its sum of values or products and their number."""
        one = index in self._summed
        total = f"s{self._summed[index]}" if one else self._product_name(self._multiplied[index])
        each = measure.factors[0].center + measure.offset if one else measure.offset
        sum_ = f"({total} - {self.dialect.integer(each)} * c{self._counted[index]})"
        return self.dialect.clamped(sum_, (measure.lower, measure.upper))

    def _sum_range(self, place: int, rows: int) -> tuple[int, int]:
        slot = self.items[place]
        return min(slot.lower, slot.lower * rows), max(slot.upper, slot.upper * rows)


def _row_range(measure: Measure) -> tuple[int, int]:
    """Return the clamp of one row; without row bounds it is 2**48 steps, or 2**62 under wide bounds.

    A grid has about 2**24 steps up to a bound, so this is 2**24 bounds away; it keeps sums in 64 bits.
    """
    reach = 2**48 if max(abs(measure.lower), abs(measure.upper)) <= 2**44 else REACH
    lower = -reach if measure.row_lower is None else measure.row_lower
    upper = reach if measure.row_upper is None else measure.row_upper
    return lower, upper


def _check(measure: Measure) -> None:
    bounds = (measure.lower, measure.upper, measure.row_lower, measure.row_upper, measure.center)
    for bound in bounds:
        if bound is not None and abs(bound) > REACH:
            refuse("bounds", "be at most 2**62 grid steps", bound, "use a coarser grid")
    lower, upper = _row_range(measure)
    if measure.lower > measure.upper or lower > upper:
        refuse("bounds", "have lower at most upper", (measure.lower, measure.upper), "swap them")
    if measure.kind is MeasureKind.MOMENT:
        _check_moment(measure)
    if measure.kind is MeasureKind.LEAVES and (measure.row_lower is None or measure.row_upper is None):
        refuse("bounds", "be given for each row", None, "pass row_lower and row_upper")
    if measure.kind in _GRIDDED:
        if measure.expression is None or measure.expression.type not in (
            ColumnType.INTEGER,
            ColumnType.FLOAT,
        ):
            refuse("expression", f"be a number under {measure.kind.value}", measure.expression, "use CAST")
    elif measure.kind in _OF_VALUES and measure.expression is None:
        refuse("expression", f"be given for {measure.kind.value}", None, "pass the counted expression")


def _check_moment(measure: Measure) -> None:
    """Refuse factors that are no numbers, or whose product could leave 62 bits."""
    if len(measure.factors) not in (1, 2) or measure.expression != measure.factors[0].expression:
        refuse("factors", "be one or two, the first of the expression", measure.factors, "pass them so")
    for factor in measure.factors:
        if factor.expression.type not in (ColumnType.INTEGER, ColumnType.FLOAT):
            refuse("expression", f"be a number under {measure.kind.value}", factor.expression, "use CAST")
        if not -REACH <= factor.lower <= factor.center <= factor.upper <= REACH:
            refuse("bounds", "hold their center within 2**62 grid steps", factor, "use a coarser grid")
    if max(map(abs, measure.terms)) + abs(measure.offset) > REACH:
        refuse("factors", "have products of at most 2**62 grid steps", measure.factors, "use a coarser grid")
