"""Slots: the integer columns that measures are computed from, and the measures as SQL over them.

Rows carry ``v0, v1, ...``, the values on the grid. A unit's part of a group carries ``n`` (rows) and for each slot i
``ci`` (rows with a value) and ``si`` (their exact sum).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from sfumato._check import refuse
from sfumato.queries.plan import ColumnType, Expression, Measure, MeasureKind

__all__ = ["REACH", "Slot", "Slots", "clamped"]

REACH = 2**62
"""Integers are kept in [-2**62, 2**62], so that no step between two of them overflows 64 bits."""

_SUMMED = (MeasureKind.SUM, MeasureKind.MEAN)
_LARGEST_STEP = 1000  # 2.0**1000 is a float; larger scalings take two steps, each exact


@dataclass(frozen=True, slots=True)
class Slot:
    """One integer per row: the value of ``expression`` on the grid, NULL where there is none.

    ``exponent`` None marks a slot that only tells whether there is a value.
    """

    expression: Expression
    exponent: int | None
    lower: int = -REACH
    upper: int = REACH

    def sql(self, value: str) -> str:
        """Return the integer of a column ``value`` of the expression's type."""
        real = self.expression.type is ColumnType.FLOAT
        if self.exponent is None:
            present = f"{value} IS NOT NULL AND NOT isnan({value})" if real else f"{value} IS NOT NULL"
            return f"CASE WHEN {present} THEN CAST(1 AS BIGINT) END"
        lower, upper = _integer(self.lower), _integer(self.upper)
        if real:
            below = _float(-_at_most(-self.lower, self.exponent))
            above = _float(_at_most(self.upper, self.exponent))
            nearest = f"TRY_CAST({_scaled(value, -self.exponent)} AS BIGINT)"
            return (
                f"CASE WHEN isnan({value}) THEN NULL WHEN {value} > {above} THEN {upper} "
                f"WHEN {value} < {below} THEN {lower} ELSE {nearest} END"
            )
        scale = Fraction(2) ** self.exponent
        above = _integer(min(math.floor(self.upper * scale), 2**63 - 1))
        below = _integer(max(math.ceil(self.lower * scale), -(2**63)))
        nearest = _shifted(value, self.exponent)
        return f"CASE WHEN {value} > {above} THEN {upper} WHEN {value} < {below} THEN {lower} ELSE {nearest} END"


def _integer(value: int) -> str:
    return f"CAST('{value}' AS BIGINT)"


def _float(value: float) -> str:
    return f"CAST('{value!r}' AS DOUBLE)"


def _at_most(bound: int, exponent: int) -> float:
    """The largest finite float that is at most ``bound * 2**exponent``."""
    exact = Fraction(bound) * Fraction(2) ** exponent
    try:
        near = float(exact)
    except OverflowError:
        near = math.copysign(math.inf, bound)
    if math.isinf(near) or Fraction(near) > exact:
        return math.nextafter(near, -math.inf) if near > 0 or math.isfinite(near) else near
    return near


def _scaled(value: str, shift: int) -> str:
    """``value * 2**shift``, exact: only a result far below one half can round."""
    steps = []
    while abs(shift) > _LARGEST_STEP:
        step = int(math.copysign(_LARGEST_STEP, shift))
        steps.append(step)
        shift -= step
    steps.append(shift)
    return " * ".join([value, *(_float(2.0**step) for step in steps)])


def _shifted(value: str, exponent: int) -> str:
    """The integer nearest to ``value / 2**exponent``; halves round up."""
    if exponent <= 0:
        return value if exponent == 0 else f"{value} * {_integer(2 ** min(-exponent, 62))}"
    if exponent >= 64:
        return f"{value} * 0"
    half = f"{value} >> {exponent - 1}"
    return f"(({half}) >> 1) + (({half}) & 1)"


def clamped(sql: str, lower: int, upper: int) -> str:
    """Return an integer that is not NULL, clamped."""
    return f"CAST(least(greatest({sql}, {_integer(lower)}), {_integer(upper)}) AS BIGINT)"


class Slots:
    """The slots of a job's measures, each once, and the measures read off them.

    Parameters
    ----------
    measures : sequence of Measure
    max_rows : int or None
        Most rows of one unit in one group; it tells where a sum fits in 64 bits.
    """

    def __init__(self, measures: Sequence[Measure], max_rows: int | None) -> None:
        for measure in measures:
            _check(measure)
        self.max_rows = max_rows
        self.items: list[Slot] = []
        self._summed: set[int] = set()
        # sums first: a count of values reads off any slot of the same expression
        self._places: dict[int, int] = {}
        ordered = sorted(range(len(measures)), key=lambda i: measures[i].kind not in _SUMMED)
        for index in ordered:
            if measures[index].expression is not None:
                self._places[index] = self._place(measures[index])
        self.measures = tuple(measures)

    def _place(self, measure: Measure) -> int:
        assert measure.expression is not None
        if measure.kind not in _SUMMED:
            for place, slot in enumerate(self.items):
                if slot.expression == measure.expression:
                    return place
            self.items.append(Slot(measure.expression, None))
            return len(self.items) - 1
        lower = -REACH if measure.row_lower is None else measure.row_lower
        upper = REACH if measure.row_upper is None else measure.row_upper
        slot = Slot(measure.expression, measure.exponent, lower, upper)
        if slot not in self.items:
            self.items.append(slot)
        place = self.items.index(slot)
        self._summed.add(place)
        return place

    @property
    def names(self) -> list[str]:
        """The row columns, ``v0, v1, ...``."""
        return [f"v{i}" for i in range(len(self.items))]

    @property
    def part_names(self) -> list[str]:
        """The columns of a unit's part of a group."""
        names = ["n"]
        for i in range(len(self.items)):
            names += [f"c{i}", *([f"s{i}"] if i in self._summed else [])]
        return names

    def grouped(self) -> list[str]:
        """Return the aggregates that make a unit's part of a group from its rows."""
        items = ["count(*) AS n"]
        for i in range(len(self.items)):
            items.append(f"count(v{i}) AS c{i}")
            if i in self._summed:
                # a part with more than max_rows rows is computed again from the rows that stay
                total = f"TRY_CAST(sum(v{i}) AS BIGINT)" if self.max_rows is not None and self._small(i, self.max_rows) else f"sum(v{i})"
                items.append(f"{total} AS s{i}")
        return items

    def single(self) -> list[str]:
        """Return the same for a row that is a unit of its own."""
        items = ["1 AS n"]
        for i in range(len(self.items)):
            items.append(f"CASE WHEN v{i} IS NULL THEN 0 ELSE 1 END AS c{i}")
            if i in self._summed:
                items.append(f"{f'v{i}' if self._small(i, 1) else f'CAST(v{i} AS HUGEINT)'} AS s{i}")
        return items

    def _small(self, i: int, rows: int) -> bool:
        """Tell whether the sum of so many rows, and what a mean computes from it, fits in 64 bits."""
        bound = max(abs(self.items[i].lower), abs(self.items[i].upper))
        return 4 * (bound + 1) * rows < REACH

    def contribution(self, index: int) -> str:
        """Return what one unit's part of a group adds to measure ``index``: an integer within its sensitivity."""
        measure, place = self.measures[index], self._places.get(index)
        lower, upper = measure.lower, measure.upper
        match measure.kind:
            case MeasureKind.UNITS:
                return clamped("1", lower, upper)
            case MeasureKind.ROWS:
                return clamped("n", lower, upper)
            case MeasureKind.VALUES:
                return clamped(f"c{place}", lower, upper)
            case MeasureKind.VALUE_UNITS:
                return clamped(f"least(c{place}, 1)", lower, upper)
            case MeasureKind.SUM:
                return f"CASE WHEN c{place} > 0 THEN {clamped(f's{place}', lower, upper)} ELSE 0 END"
            case MeasureKind.MEAN:
                mean = clamped(_mean(f"s{place}", f"c{place}"), lower, upper)
                return f"CASE WHEN c{place} > 0 THEN {mean} - {_integer(measure.center)} ELSE 0 END"


def _mean(total: str, count: str) -> str:
    """The integer nearest to total / count, exactly; halves round away from zero."""
    rounded = f"(2 * abs({total}) + {count}) // (2 * {count})"
    return f"CASE WHEN {total} < 0 THEN -({rounded}) ELSE {rounded} END"


def _check(measure: Measure) -> None:
    bounds = (measure.lower, measure.upper, measure.row_lower, measure.row_upper, measure.center)
    for bound in bounds:
        if bound is not None and abs(bound) > REACH:
            refuse("bounds", "be at most 2**62 grid steps", bound, "use a coarser grid")
    lower, upper = (-REACH if measure.row_lower is None else measure.row_lower), (
        REACH if measure.row_upper is None else measure.row_upper
    )
    if measure.lower > measure.upper or lower > upper:
        refuse("bounds", "have lower at most upper", (measure.lower, measure.upper), "swap them")
    if measure.kind in _SUMMED:
        if measure.expression is None or measure.expression.type not in (ColumnType.INTEGER, ColumnType.FLOAT):
            refuse("expression", f"be a number under {measure.kind.value}", measure.expression, "use CAST")
    elif measure.kind in (MeasureKind.VALUES, MeasureKind.VALUE_UNITS) and measure.expression is None:
        refuse("expression", f"be given for {measure.kind.value}", None, "pass the counted expression")
